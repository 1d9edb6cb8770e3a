//! Correction of rows that were written ahead of a commit, for documents that other mutations have
//! changed meanwhile.
//!
//! The written rows of such a document add its entries after the transaction, and remove the
//! entries that it had when it was looked up. Just before the commit's epoch it may have other
//! entries. So three lists of entries are compared: those found by the earlier look-up, those just
//! before the epoch, and those that the transaction has written.
//!
//! - An entry gets a tombstone if it is only in the list just before the epoch.
//! - The tombstone of an entry that the document has lost meanwhile is harmless: no row exists
//!   that the tombstone hides.
//! - The entry counts change by the difference of the first two lists.
//!
//! So the work grows with the number of changed documents, not with the size of the transaction.

use proto::Result;
use proto::model::ids::{Epoch, SliceNo};

use crate::late_commit::changes::part::TransactionChanges;
use crate::late_commit::commit_rows::prepared::{ChangedIds, LookUpFragments};
use crate::late_commit::commit_rows::states::{FoundStates, keys, keys_not_in};
use crate::late_commit::commit_rows::writer::{CommitRows, CommitWriter, Target};
use crate::tables::table::BlocksFrom;

/// Number of documents that are looked up together, each three times. The number is lower than for
/// the first look-up of a transaction's documents, since a document may have many entries.
const LOOK_UP_DOCUMENTS: usize = 512;

/// Adds corrections for the documents in `changed` to the rows that were written ahead of a
/// commit. `before` has the fragments in which the documents were looked up at that time.
pub fn correct_rows(
    target: &Target<'_>,
    part: &TransactionChanges,
    (rows, before): (CommitRows, LookUpFragments),
    changed: &ChangedIds,
) -> Result<CommitRows> {
    let mut out = CommitWriter::continuing(target, rows);
    let mut asked = Vec::new();
    for id in changed {
        // The transaction may have changed it for other indexes only.
        if part.has_changed(id, Epoch(u64::MAX), BlocksFrom::Anywhere)? {
            asked.push(out.slices_to_look_up(id)?);
        }
    }
    for asked in asked.chunks(LOOK_UP_DOCUMENTS) {
        let found = FoundStates::look_up(before.slices(), asked)?;
        let had = FoundStates::look_up(&target.version.slices, asked)?;
        let left =
            FoundStates::find(asked, |queries, found, bytes| part.look_up(queries, found, bytes))?;
        for (n, (id, slices)) in asked.iter().enumerate() {
            for slice in slices {
                let [found, had, left] = [&found, &had, &left].map(|of| of.state_of(n, *slice));
                correct_in_slice(&mut out, (*slice, id), found, had, left);
            }
        }
        out.write_if_full()?;
    }
    out.finish()
}

/// Adds the corrections of a document in one slice. `found` are its entries at the earlier
/// look-up, `had` those just before the epoch, `left` those after the transaction.
fn correct_in_slice(
    out: &mut CommitWriter<'_>,
    (slice, id): (SliceNo, &[u8]),
    found: &[u8],
    had: &[u8],
    left: &[u8],
) {
    if found == had {
        return;
    }
    for gone in keys_not_in(keys_not_in(keys(had), left), found) {
        out.add_tombstone(slice, gone, id);
    }
    if left.is_empty() && found.is_empty() {
        // No row was written for this document.
        out.record_no_entries(slice, id);
    }
    out.change_entry_count(slice, keys(had).count(), keys(found).count());
}
