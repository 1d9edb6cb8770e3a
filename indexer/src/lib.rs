//! The indexer: keeps slices of indexes, follows the buckets' streams, and reads slices at an epoch.
//!
//! The way of a mutation: a `follower` per bucket subscribes to the bucket's projector from the
//! node's watermarks; frames gather in the `queue` until the cut of an epoch is known and covered;
//! the storage engine (the crate `storage`) collapses them to the last state of each document, compares
//! with the back index and publishes one immutable run per index; the commit log makes it durable. The
//! way of a scan: the `service` waits until the epoch is applied, takes a snapshot, and `scan` walks it.
//!
//! An index is built while writes go on: it joins the stream, the epochs since then are applied to it
//! unseen, a backfill snapshot goes below them, and when an applied epoch covers the snapshot's cut the
//! two are joined: what the epochs have said of a document outranks the snapshot
//! (`storage/src/build/corrections.rs`).

mod config;
mod context;
pub mod follow;
mod moves;
pub mod queue;
mod scan;
mod service;

pub use config::Config;
pub use service::{Indexer, Status};
