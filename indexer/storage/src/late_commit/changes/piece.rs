//! A spilled piece: some changes of a part (see `part`), written to disk as two fragments, of rows
//! and of document records.
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
use crate::files::group_writer::Durability;
use crate::fragment::Compression;
use crate::index::memtable::BackMemtable;
use crate::late_commit::changes::usage::Usage;
use crate::maintain::flush::{put_runs, put_states};
use crate::read::lookup::has_record;
use crate::read::slice_fragments::SliceFragments;
use crate::read::source::Source;
use crate::retention::RetainedEpochs;
use crate::rows::columns::Columns;
use crate::tables::table::{BlocksFrom, Table};

/// The files of a piece. Dropping this value deletes them.
struct PieceFiles {
    files: Arc<DataFiles>,
    usage: Arc<Usage>,
    fragments: Vec<NewFragment>,
    bytes: u64,
}

impl PieceFiles {
    /// Adds written fragments, and counts their bytes as disk use.
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

/// Some changes of a transaction in one index, on disk. After a rollback of the transaction, only
/// those up to the place `up_to` are read.
#[derive(Clone)]
pub struct SpilledPiece {
    files: Arc<PieceFiles>,
    up_to: Epoch,
}

impl SpilledPiece {
    /// Writes a piece: `runs` are tables of rows, oldest first, and `memtable` has the records of
    /// the documents that the same changes concern. After an error no file is left. Blocks the
    /// thread.
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
            files.write_lasting(Durability::UntilRestart, &[columns], options, put)
        };
        if !runs.is_empty() {
            piece.add(write(Columns::FORWARD, None, &|out| put_runs(runs, &every, out))?);
        }
        let states = Some(memtable.states());
        piece.add(write(Columns::BACK, states, &|out| put_states(memtable, &every, out))?);
        usage.pieces.fetch_add(1, Ordering::Relaxed);
        Ok(Self { files: Arc::new(piece), up_to: Epoch(u64::MAX) })
    }

    /// Returns the piece without the changes after `place`; `None` if it has no other changes.
    pub fn restricted_to(&self, place: Epoch) -> Option<Self> {
        let begins = self.files.fragments.iter().map(|new| new.table.stats.oldest).min();
        let is_behind = begins.is_none_or(|oldest| oldest > place);
        (!is_behind).then(|| Self { files: Arc::clone(&self.files), up_to: self.up_to.min(place) })
    }

    /// Returns the bytes of the files on disk.
    pub fn disk_bytes(&self) -> u64 {
        self.files.bytes
    }

    /// Returns the memory use in bytes: filters and sparse indexes.
    pub fn memory_bytes(&self) -> usize {
        self.files.fragments.iter().map(|new| new.table.memory_bytes()).sum()
    }

    /// Returns the sources that read a table of the piece up to the place `up_to`, one for each
    /// slice.
    fn sources<'a>(
        &self,
        table: &'a Arc<Table>,
        up_to: Epoch,
    ) -> impl Iterator<Item = Source> + 'a {
        let epochs = Epoch(0)..=self.up_to.min(up_to);
        let sections = table.index.sections().iter();
        sections.map(move |section| Source {
            epochs: epochs.clone(),
            ..Source::of_slice(table, section.slice)
        })
    }

    /// Adds the piece's fragments to the lists of their slices, as the newest ones.
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

    /// Returns true if a change in this piece, at or before a place, concerns a document, in any
    /// slice. `hash` is the hash of the document's id.
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
                if has_record(&source.with_blocks(blocks), id)? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }
}
