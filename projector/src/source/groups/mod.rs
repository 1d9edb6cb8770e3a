//! The groups of a bucket that are not visible to its readers yet: their turns, the numbers that are not visible yet, and the other copies
//! that must have them.

pub mod ahead;
pub mod gate;
pub mod link;
pub mod links;
