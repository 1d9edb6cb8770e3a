//! The indexer: keeps slices of indexes, follows the streams of their buckets, and reads slices at
//! an epoch.
//!
//! The path of a mutation: a follower for each bucket ([`follow`]) subscribes to the bucket's
//! projector from the node's watermarks. Frames gather in the [`queue`] until the cut of an epoch
//! is known and covered. The storage engine (the crate `storage`) collapses them to the last state
//! of each document, compares it with the back index (the present entries of each document), and
//! publishes one immutable batch of entries per index; the commit log makes it durable. The path
//! of a scan: the `service` waits until the epoch is applied and takes a snapshot, and `scan` reads
//! it.
//!
//! An index is built while writes continue: it joins the stream, the following epochs are applied
//! to it without being readable, and a backfill snapshot is added below them. When an applied epoch
//! covers the snapshot's cut, the index becomes readable. An epoch's state of a document outranks
//! the snapshot's.

mod build_pace;
mod config;
mod context;
pub mod follow;
mod moves;
pub mod queue;
#[cfg(test)]
mod recorded_tasks;
mod scan;
mod service;

pub use config::Config;
pub use service::{Indexer, Status};
