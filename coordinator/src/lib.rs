//! The coordinator: the replicated state of the cluster, and what is decided from it.

pub mod raft;
