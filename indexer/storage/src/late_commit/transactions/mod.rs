//! The open transactions of a node, by bucket, and the limits of what they take together.

pub mod buckets;
pub mod open;
pub mod spiller;
