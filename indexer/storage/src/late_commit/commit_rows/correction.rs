//! Corrects the rows that were written ahead of a commit, for documents that other mutations have changed meanwhile.
//!
//! The written rows add the entries that the transaction gives such a document, and remove the entries that it had when it was looked up.
//! At the commit's epoch it may have other entries. So three states are compared: the state found by the look-up, the state just before the
//! epoch, and the state that the transaction has written.
//!
//! - Entries that only the second one has get a tombstone.
//! - A tombstone of an entry that the document has lost meanwhile is harmless: there is no row that it hides.
//! - The counts change by the difference of the first two.
//!
//! So the work grows with the documents that were changed, not with the transaction.

use proto::Result;
use proto::model::ids::{Epoch, SliceNo};

use crate::late_commit::changes::part::OwnPart;
use crate::late_commit::commit_rows::prepared::{ChangedIds, HeldStates};
use crate::late_commit::commit_rows::states::{States, keys, without};
use crate::late_commit::commit_rows::writer::{CommitRows, CommitWriter, Target};
use crate::tables::table::BlocksFrom;

/// Documents that are looked up together, each in three ways: fewer than for a whole transaction, since states may be long.
const LOOK_UP_DOCUMENTS: usize = 512;

/// Adds to rows that were written ahead what they lack for the changed documents. `before` is where documents were looked up for them.
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
