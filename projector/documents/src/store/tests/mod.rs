//! Tests of the store on disk: its contract, histories beside the twin in memory, and purged logs beside a model.

mod contract;
mod crashes;
mod differential;
mod purge;
mod tamper;
mod two_steps;

use super::DiskStoreOptions;
use crate::change_log::ChangeLogOptions;

/// A store of small parts, so that flushes, merges and new segments happen in short histories.
fn small() -> DiskStoreOptions {
    DiskStoreOptions {
        log: ChangeLogOptions { segment_bytes: 4 << 10, ..ChangeLogOptions::default() },
        memtable_bytes: 8 << 10,
        memory_bytes_max: 64 << 10,
        ..DiskStoreOptions::default()
    }
}
