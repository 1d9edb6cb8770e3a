//! The open transactions of a node, by bucket, and the limits of their memory and disk together.

pub mod buckets;
pub mod open;
pub mod spiller;
