//! Tests that a clock decides: the time that other clients wait during costly statements and attacks of hostile clients.
//!
//! `./test` runs them last, when no other test takes the processors. A machine can still be slow or stall. Therefore each of these tests
//! also queries an idle process at the same time ([`idle`]): the time of its answers is the measure of the machine.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the tests are clients of running processes"
)]

mod costly;
mod hostile;
mod idle;
