//! Pushed buckets: the producer numbers the mutations.

pub mod branches;
pub mod check;
pub mod order;
