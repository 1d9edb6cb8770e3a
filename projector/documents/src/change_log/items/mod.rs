//! The items of groups: how they are encoded at their place in the log and decoded again, and what they change.

pub mod append;
pub mod format;
pub mod group;
pub mod item;
pub mod prepared_places;
pub mod state;
