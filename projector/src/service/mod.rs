//! The projector as a service: its tasks, and the calls that others make.

mod calls;
mod start;

pub use start::Service;
