//! The index of a log: the directory in memory, and the indexes of its segments, in memory or in side files.

pub mod cache;
pub mod directory;
pub mod file;
pub mod files;
pub mod segment;
