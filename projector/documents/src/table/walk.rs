//! Walks over all documents of a table in the order of their ids, as of one moment.
//!
//! A walk freezes the memtable and keeps the tables and the dead list of that moment. These never
//! change, and deleted files stay readable for the walk. The moment is fixed quickly; the frozen
//! memtable is sorted when the walk begins.

use std::sync::Arc;

use bytes::Bytes;
use proto::model::ids::{Seqno, VbucketId};
use proto::rpc::scan::KeyRange;
use proto::{Error, Result};
use storage::fragment::filter_hash;
use storage::layers::{Block, Merge, Source};

use crate::table::dead::DeadList;
use crate::table::document_table::DocumentTable;
use crate::table::files::with_hint;
use crate::table::lookup::seqno_in;
use crate::table::runs::sources;
use crate::table::tables::Tables;
use crate::table::version::{RowView, id_text, vbucket_of_hash};

/// The largest memory in bytes that is reserved in advance for a chunk of documents.
const RESERVED_BYTES_MAX: usize = 4 << 20;

/// The contents of a table as of one moment, over which walks can begin.
#[derive(Clone, Debug)]
pub struct TableMoment {
    tables: Arc<Tables>,
}

impl TableMoment {
    /// Returns the approximate number of documents; a replaced document may be counted twice.
    pub fn documents_about(&self) -> u64 {
        self.tables.documents_about()
    }
}

/// A walk over all documents in the order of their ids, as of one moment.
#[derive(Clone)]
pub struct DocumentWalk {
    merge: Merge,
    filter: WalkFilter,
    /// The id of the last document whose versions were read; empty before the first.
    id: Vec<u8>,
    /// True if the result for `id` is known, so that its older versions are skipped.
    is_decided: bool,
    is_begun: bool,
    /// The error that ended the walk.
    failure: Option<Error>,
    documents_about: u64,
}

/// The rule for which versions are valid in a walk.
#[derive(Clone)]
struct WalkFilter {
    dead: Arc<DeadList>,
    cut: Option<Arc<[Seqno]>>,
    vbuckets: u16,
    /// The vbucket of the document that is being read; not set if the rule does not depend on it.
    vbucket: VbucketId,
    up_to: Seqno,
}

impl WalkFilter {
    fn is_trivial(&self) -> bool {
        self.cut.is_none() && self.dead.is_empty()
    }

    fn begin(&mut self, id: &[u8]) {
        if !self.is_trivial() {
            self.vbucket = vbucket_of_hash(filter_hash(id), self.vbuckets);
            self.up_to = seqno_in(self.cut.as_deref(), self.vbucket);
        }
    }

    fn accepts(&self, version: &RowView<'_>) -> bool {
        version.seqno <= self.up_to && !self.dead.has(self.vbucket, version.place, version.seqno)
    }
}

/// Some documents of a walk, stored in one buffer.
#[derive(Clone, Debug, Default)]
pub struct DocumentChunk {
    bytes: Bytes,
    rows: Vec<ChunkRow>,
}

/// The ends of a document's id and of its text in the buffer.
#[derive(Clone, Copy, Debug)]
struct ChunkRow {
    seqno: Seqno,
    id_end: usize,
    end: usize,
}

/// A document of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WalkedDocument<'a> {
    /// Id of the document.
    pub id: &'a str,
    /// Seqno of the mutation that wrote the document.
    pub seqno: Seqno,
    /// The text of the document as its client sent it.
    pub document: &'a [u8],
}

impl DocumentChunk {
    /// Returns the number of documents; 0 at the end of the walk.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Returns true if the chunk has no documents, which means the end of the walk.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Returns the documents, in the order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = WalkedDocument<'_>> {
        let mut from = 0;
        self.rows.iter().map(move |row| {
            let id = std::str::from_utf8(&self.bytes[from..row.id_end]).unwrap_or_default();
            let document = &self.bytes[row.id_end..row.end];
            from = row.end;
            WalkedDocument { id, seqno: row.seqno, document }
        })
    }

    /// Returns a document of this chunk as a buffer that shares the chunk's memory.
    pub fn shared(&self, document: &WalkedDocument<'_>) -> Bytes {
        self.bytes.slice_ref(document.document)
    }
}

impl DocumentTable {
    /// Returns the present contents of the table, without reading or sorting anything.
    pub fn fix_moment(&self) -> TableMoment {
        TableMoment { tables: self.freeze() }
    }

    /// Begins a walk over the present documents, or over those as of a cut. The walk begins at
    /// the first id, or after the id `after`. The memory and the files of the present moment are
    /// retained for the walk.
    pub fn walk(&self, after: Option<&str>, cut: Option<Arc<[Seqno]>>) -> Result<DocumentWalk> {
        self.walk_at(self.fix_moment(), after, cut)
    }

    /// Begins a walk over the documents of a fixed moment of this table.
    pub fn walk_at(
        &self,
        TableMoment { tables }: TableMoment,
        after: Option<&str>,
        cut: Option<Arc<[Seqno]>>,
    ) -> Result<DocumentWalk> {
        let fragments = tables.fragments.iter().map(|fragment| &fragment.table);
        let runs = self.sort(&tables.runs)?;
        let range = match after {
            None => KeyRange::all(),
            // The least id after the given one.
            Some(after) => KeyRange { low: [after.as_bytes(), &[0]].concat().into(), high: None },
        };
        let sources = sources(fragments.chain(&runs));
        let ranged = sources.into_iter().map(|source| Source { range: range.clone(), ..source });
        let merge = Merge::new(ranged, false).map_err(with_hint)?;
        let dead = Arc::clone(&tables.dead);
        let (vbucket, up_to) = (VbucketId(0), Seqno(u64::MAX));
        let filter = WalkFilter { dead, cut, vbuckets: self.vbuckets, vbucket, up_to };
        let documents_about = tables.documents_about();
        drop(tables);
        self.merge_runs()?;
        Ok(DocumentWalk {
            merge,
            filter,
            id: Vec::new(),
            is_decided: false,
            is_begun: false,
            failure: None,
            documents_about,
        })
    }
}

impl DocumentWalk {
    /// Returns the next documents: about `bytes` bytes, but at least one document; empty at the
    /// end. An error ends the walk, and later calls return it again.
    pub fn next_chunk(&mut self, bytes: usize) -> Result<DocumentChunk> {
        if let Some(error) = &self.failure {
            return Err(error.clone());
        }
        let chunk = self.read_chunk(bytes).map_err(with_hint);
        // A merge that continued after an unreadable block would leave its documents out.
        self.failure = chunk.as_ref().err().cloned();
        chunk
    }

    fn read_chunk(&mut self, bytes: usize) -> Result<DocumentChunk> {
        let mut out = Vec::with_capacity(bytes.min(RESERVED_BYTES_MAX));
        let mut rows = Vec::new();
        while rows.is_empty() || out.len() < bytes {
            let Some(cursor) = self.merge.next_row() else { break };
            let (block, row) = cursor.block_and_row();
            if !self.is_begun || block.compare(row, &self.id).is_ne() {
                (self.is_begun, self.is_decided) = (true, false);
                self.id.clear();
                block.put_entry(row, &mut self.id);
                self.filter.begin(&self.id);
            }
            if !self.is_decided {
                self.is_decided = take(&self.filter, &self.id, (block, row), &mut out, &mut rows)?;
            }
            self.merge.skip_row()?;
        }
        Ok(DocumentChunk { bytes: out.into(), rows })
    }

    /// Returns the approximate number of documents; a replaced document may be counted twice.
    pub fn documents_about(&self) -> u64 {
        self.documents_about
    }
}

/// Appends the document of a version to `out` and `rows`, if the version is valid. Returns true
/// if the version is valid, even if it is a deletion.
fn take(
    filter: &WalkFilter,
    id: &[u8],
    (block, row): (&Block, u32),
    out: &mut Vec<u8>,
    rows: &mut Vec<ChunkRow>,
) -> Result<bool> {
    let version = RowView::of(block, row)?;
    if !filter.accepts(&version) {
        return Ok(false);
    }
    if !version.is_tombstone {
        id_text(id)?;
        out.extend_from_slice(id);
        let id_end = out.len();
        version.document.iter().for_each(|piece| out.extend_from_slice(piece));
        rows.push(ChunkRow { seqno: version.seqno, id_end, end: out.len() });
    }
    Ok(true)
}

impl std::fmt::Debug for DocumentWalk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "DocumentWalk(about {} documents)", self.documents_about)
    }
}
