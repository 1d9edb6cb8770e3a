//! Comparison of an index with a snapshot of the source, document by document. The differences are
//! packed as key-versions: applied to the index at the compared epoch, they turn its content, the
//! *copy*, into the snapshot.
//!
//! Both sides are read in the order of the documents' ids. The caller passes the snapshot's
//! documents as it reads them. The copy's documents are read from its back index, which a flush
//! has put into fragments; only a few of its blocks are in memory. A document whose keys or
//! included values differ becomes an upsert with the snapshot's seqno. A document that the
//! snapshot lacks (deleted, or out of the index) becomes a deletion. Slices that are not on this
//! node are ignored.
//!
//! No epoch may be applied to the index between the beginning of a comparison and its corrections;
//! the follower guarantees that.

use std::collections::BTreeSet;

use bytes::Bytes;
use proto::model::cut::Cut;
use proto::model::ids::{LocalIndexId, SliceNo, vbucket_of};
use proto::plant::{self, Plant};
use proto::rpc::mutation::{
    IndexKeys, KeyVersions, KeyVersionsReader, KeyVersionsWriter, MutationKind,
};
use proto::{Error, ErrorCode, Result};

use crate::index::local_index::LocalIndex;
use crate::read::merge::Merge;
use crate::rows::packed::{self, IncludeHash, include_hash};

/// A comparison of an index with a snapshot of its source, in progress.
pub struct Comparison {
    index: LocalIndexId,
    slices: BTreeSet<SliceNo>,
    /// The end of the snapshot.
    cut: Cut,
    copy: Merge,
    /// The copy's next row; no document of the snapshot was compared with it yet.
    ahead: Option<CopyRow>,
    /// Id of the snapshot document that was compared last.
    last: Option<String>,
    corrections: KeyVersionsWriter,
}

/// The entries of a document in a slice of the copy.
struct CopyRow {
    id: Vec<u8>,
    slice: SliceNo,
    state: Vec<u8>,
}

/// An entry of a document: slice, key, hash of the included values.
type DocumentEntry = (SliceNo, Vec<u8>, Option<IncludeHash>);

impl Comparison {
    /// Begins to compare an index with a snapshot that ends at a cut. The memory of the index must
    /// have been flushed.
    pub fn begin(index: &LocalIndex, cut: Cut) -> Result<Self> {
        let version = {
            let writer = index.writer();
            if !writer.memtable.is_empty() || writer.frozen.is_some() {
                let what =
                    format!("index {} was changed while it was compared", index.info.local_id());
                return Err(Error::unavailable(what));
            }
            index.version.load_full()
        };
        let back = version.slices.values().flat_map(|fragments| fragments.back.iter().cloned());
        let mut comparison = Self {
            index: index.info.local_id(),
            slices: version.slices.keys().copied().collect(),
            cut,
            copy: Merge::new(back, false)?,
            ahead: None,
            last: None,
            corrections: KeyVersionsWriter::default(),
        };
        comparison.ahead = comparison.next_row()?;
        Ok(comparison)
    }

    /// Returns `OverLimit` if the corrections so far are longer than `bytes_max` bytes.
    pub fn check_bytes(&self, bytes_max: u64) -> Result<()> {
        if self.corrections.len() as u64 <= bytes_max {
            return Ok(());
        }
        let what = format!("the copy differs from the snapshot by more than {bytes_max} bytes");
        Err(Error::new(ErrorCode::OverLimit, what))
    }

    /// Compares the next documents of the snapshot, packed, each with its seqno. `Unsupported` if
    /// they are not in the order of their ids.
    pub fn compare_documents(&mut self, body: &[u8]) -> Result<()> {
        for versions in KeyVersionsReader::new(body) {
            let versions = versions?;
            let last = self.last.get_or_insert_default();
            if !last.is_empty() && versions.id <= last.as_str() {
                let what = format!(
                    "snapshot out of order: document {:?} comes after document {last:?}",
                    versions.id
                );
                return Err(Error::new(ErrorCode::Unsupported, what));
            }
            last.clear();
            last.push_str(versions.id);
            let mut indexes = versions.indexes();
            let mine = |keys: &IndexKeys<'_>| keys.index == self.index;
            if let Some(keys) = indexes.find(mine) {
                self.compare_document(versions, keys)?;
            }
        }
        Ok(())
    }

    /// Ends the comparison after the snapshot's last document. Returns the packed corrections in
    /// the order of the ids; `OverLimit` if they are longer than `bytes_max` bytes.
    pub fn finish(mut self, bytes_max: u64) -> Result<Bytes> {
        while let Some(row) = &self.ahead {
            let id = row.id.clone();
            self.take_copy_entries(&id)?;
            self.push_deletion(&id)?;
            self.check_bytes(bytes_max)?;
        }
        Ok(self.corrections.finish())
    }

    /// Compares one document of the snapshot, and deletes the copy's documents with smaller ids.
    fn compare_document(&mut self, versions: KeyVersions<'_>, keys: IndexKeys<'_>) -> Result<()> {
        let id = versions.id.as_bytes();
        while let Some(row) = self.ahead.as_ref().filter(|row| &*row.id < id) {
            let gone = row.id.clone();
            self.take_copy_entries(&gone)?;
            self.push_deletion(&gone)?;
        }
        let had = self.take_copy_entries(id)?;
        let here = keys.entries().filter(|entry| self.slices.contains(&entry.slice));
        let mut has: Vec<DocumentEntry> = here
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

    /// Adds a deletion of a document that the copy has and the snapshot lacks.
    fn push_deletion(&mut self, id: &[u8]) -> Result<()> {
        if plant::is(Plant::ResyncKeepsGhosts) {
            return Ok(());
        }
        let damaged =
            |_| Error::new(ErrorCode::Corrupt, "a document id in the back index is not UTF-8");
        let id = std::str::from_utf8(id).map_err(damaged)?;
        // The document was deleted at or before the end of its vbucket. A vbucket that was restarted may be at zero.
        let seqno = self.cut.get(vbucket_of(id, self.cut.vbuckets())).seqno.0.max(1);
        self.corrections.mutation(seqno, MutationKind::Deletion, id, 1);
        self.corrections.index(self.index, 0);
        Ok(())
    }

    /// Removes all entries of a document from the copy's stream and returns them. Returns an empty
    /// list if the copy lacks the document.
    fn take_copy_entries(&mut self, id: &[u8]) -> Result<Vec<DocumentEntry>> {
        let mut entries = Vec::new();
        while let Some(row) = self.ahead.take_if(|row| row.id == id) {
            let of_row = packed::entries(&row.state);
            entries.extend(of_row.map(|e| (row.slice, e.key.to_vec(), e.include_hash)));
            self.ahead = self.next_row()?;
        }
        entries.sort_unstable();
        Ok(entries)
    }

    /// Returns the next document and slice of the copy; `None` at the end.
    fn next_row(&mut self) -> Result<Option<CopyRow>> {
        loop {
            let (mut id, mut state) = (Vec::new(), Vec::new());
            let mut newest = None;
            let more = self.copy.next_versions(&mut id, |cursor| {
                let (block, row) = cursor.block_and_row();
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
                    return Ok(Some(CopyRow { id, slice, state }));
                }
                _ => {}
            }
        }
    }
}

#[cfg(test)]
#[path = "compare_tests.rs"]
pub(crate) mod tests;
