//! A cluster in memory, with which tests and fuzzers run sessions.

mod cluster;
mod definitions;
mod entries;
mod state;
mod streams;
mod transaction;
mod users;

pub(super) use cluster::{MemoryAccess, MemoryCluster};
