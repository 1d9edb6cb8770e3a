//! Pushed buckets: the producer numbers the mutations.

pub mod branches;
pub mod check;
pub mod commit;
pub mod order;
mod source;

pub use source::PushedSource;
