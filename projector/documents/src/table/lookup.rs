//! Look-up of one document in one table.
//!
//! The versions of a document are adjacent, the newest first, perhaps in several blocks. So the search begins at
//! the last block whose first row is before the document.

use proto::Result;
use proto::model::ids::{Seqno, VbucketId, hash_id};
use storage::layers::Table;

use crate::table::dead::DeadList;
use crate::table::version::{RowView, SLICE, vbucket_of_hash};

/// A document that is looked up, and the versions of it that count.
#[derive(Clone, Copy, Debug)]
pub(super) struct DocumentQuery<'a> {
    /// Id of the document.
    pub id: &'a [u8],
    /// Hash of the id.
    pub hash: u64,
    /// Vbucket of the document.
    vbucket: VbucketId,
    /// Largest seqno that counts.
    up_to: Seqno,
}

/// The newest version of a document that counts in a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer<T> {
    /// The document was deleted by the mutation with this seqno.
    Absent(Seqno),
    /// The document is there.
    Present(T),
}

impl<T> Answer<T> {
    /// The answer for a version: a deletion or a document.
    #[inline]
    pub fn of(is_tombstone: bool, seqno: Seqno, document: impl FnOnce() -> T) -> Self {
        match is_tombstone {
            true => Self::Absent(seqno),
            false => Self::Present(document()),
        }
    }

    /// The document, if it is there.
    pub fn present(self) -> Option<T> {
        match self {
            Self::Absent(_) => None,
            Self::Present(document) => Some(document),
        }
    }
}

impl<'a> DocumentQuery<'a> {
    /// A document as of now, or as of a cut: the seqno of each vbucket.
    pub fn new(id: &'a str, vbuckets: u16, cut: Option<&[Seqno]>) -> Self {
        let hash = hash_id(id);
        let vbucket = vbucket_of_hash(hash, vbuckets);
        Self { id: id.as_bytes(), hash, vbucket, up_to: seqno_in(cut, vbucket) }
    }

    /// True if a version counts.
    #[inline]
    pub fn accepts(&self, dead: &DeadList, place: u64, seqno: Seqno) -> bool {
        seqno <= self.up_to && !dead.has(self.vbucket, place, seqno)
    }
}

/// Largest seqno of a vbucket that counts. A vbucket that a cut does not know has nothing.
pub(super) fn seqno_in(cut: Option<&[Seqno]>, vbucket: VbucketId) -> Seqno {
    match cut {
        None => Seqno(u64::MAX),
        Some(cut) => cut.get(usize::from(vbucket.0)).copied().unwrap_or_default(),
    }
}

/// Looks a document up in a sorted table; `None` if there is no version that counts.
pub(super) fn find_in_table<T>(
    table: &Table,
    wanted: &DocumentQuery<'_>,
    dead: &DeadList,
    take: &impl Fn(Seqno, [&[u8]; 2]) -> T,
) -> Result<Option<Answer<T>>> {
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
            return Ok(Some(Answer::of(found.is_tombstone, found.seqno, document)));
        }
        row += 1;
    }
}
