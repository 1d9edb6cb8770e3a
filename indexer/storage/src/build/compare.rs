//! Compares what an index has here with a snapshot of the source, document by document, and packs what differs as
//! key-versions: applied on top of what was compared, these make the copy what the snapshot is.
//!
//! Both sides come in the order of the documents' ids. The snapshot's documents are told as they are read; the copy's
//! come from its back index, which is in fragments after a flush: of each document and slice the newest version, so
//! that no more than a few blocks are in memory. A document of which keys or included values differ becomes an
//! upsert with the seqno that the snapshot has; one that the snapshot lacks (it was deleted, or left the index) has no
//! entries from now on. What the snapshot says of slices that are not here is passed over.
//!
//! No epoch may be applied to the index between the beginning of a comparison and its corrections: the follower
//! sees to that.

use std::collections::BTreeSet;

use bytes::Bytes;
use proto::model::cut::Cut;
use proto::model::ids::{Generation, IndexId, SliceNo, vbucket_of};
use proto::plant::{self, Plant};
use proto::rpc::mutation::{
    IndexKeys, KeyVersions, KeyVersionsReader, KeyVersionsWriter, MutationKind,
};
use proto::{Error, ErrorCode, Result};

use crate::index::local_index::Slot;
use crate::read::merge::Merge;
use crate::rows::packed::{self, include_hash};

/// A comparison under way.
pub struct Comparison {
    index: IndexId,
    generation: Generation,
    slices: BTreeSet<SliceNo>,
    /// Where the snapshot ends.
    cut: Cut,
    copy: Merge,
    /// The row of the copy that comes next.
    ahead: Option<Row>,
    /// The snapshot's last document.
    last: Option<String>,
    corrections: KeyVersionsWriter,
}

/// What a document has in a slice of the copy.
struct Row {
    id: Vec<u8>,
    slice: SliceNo,
    state: Vec<u8>,
}

/// An entry of a document: slice, key, hash of the included values.
type Entry = (SliceNo, Vec<u8>, u64);

impl Comparison {
    /// Begins to compare an index, all of which is in fragments, with a snapshot that ends at a cut.
    pub fn begin(slot: &Slot, cut: Cut) -> Result<Self> {
        let visible = {
            let writer = slot.writer();
            if !writer.memtable.is_empty() || writer.frozen.is_some() {
                let what = format!("index {} changes while it is compared", slot.info.id);
                return Err(Error::unavailable(what));
            }
            slot.visible.load_full()
        };
        let back = visible.slices.values().flat_map(|fragments| fragments.back.iter().cloned());
        let mut comparison = Self {
            index: slot.info.id,
            generation: slot.info.generation,
            slices: visible.slices.keys().copied().collect(),
            cut,
            copy: Merge::new(back, false)?,
            ahead: None,
            last: None,
            corrections: KeyVersionsWriter::default(),
        };
        comparison.ahead = comparison.next_row()?;
        Ok(comparison)
    }

    /// `OverLimit` where the corrections so far are longer than so many bytes.
    pub fn check_bytes(&self, bytes_max: u64) -> Result<()> {
        if self.corrections.len() as u64 <= bytes_max {
            return Ok(());
        }
        let what = format!("a copy differs from a snapshot by more than {bytes_max} bytes");
        Err(Error::new(ErrorCode::OverLimit, what))
    }

    /// Takes the next documents of the snapshot, packed, each with its seqno. `Unsupported` where they do not come in
    /// the order of their ids.
    pub fn documents(&mut self, body: &[u8]) -> Result<()> {
        for versions in KeyVersionsReader::new(body) {
            let versions = versions?;
            let last = self.last.get_or_insert_default();
            if !last.is_empty() && versions.id <= last.as_str() {
                let what = format!("document {:?} comes after {last:?} in a snapshot", versions.id);
                return Err(Error::new(ErrorCode::Unsupported, what));
            }
            last.clear();
            last.push_str(versions.id);
            let mut indexes = versions.indexes();
            let mine = |keys: &IndexKeys<'_>| {
                (keys.index, keys.generation) == (self.index, self.generation)
            };
            if let Some(keys) = indexes.find(mine) {
                self.document(versions, keys)?;
            }
        }
        Ok(())
    }

    /// The snapshot has no more documents: the corrections, packed, in the order of the ids. `OverLimit` where
    /// they are longer than so many bytes.
    pub fn finish(mut self, bytes_max: u64) -> Result<Bytes> {
        while let Some(row) = &self.ahead {
            let id = row.id.clone();
            self.take(&id)?;
            self.gone(&id)?;
            self.check_bytes(bytes_max)?;
        }
        Ok(self.corrections.finish())
    }

    fn document(&mut self, versions: KeyVersions<'_>, keys: IndexKeys<'_>) -> Result<()> {
        let id = versions.id.as_bytes();
        while let Some(row) = self.ahead.as_ref().filter(|row| &*row.id < id) {
            let gone = row.id.clone();
            self.take(&gone)?;
            self.gone(&gone)?;
        }
        let had = self.take(id)?;
        let here = keys.entries().filter(|entry| self.slices.contains(&entry.slice));
        let mut has: Vec<Entry> = here
            .map(|entry| (entry.slice, entry.key.to_vec(), include_hash(entry.include)))
            .collect();
        has.sort_unstable();
        if had != has {
            let out = &mut self.corrections;
            out.mutation(versions.seqno_minus_base, versions.kind, versions.id, 1);
            out.copy_index(&keys);
        }
        Ok(())
    }

    /// A document that the snapshot lacks.
    fn gone(&mut self, id: &[u8]) -> Result<()> {
        if plant::is(Plant::ResyncKeepsGhosts) {
            return Ok(());
        }
        let damaged = |_| Error::new(ErrorCode::Corrupt, "an id in a back index is not UTF-8");
        let id = std::str::from_utf8(id).map_err(damaged)?;
        // It went at the end of its vbucket or before; a vbucket that has begun again may be at zero.
        let seqno = self.cut.get(vbucket_of(id, self.cut.vbuckets())).seqno.0.max(1);
        self.corrections.mutation(seqno, MutationKind::Deletion, id, 1);
        self.corrections.index(self.index, self.generation, 0);
        Ok(())
    }

    /// All entries that the copy has of a document, which comes next in it or is not there.
    fn take(&mut self, id: &[u8]) -> Result<Vec<Entry>> {
        let mut entries = Vec::new();
        while let Some(row) = self.ahead.take_if(|row| row.id == id) {
            let of_row = packed::entries(&row.state);
            entries.extend(of_row.map(|e| (row.slice, e.key.to_vec(), e.include_hash)));
            self.ahead = self.next_row()?;
        }
        entries.sort_unstable();
        Ok(entries)
    }

    fn next_row(&mut self) -> Result<Option<Row>> {
        loop {
            let (mut id, mut state) = (Vec::new(), Vec::new());
            let mut newest = None;
            let more = self.copy.next_versions(&mut id, |cursor| {
                let (block, row) = cursor.place();
                if newest.is_some_and(|(epoch, _)| epoch >= block.epoch(row)) {
                    return;
                }
                newest = Some((block.epoch(row), cursor.slice));
                state.clear();
                if !block.is_tombstone(row) {
                    block.put_value(row, &mut state);
                }
                if !cursor.keys.low.is_empty() || cursor.keys.high.is_some() {
                    let (mut key, whole) = (Vec::new(), std::mem::take(&mut state));
                    block.put_key(row, &mut key);
                    packed::put_range(&mut state, &whole, &key, &cursor.keys);
                }
            })?;
            match newest {
                _ if !more => return Ok(None),
                Some((_, slice)) if !state.is_empty() => {
                    return Ok(Some(Row { id, slice, state }));
                }
                _ => {}
            }
        }
    }
}

#[cfg(test)]
#[path = "compare_tests.rs"]
pub(crate) mod tests;
