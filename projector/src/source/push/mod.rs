//! Pushed buckets: a producer outside of the cluster numbers their mutations, and pushes them to
//! the projectors.

pub mod branches;
pub mod check;
pub mod commit;
pub mod order;
mod source;

pub use source::PushedSource;
