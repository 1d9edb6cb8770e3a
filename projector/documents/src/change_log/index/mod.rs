//! The index of a change log, which finds the mutations of a vbucket: the directory of segments
//! in memory, and the index of each segment in memory or in a side file.

pub mod cache;
pub mod directory;
pub mod file;
pub mod files;
pub mod segment;
