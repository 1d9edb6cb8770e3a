//! The items of groups: their encoding at a place in the log, their decoding, and their effects.

pub mod append;
pub mod format;
pub mod group;
pub mod item;
pub mod prepared_places;
pub mod state;
