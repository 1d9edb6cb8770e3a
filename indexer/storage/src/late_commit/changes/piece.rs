//! A spilled piece: the rows and states of a part from some places, in two fragments.
//!
//! No manifest names the files, so the next start deletes them (`recover/open.rs`), and they are
//! not synced. They stay *pending* (`files/pending.rs`) while the piece exists, so that garbage
//! collection does not delete them. They are deleted when the last part or view with the piece is
//! dropped.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use proto::Result;
use proto::model::ids::{Epoch, SliceNo};

use crate::files::data_files::{DataFiles, NewFragment};
use crate::files::group_writer::Lifetime;
use crate::fragment::Compression;
use crate::index::memtable::BackMemtable;
use crate::late_commit::changes::usage::Usage;
use crate::maintain::flush::{put_runs, put_states};
use crate::read::lookup::knows;
use crate::read::slice_fragments::SliceFragments;
use crate::read::source::Source;
use crate::retention::RetainedEpochs;
use crate::rows::columns::Columns;
use crate::tables::table::{BlocksFrom, Table};

/// The files of a piece; dropping it deletes them.
struct PieceFiles {
    files: Arc<DataFiles>,
    usage: Arc<Usage>,
    fragments: Vec<NewFragment>,
    bytes: u64,
}

impl PieceFiles {
    fn add(&mut self, written: Vec<NewFragment>) {
        let fragments = written.iter().filter_map(|new| new.table.fragment());
        let bytes: u64 = fragments.map(|fragment| fragment.file_bytes()).sum();
        self.usage.disk.fetch_add(bytes, Ordering::Relaxed);
        self.bytes += bytes;
        self.fragments.extend(written);
    }
}

impl Drop for PieceFiles {
    fn drop(&mut self) {
        for NewFragment { file, table, .. } in std::mem::take(&mut self.fragments) {
            if let Err(error) = self.files.delete(file) {
                // The next compaction tries again, or the next start finds the file.
                tracing::warn!(%error, "deleting a file of an open transaction failed");
                self.files.retire(vec![(file, table)]);
            }
        }
        self.usage.disk.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// A spilled piece, restricted to the places up to one that was rolled back to.
#[derive(Clone)]
pub struct SpilledPiece {
    files: Arc<PieceFiles>,
    up_to: Epoch,
}

impl SpilledPiece {
    /// Writes `runs`, oldest first, and `memtable`, the states of the same places. After an error
    /// no file is left. Blocks the thread.
    pub fn write(
        files: &Arc<DataFiles>,
        usage: &Arc<Usage>,
        compression: Compression,
        runs: &[Arc<Table>],
        memtable: &BackMemtable,
    ) -> Result<Self> {
        // Every place can be read, so all versions stay.
        let every = RetainedEpochs::default();
        let (fragments, bytes) = (Vec::new(), 0);
        let (own, counted) = (Arc::clone(files), Arc::clone(usage));
        let mut piece = PieceFiles { files: own, usage: counted, fragments, bytes };
        let write = |columns, filter_rows, put: &dyn Fn(&mut _) -> Result<()>| {
            let options = (compression, filter_rows);
            files.write_lasting(Lifetime::UntilRestart, &[columns], options, put)
        };
        if !runs.is_empty() {
            piece.add(write(Columns::FORWARD, None, &|out| put_runs(runs, &every, out))?);
        }
        let states = Some(memtable.states());
        piece.add(write(Columns::BACK, states, &|out| put_states(memtable, &every, out))?);
        usage.pieces.fetch_add(1, Ordering::Relaxed);
        Ok(Self { files: Arc::new(piece), up_to: Epoch(u64::MAX) })
    }

    /// Returns the piece restricted to the places up to `place`; `None` if all of its places are
    /// later.
    pub fn up_to(&self, place: Epoch) -> Option<Self> {
        let begins = self.files.fragments.iter().map(|new| new.table.stats.oldest).min();
        let is_behind = begins.is_none_or(|oldest| oldest > place);
        (!is_behind).then(|| Self { files: Arc::clone(&self.files), up_to: self.up_to.min(place) })
    }

    /// Bytes of the files.
    pub fn disk_bytes(&self) -> u64 {
        self.files.bytes
    }

    /// Memory in use, in bytes: filters and sparse indexes.
    pub fn memory_bytes(&self) -> usize {
        self.files.fragments.iter().map(|new| new.table.memory_bytes()).sum()
    }

    fn sources<'a>(
        &self,
        table: &'a Arc<Table>,
        up_to: Epoch,
    ) -> impl Iterator<Item = Source> + 'a {
        let epochs = Epoch(0)..=self.up_to.min(up_to);
        let sections = table.index.sections().iter();
        sections.map(move |section| Source {
            epochs: epochs.clone(),
            ..Source::whole(table, section.slice)
        })
    }

    /// Adds the piece, which is newer than the present ones, to the lists of its slices.
    pub fn add_to(&self, slices: &mut BTreeMap<SliceNo, Arc<SliceFragments>>) {
        for NewFragment { columns, table, .. } in &self.files.fragments {
            for source in self.sources(table, Epoch(u64::MAX)) {
                let lists = Arc::make_mut(slices.entry(source.slice).or_default());
                match columns.contains(Columns::BACK) {
                    true => lists.back.push(source),
                    false => lists.forward.push(source),
                }
            }
        }
    }

    /// True if a document was changed in this piece at or before a place, in any slice. `hash` is
    /// the hash of its id.
    pub fn has_changed(
        &self,
        id: &[u8],
        hash: u64,
        place: Epoch,
        blocks: BlocksFrom,
    ) -> Result<bool> {
        for NewFragment { columns, table, .. } in &self.files.fragments {
            let may_have = || table.fragment().is_none_or(|fragment| fragment.may_contain(hash));
            if !columns.contains(Columns::BACK) || table.stats.oldest > place || !may_have() {
                continue;
            }
            for source in self.sources(table, place) {
                if knows(&source.with_blocks(blocks), id)? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }
}
