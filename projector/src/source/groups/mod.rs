//! The groups of a bucket that are not published yet: the order in which they are logged and
//! published, their numbers, and the other copies that must have them.

pub mod ahead;
pub mod gate;
pub mod link;
pub mod links;
