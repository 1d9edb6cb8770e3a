//! Tests that a clock decides: how long other clients wait beside costly statements and hostile clients.
//!
//! `./test` runs them last, when no other test takes the processors. A machine can be slow or stand still even so. For that, each of these
//! tests asks an idle process too, at the same time ([`idle`]): the time of its answers is the measure of the machine.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the tests are clients of running processes"
)]

mod costly;
mod hostile;
mod idle;
