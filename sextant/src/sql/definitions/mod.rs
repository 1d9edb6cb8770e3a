//! Definitions of buckets, data sets and indexes: how they are made, derived, run as commands, watched and written as text.

pub mod alter;
pub mod building;
pub mod ddl;
pub mod define;
pub mod definition_text;
mod split_points;
