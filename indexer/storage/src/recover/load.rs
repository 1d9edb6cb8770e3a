//! Loading of a node's indexes, in the states of [`crate::index::load_state`].
//!
//! | state | on the node | reads | epochs |
//! |---|---|---|---|
//! | 0 | no manifest | refused | none are sent |
//! | 1 | the manifest; the back index is being opened | wait | wait |
//! | 2 | the node's log is being replayed | wait | wait |
//! | 3 | the result of the replay is being saved | wait | wait |
//! | 4 | the other fragments are being opened | wait | applied |
//! | 5 | everything | served | applied |
//! | 6, 7 | a drop in progress: snapshots stay valid, the manifest is removed | refused | ignored |
//!
//! All indexes share one log, so they pass states 1 to 3 together, before the store is open. An
//! epoch needs only the back index: so epochs are applied while fragments of entries are being
//! opened, and one index is read while others are not loaded yet. A fragment that cannot be opened
//! keeps its index in state 4. Reads then retry the load and report its error, and applied epochs stay durable.

use std::sync::Arc;

use proto::Result;
use proto::env::TaskPolicy;
use proto::lock::lock;
use proto::model::ids::LocalIndexId;

use crate::files::data_files::DataFiles;
use crate::index::load_state::{Answer, LoadEvent, LoadRequest, LoadState};
use crate::index::local_index::LocalIndex;
use crate::node::context::EngineContext;
use crate::read::count::count;

/// Opens the fragments that recovery has not opened yet, and makes the index readable.
pub fn load(index: &LocalIndex, files: &DataFiles) -> Result<()> {
    let loaded = open_and_show(index, files);
    let trouble = loaded.as_ref().err().map(|error| Arc::new(error.to_string()));
    index.load_trouble.store(trouble);
    loaded
}

fn open_and_show(index: &LocalIndex, files: &DataFiles) -> Result<()> {
    let mut fragment_lists = lock(&index.fragment_lists);
    if index.load_state() != LoadState::LoadingFragments {
        return Ok(());
    }
    fragment_lists.open_rest(files)?;
    let mut writer = index.writer();
    index.publish(&fragment_lists, &mut writer, |_| {})?;
    let version = index.version.load();
    let uncounted = writer.uncounted.clone();
    for slice in version.slices.keys().filter(|slice| uncounted.contains(slice)) {
        writer.entries.insert(*slice, count(version.entries(*slice))? as i64);
        writer.uncounted.remove(slice);
    }
    index.advance(LoadEvent::FragmentsLoaded)
}

/// Loads one index after another in the background.
pub fn load_in_background(context: &Arc<EngineContext>) {
    let task = Arc::clone(context);
    // A panic over one index must not end the process. It ends this pass; the indexes after it are loaded by their next read.
    context.env.spawn_blocking("storage-load", TaskPolicy::Request, move || {
        for index in task.state.indexes_and_rebuilds() {
            if let Err(error) = load(&index, &task.files) {
                tracing::warn!(%error, "loading an index failed; the next read retries");
            }
        }
    });
}

/// Waits until an index is loaded. Loads the index now if its load has not begun or has failed.
pub async fn wait_loaded(context: &Arc<EngineContext>, index: LocalIndexId) -> Result<()> {
    let Some(index) = context.state.get(index) else { return Ok(()) };
    if index.load_state().answer(LoadRequest::Read) != Answer::Defer {
        return Ok(());
    }
    let task = Arc::clone(context);
    context.env.blocking(move || load(&index, &task.files)).await
}

#[cfg(test)]
#[path = "load_tests.rs"]
pub(crate) mod tests;
