//! Loading the indexes of a node, in the states of [`super::load_state`].
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

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use proto::model::ids::IndexId;
use proto::{Error, ErrorCode, Result};

use super::edits::count;
use super::files::Files;
use super::load_state::{Answer, LoadEvent, LoadRequest, LoadState};
use super::manifest::{Columns, FileId, IndexManifest};
use super::slot::{Slot, Structure, lock};
use super::state::State;
use super::store::Inner;
use super::table::Table;

type Tables = BTreeMap<FileId, Arc<Table>>;

/// Opens the fragments of the back index.
pub fn open_back(manifest: &IndexManifest, files: &Files) -> Result<Tables> {
    let groups = manifest.slices.values().flat_map(|lists| &lists.groups);
    let items = groups.flat_map(|group| &group.items);
    let mut tables = BTreeMap::new();
    for item in items.filter(|item| item.columns.intersects(Columns::BACK)) {
        open(&mut tables, item.file, manifest, files)?;
    }
    Ok(tables)
}

fn open(tables: &mut Tables, file: FileId, manifest: &IndexManifest, files: &Files) -> Result<()> {
    if let Entry::Vacant(missing) = tables.entry(file) {
        let of = || format!("index {} ({})", manifest.info.spec.name, manifest.info.id);
        missing.insert(files.open(file).map_err(|error| error.context(of()))?);
    }
    Ok(())
}

impl Structure {
    /// Opens the fragments that are named and not open yet.
    pub fn open_rest(&mut self, files: &Files) -> Result<()> {
        let named = self.manifest.files();
        named.into_iter().try_for_each(|file| open(&mut self.tables, file, &self.manifest, files))
    }
}

impl Slot {
    /// What keeps it from being loaded.
    pub fn load_trouble(&self) -> Option<String> {
        self.load_trouble.load().as_ref().map(|trouble| trouble.to_string())
    }

    /// Where it is in its life.
    pub fn load_state(&self) -> LoadState {
        *self.load.borrow()
    }

    /// An event moves it on.
    pub fn advance(&self, event: LoadEvent) -> Result<()> {
        let next = self.load_state().after(event)?;
        self.load.send_replace(next);
        Ok(())
    }

    /// The same, if the event can happen at all.
    pub fn go_on(&self, event: LoadEvent) {
        if let Ok(next) = self.load_state().after(event) {
            self.load.send_replace(next);
        }
    }

    /// Opens what is missing; from then on it is read.
    pub fn load(&self, files: &Files) -> Result<()> {
        let loaded = self.open_and_show(files);
        let trouble = loaded.as_ref().err().map(|error| Arc::new(error.to_string()));
        self.load_trouble.store(trouble);
        loaded
    }

    fn open_and_show(&self, files: &Files) -> Result<()> {
        let mut structure = lock(&self.structure);
        if self.load_state() != LoadState::LoadingFragments {
            return Ok(());
        }
        structure.open_rest(files)?;
        let mut writer = self.writer();
        self.publish(&structure, &mut writer, |_| {})?;
        let visible = self.visible.load();
        let uncounted = writer.uncounted.clone();
        for slice in visible.slices.keys().filter(|slice| uncounted.contains(slice)) {
            writer.entries.insert(*slice, count(visible.entries(*slice))? as i64);
            writer.uncounted.remove(slice);
        }
        self.advance(LoadEvent::FragmentsLoaded)
    }

    /// An error, unless reads are served.
    pub fn check_readable(&self) -> Result<()> {
        let index = self.info.id;
        match self.load_state().answer(LoadRequest::Read) {
            Answer::Serve => Ok(()),
            Answer::Defer => Err(Error::unavailable(format!("index {index} is being loaded"))),
            Answer::Refuse => Err(Error::new(
                ErrorCode::SliceMoved,
                format!("index {index} is not here any more"),
            )),
        }
    }
}

impl State {
    /// An event moves all indexes on.
    pub fn advance_all(&self, event: LoadEvent) -> Result<()> {
        self.slots().iter().try_for_each(|slot| slot.advance(event))
    }
}

#[cfg(test)]
impl super::FragmentStore {
    /// Loads all indexes before anything else is done.
    pub fn load_all(&self) {
        let slots = self.inner.state.slots();
        slots.iter().for_each(|slot| slot.load(&self.inner.files).expect("an index is loaded"));
    }
}

impl Inner {
    /// Loads one index after another in the background.
    pub fn load_in_background(self: &Arc<Self>) {
        let inner = Arc::clone(self);
        self.env.spawner.spawn_blocking(Box::new(move || {
            for slot in inner.state.slots() {
                if let Err(error) = slot.load(&inner.files) {
                    tracing::warn!(%error, "loading an index");
                }
            }
        }));
    }

    /// Waits until an index is loaded; one whose turn has not come, or that could not be loaded before,
    /// is loaded now.
    pub async fn wait_loaded(self: &Arc<Self>, index: IndexId) -> Result<()> {
        let Some(slot) = self.state.get(index) else { return Ok(()) };
        if slot.load_state().answer(LoadRequest::Read) != Answer::Defer {
            return Ok(());
        }
        let inner = Arc::clone(self);
        self.env.blocking(move || slot.load(&inner.files)).await
    }
}

#[cfg(test)]
#[path = "loading_tests.rs"]
pub(super) mod tests;
