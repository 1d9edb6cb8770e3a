//! The projector as a service: starts its tasks, and answers its incoming calls.

mod calls;
mod checks;
mod joint;
mod pushed_transactions;
mod room;
mod sample;
mod start;
mod transactions;

pub use start::Service;
