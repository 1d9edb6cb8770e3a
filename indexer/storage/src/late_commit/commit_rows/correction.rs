//! Corrects the rows that were written ahead of a commit, for documents that other mutations have
//! changed meanwhile.
//!
//! The written rows of such a document add its entries after the transaction, and remove the
//! entries that it had when it was looked up. At the commit's epoch it may have other entries. So
//! three states are compared: the state found by the look-up, the state just before the epoch, and
//! the state that the transaction has written.
//!
//! - Entries that only the state before the epoch has get a tombstone.
//! - A tombstone of an entry that the document has lost meanwhile is harmless: no row exists that
//!   the tombstone hides.
//! - The counts change by the difference of the first two states.
//!
//! So the work grows with the number of changed documents, not with the size of the transaction.

use proto::Result;
use proto::model::ids::{Epoch, SliceNo};

use crate::late_commit::changes::part::OwnPart;
use crate::late_commit::commit_rows::prepared::{ChangedIds, HeldStates};
use crate::late_commit::commit_rows::states::{States, keys, without};
use crate::late_commit::commit_rows::writer::{CommitRows, CommitWriter, Target};
use crate::tables::table::BlocksFrom;

/// Number of documents that are looked up together, each in three states: fewer than for a whole
/// transaction, since states may be long.
const LOOK_UP_DOCUMENTS: usize = 512;

/// Adds the missing corrections for the documents in `changed` to rows that were written ahead.
/// `before` has the fragments in which the documents were looked up then.
pub fn correct(
    target: &Target<'_>,
    part: &OwnPart,
    (rows, before): (CommitRows, HeldStates),
    changed: &ChangedIds,
) -> Result<CommitRows> {
    let mut out = CommitWriter::behind(target, rows);
    let mut asked = Vec::new();
    for id in changed {
        // The transaction may have changed it for other indexes only.
        if part.has_changed(id, Epoch(u64::MAX), BlocksFrom::Anywhere)? {
            asked.push(out.asked(id)?);
        }
    }
    for asked in asked.chunks(LOOK_UP_DOCUMENTS) {
        let found = States::look_up(before.slices(), asked)?;
        let had = States::look_up(&target.version.slices, asked)?;
        let left =
            States::find(asked, |queries, found, bytes| part.look_up(queries, found, bytes))?;
        for (n, (id, slices)) in asked.iter().enumerate() {
            for slice in slices {
                let [found, had, left] = [&found, &had, &left].map(|of| of.of(n, *slice));
                correct_in(&mut out, (*slice, id), found, had, left);
            }
        }
        out.write_if_full()?;
    }
    out.finish()
}

fn correct_in(
    out: &mut CommitWriter<'_>,
    (slice, id): (SliceNo, &[u8]),
    found: &[u8],
    had: &[u8],
    left: &[u8],
) {
    if found == had {
        return;
    }
    for gone in without(without(keys(had), left), found) {
        out.lose(slice, gone, id);
    }
    if left.is_empty() && found.is_empty() {
        // No row was written for this document.
        out.forget(slice, id);
    }
    out.count(slice, keys(had).count(), keys(found).count());
}
