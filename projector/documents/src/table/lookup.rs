//! Looks up one document in one table.
//!
//! The versions of a document are adjacent, the newest first, and may be in several blocks. So
//! the search begins at the last block whose first row precedes the document.

use proto::Result;
use proto::model::ids::{Seqno, VbucketId, hash_id};
use storage::layers::Table;

use crate::table::dead::DeadList;
use crate::table::version::{RowView, SLICE, vbucket_of_hash};

/// A document to look up, and the rule for which of its versions are valid.
#[derive(Clone, Copy, Debug)]
pub(super) struct DocumentQuery<'a> {
    /// Id of the document.
    pub id: &'a [u8],
    /// Hash of the id.
    pub hash: u64,
    /// Vbucket of the document.
    vbucket: VbucketId,
    /// The largest seqno that a valid version may have.
    up_to: Seqno,
}

/// The newest valid version of a document in a table: a document or a deletion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FoundVersion<T> {
    /// The document was deleted, by the mutation with this seqno.
    Absent(Seqno),
    /// The document exists.
    Present(T),
}

impl<T> FoundVersion<T> {
    /// Creates the answer for a version, which is a deletion or a document.
    #[inline]
    pub fn of(is_tombstone: bool, seqno: Seqno, document: impl FnOnce() -> T) -> Self {
        match is_tombstone {
            true => Self::Absent(seqno),
            false => Self::Present(document()),
        }
    }

    /// Returns the document; `None` for a deletion.
    pub fn present(self) -> Option<T> {
        match self {
            Self::Absent(_) => None,
            Self::Present(document) => Some(document),
        }
    }
}

impl<'a> DocumentQuery<'a> {
    /// Creates a query for the current document with an id, or for the document as of a cut,
    /// which has the seqno of each vbucket.
    pub fn new(id: &'a str, vbuckets: u16, cut: Option<&[Seqno]>) -> Self {
        let hash = hash_id(id);
        let vbucket = vbucket_of_hash(hash, vbuckets);
        Self { id: id.as_bytes(), hash, vbucket, up_to: seqno_in(cut, vbucket) }
    }

    /// Returns true if a version is valid: it is not dead, and the cut includes it.
    #[inline]
    pub fn accepts(&self, dead: &DeadList, place: u64, seqno: Seqno) -> bool {
        seqno <= self.up_to && !dead.has(self.vbucket, place, seqno)
    }
}

/// Returns the largest seqno of a vbucket that a cut includes; without a cut, the largest number.
/// If the cut does not have the vbucket, no version is valid.
pub(super) fn seqno_in(cut: Option<&[Seqno]>, vbucket: VbucketId) -> Seqno {
    match cut {
        None => Seqno(u64::MAX),
        Some(cut) => cut.get(usize::from(vbucket.0)).copied().unwrap_or_default(),
    }
}

/// Looks up a document in a sorted table; `None` if the table has no valid version of it.
pub(super) fn find_in_table<T>(
    table: &Table,
    wanted: &DocumentQuery<'_>,
    dead: &DeadList,
    take: &impl Fn(Seqno, [&[u8]; 2]) -> T,
) -> Result<Option<FoundVersion<T>>> {
    let index = &table.index;
    let Some(section) = index.section(SLICE) else { return Ok(None) };
    let bounds = &index.sections()[section];
    let mut at = index.lower_bound(section, wanted.id).saturating_sub(1).max(bounds.first_block);
    let mut block = table.block(at)?;
    let mut row = block.lower_bound(wanted.id);
    loop {
        if row == block.rows() {
            at += 1;
            if at >= bounds.end_block {
                return Ok(None);
            }
            block = table.block(at)?;
            row = 0;
        }
        if !block.compare(row, wanted.id).is_eq() {
            return Ok(None);
        }
        let found = RowView::of(&block, row)?;
        if wanted.accepts(dead, found.place, found.seqno) {
            let document = || take(found.seqno, found.document);
            return Ok(Some(FoundVersion::of(found.is_tombstone, found.seqno, document)));
        }
        row += 1;
    }
}
