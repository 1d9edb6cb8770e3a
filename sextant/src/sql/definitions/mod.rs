//! The execution of statements that define buckets, data sets and indexes: how definitions are
//! derived and converted to text, and the progress of builds.

pub mod alter;
pub mod building;
pub mod ddl;
pub mod define;
pub mod definition_text;
mod split_points;
