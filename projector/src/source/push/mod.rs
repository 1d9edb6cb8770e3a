//! Pushed buckets, whose mutations the producer numbers.

pub mod branches;
pub mod check;
pub mod commit;
pub mod order;
mod source;

pub use source::PushedSource;
