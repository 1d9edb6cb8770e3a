//! The items of the groups in a change log: how they are encoded and decoded, and how they change
//! the positions of vbuckets.

pub mod append;
pub mod format;
pub mod group;
pub mod item;
pub mod prepared_places;
pub mod state;
