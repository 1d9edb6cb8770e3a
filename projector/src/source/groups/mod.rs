//! The groups of a bucket that are not published yet: their turns, their numbers, and the other
//! copies that must have them.

pub mod ahead;
pub mod gate;
pub mod link;
pub mod links;
