//! Tests of the store as a whole: against models, at its limits, and with spilled changes.

pub mod checking;
mod commit_model;
mod large_commits;
mod limits;
mod model;
mod spills;
pub mod testing;
pub mod world;
