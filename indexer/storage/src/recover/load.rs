//! Loading the indexes of a node, in the states of [`crate::index::load_state`].
//!
//! | state | here | reads | epochs |
//! |---|---|---|---|
//! | 0 | no manifest | refused | nothing is sent |
//! | 1 | the manifest is read, the back index is opened | wait | wait |
//! | 2 | the node's log is replayed | wait | wait |
//! | 3 | what the replay took back is saved | wait | wait |
//! | 4 | the other fragments are being opened | wait | applied |
//! | 5 | whole | served | applied |
//! | 6, 7 | it is being dropped: held snapshots go on, its manifest is removed | refused | passed over |
//!
//! The log is one for all indexes, so 1 to 3 are passed by all of them together, before the store is
//! open. To apply an epoch only the back index is asked: so epochs go on while the fragments of entries
//! are opened, and an index that is whole is read while others are not. A fragment that cannot be opened
//! keeps its index in state 4: who reads gets the error, after another try, and what is applied meanwhile
//! is as durable as ever.

use std::sync::Arc;

use proto::Result;
use proto::model::ids::IndexId;

use crate::files::data_files::Files;
use crate::index::load_state::{Answer, LoadEvent, LoadRequest, LoadState};
use crate::index::local_index::Slot;
use crate::lock::lock;
use crate::node::context::Inner;
use crate::read::count::count;

/// Opens what is missing; from then on it is read.
pub fn load(index: &Slot, files: &Files) -> Result<()> {
    let loaded = open_and_show(index, files);
    let trouble = loaded.as_ref().err().map(|error| Arc::new(error.to_string()));
    index.load_trouble.store(trouble);
    loaded
}

fn open_and_show(index: &Slot, files: &Files) -> Result<()> {
    let mut structure = lock(&index.structure);
    if index.load_state() != LoadState::LoadingFragments {
        return Ok(());
    }
    structure.open_rest(files)?;
    let mut writer = index.writer();
    index.publish(&structure, &mut writer, |_| {})?;
    let visible = index.visible.load();
    let uncounted = writer.uncounted.clone();
    for slice in visible.slices.keys().filter(|slice| uncounted.contains(slice)) {
        writer.entries.insert(*slice, count(visible.entries(*slice))? as i64);
        writer.uncounted.remove(slice);
    }
    index.advance(LoadEvent::FragmentsLoaded)
}

/// Loads one index after another in the background.
pub fn load_in_background(context: &Arc<Inner>) {
    let inner = Arc::clone(context);
    context.env.spawner.spawn_blocking(Box::new(move || {
        for slot in inner.state.slots() {
            if let Err(error) = load(&slot, &inner.files) {
                tracing::warn!(%error, "loading an index");
            }
        }
    }));
}

/// Waits until an index is loaded; one whose turn has not come, or that could not be loaded before,
/// is loaded now.
pub async fn wait_loaded(context: &Arc<Inner>, index: IndexId) -> Result<()> {
    let Some(slot) = context.state.get(index) else { return Ok(()) };
    if slot.load_state().answer(LoadRequest::Read) != Answer::Defer {
        return Ok(());
    }
    let inner = Arc::clone(context);
    context.env.blocking(move || load(&slot, &inner.files)).await
}

#[cfg(test)]
#[path = "load_tests.rs"]
pub(crate) mod tests;
