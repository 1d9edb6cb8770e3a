//! Tests whose result depends on a clock: the times that other clients wait during costly
//! statements and attacks of hostile clients.
//!
//! `./test` runs them last, when no other test uses the processors. A machine can still be slow or
//! stall. Therefore each of these tests also queries an idle process concurrently ([`idle`]), whose
//! times show the speed of the machine.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the tests are clients of running processes"
)]

mod costly;
mod hostile;
mod idle;
