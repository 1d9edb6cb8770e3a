//! The open transactions of a node, by bucket, and the enforcement of the limits of their memory
//! and disk space.

pub mod buckets;
pub mod open;
pub mod spiller;
