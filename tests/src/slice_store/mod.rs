//! The judge of the storage engine: a model behind the same trait, random histories applied to
//! both, crashes and faults at every file operation, and bits flipped in its files.
//!
//! | part | contents |
//! |---|---|
//! | [`model`] | a store in ordered maps that keeps every version for ever |
//! | [`source`] | the documents and their streams, from which epochs are cut |
//! | [`shape`] | the indexes, the entries of a document, and their slices |
//! | [`history`] | chooses the next step, from a seed |
//! | [`driver`] | applies the steps to the store and to the model |
//! | [`plan`] | the length of a history, and its faults |
//! | [`check`] | the comparisons during a history |
//! | [`compare`] | reads both and reports differences |
//! | [`recover`] | reopens the store and compares it with the durable state |
//! | [`crash`] | runs histories with a crash or a fault at each file operation |
//! | `side` | the nodes of the stories below, and their documents |
//! | [`transfer`] | a slice moves between two stores |
//! | [`chain`] | slices move repeatedly between three stores, with rollbacks between the moves |
//! | [`flips`] | flips bits in the files of a history |
//!
//! None of these modules depends on the store's implementation: they use the trait, the files as
//! bytes, and the errors.
//!
//! The modules share with the product the encoding of keys and of mutations, which the store and
//! the model only use as bytes, and `vbucket_of`, which assigns documents to logs. No verdict
//! depends on them. The model has its own order, versions, slices, counts and checksums.

pub mod chain;
pub mod check;
pub mod compare;
pub mod crash;
pub mod driver;
pub mod flips;
pub mod history;
pub mod model;
pub mod plan;
pub mod recover;
pub mod shape;
mod side;
pub mod source;
pub mod transfer;

use std::path::Path;
use std::sync::Arc;

use proto::Result;
use proto::env::Env;
use proto::env::sim::Turns;
use proto::model::ids::{BucketId, NodeId};
use storage::log::LogOptions;
use storage::{SliceStore, StorageEngine, StoreOptions};
use tokio::runtime::Runtime;

/// The node of the store.
pub const NODE: NodeId = NodeId(7);
/// The bucket of all indexes of a history.
pub const BUCKET: BucketId = BucketId(1);

/// Returns a runtime of one thread whose time advances only when all tasks wait.
pub fn simulated_time() -> std::result::Result<Runtime, String> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_time().start_paused(true).build().map_err(|error| error.to_string())
}

/// Opens the store under test and waits until all of its indexes are loaded.
pub async fn open_whole(env: &Env, dir: &Path, memory_bytes: u64) -> Result<Arc<dyn SliceStore>> {
    let store = open_store(env, dir, memory_bytes)?;
    for (index, _) in store.load_states() {
        store.wait_loaded(index).await?;
    }
    Ok(store)
}

/// Waits until the tasks and the blocking work of a dropped store have ended, for at least
/// `turns_min` turns of the runtime.
pub(crate) async fn wait_for_work(turns: Option<&Turns>, turns_min: u32) {
    let mut idle = 0;
    while idle < turns_min {
        tokio::task::yield_now().await;
        let is_busy = turns.is_some_and(Turns::is_busy);
        idle = if is_busy { 0 } else { idle + 1 };
    }
    if let Some(turns) = turns {
        turns.resume_panic();
    }
}

/// Opens the store under test, with so little memory and such a short log that a history exceeds
/// both. Blocks the thread.
pub fn open_store(env: &Env, dir: &Path, memory_bytes: u64) -> Result<Arc<dyn SliceStore>> {
    let log = LogOptions { segment_bytes: memory_bytes / 16, ..LogOptions::default() };
    let log_bytes = memory_bytes / 4;
    let options = StoreOptions { memory_bytes, log_bytes, log, ..StoreOptions::default() };
    Ok(Arc::new(StorageEngine::open(env, NODE, dir, options)?))
}
