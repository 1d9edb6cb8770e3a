//! Tests of the store on disk: its contract, histories compared with the store in memory, purged
//! logs compared with a model, and the size of the log on disk.

mod contract;
mod crashes;
mod damaged;
mod differential;
mod held;
mod many_buckets;
mod prepared;
mod purge;
mod recover;
mod sorted;
mod tamper;
mod two_steps;

use std::path::Path;

use proto::Result;
use proto::env::Env;

use super::{DiskStore, DiskStoreOptions};
use crate::change_log::ChangeLogOptions;
use crate::document_store::DocumentStore;

/// Opens a store; damage of a bucket is an error.
fn open_whole(env: &Env, dir: &Path) -> Result<DiskStore> {
    let store = DiskStore::open(env, dir, small())?;
    let damaged = store.damaged()?;
    damaged.into_values().next().map_or(Ok(store), |damaged| Err(damaged.error))
}

/// Returns options with small sizes, so that flushes, merges and new segments happen in short
/// histories.
fn small() -> DiskStoreOptions {
    DiskStoreOptions {
        log: ChangeLogOptions { segment_bytes: 4 << 10, ..ChangeLogOptions::default() },
        memtable_bytes: 8 << 10,
        memory_bytes_max: 64 << 10,
        replay_bytes_max: 16 << 10,
        prepared_behind_bytes: 48 << 10,
        ..DiskStoreOptions::default()
    }
}
