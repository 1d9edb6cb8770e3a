//! A cluster in memory, over which tests and fuzzers run sessions.

mod cluster;
mod state;
mod transaction;
mod users;

pub(super) use cluster::{Memory, MemoryBackends};
