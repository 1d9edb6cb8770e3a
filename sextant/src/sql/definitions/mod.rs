//! Definitions of buckets, data sets and indexes: their derivation, execution as commands, progress
//! and text.

pub mod alter;
pub mod building;
pub mod ddl;
pub mod define;
pub mod definition_text;
mod split_points;
