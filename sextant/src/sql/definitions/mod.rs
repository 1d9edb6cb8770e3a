//! Definitions of buckets, data sets and indexes: how they are made, derived, run as commands, watched and written as text.

pub mod alter;
pub mod building;
pub mod ddl;
pub mod define;
mod split_points;
pub mod written;
