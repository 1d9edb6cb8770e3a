//! The order of changes within an epoch that has large commits. The last change of a document
//! counts, whether it is in a commit or is a separate mutation.
//!
//! A document belongs to one vbucket, in which a mutation lies before the seqnos of a commit or
//! after them. A transaction may have deleted a document that no longer existed when the
//! transaction was committed. Such a deletion got no seqno, and any mutation of the epoch counts
//! instead.

use std::collections::BTreeSet;

use proto::Result;
use proto::model::ids::{Epoch, Seqno, vbucket_of};
use proto::rpc::mutation::CommitMarker;

use crate::apply::documents::{Document, last_changes_where};
use crate::batch::EpochBatch;
use crate::late_commit::transactions::open::ChangesByIndex;
use crate::tables::table::BlocksFrom;

/// The large commits of an epoch, in their order among its mutations.
pub struct CommitOrder<'a> {
    vbuckets: u16,
    commits: Vec<Commit<'a>>,
}

/// A commit, with the changes of its transaction.
struct Commit<'a> {
    marker: &'a CommitMarker,
    parts: ChangesByIndex,
    /// Documents that a mutation after the commit changes.
    behind: BTreeSet<&'a [u8]>,
}

impl<'a> CommitOrder<'a> {
    /// Reads an epoch whose commits have these changes. Returns the order of the commits, and the
    /// documents whose last change is a separate mutation.
    pub fn read(
        batch: &'a EpochBatch,
        parts: Vec<ChangesByIndex>,
    ) -> Result<(Self, Vec<Document<'a>>)> {
        let commit = |(marker, parts)| Commit { marker, parts, behind: BTreeSet::new() };
        let commits = batch.commits.iter().zip(parts).map(commit).collect();
        let mut order = Self { vbuckets: batch.mark.cut.vbuckets(), commits };
        let documents = last_changes_where(batch, |seqno, versions| {
            order.is_mutation_last(seqno, versions.id)
        })?;
        Ok((order, documents))
    }

    /// Returns true if no document of a commit is changed by a mutation after that commit.
    pub fn are_commits_last(&self) -> Result<bool> {
        for commit in &self.commits {
            for id in &commit.behind {
                if commit.has(id)? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Returns the changes of each commit by index, in the order of the commits.
    pub fn parts(&self) -> impl Iterator<Item = &ChangesByIndex> {
        self.commits.iter().map(|commit| &commit.parts)
    }

    /// Records for each commit before a mutation that the document was changed later. Returns true
    /// if no later commit changes the mutation's document, so that the mutation counts.
    fn is_mutation_last(&mut self, seqno: Seqno, id: &'a str) -> Result<bool> {
        let vbucket = vbucket_of(id, self.vbuckets);
        let mut counts = true;
        for commit in &mut self.commits {
            let range = commit.marker.range_of(vbucket);
            if range.is_none_or(|range| seqno > range.to) {
                commit.behind.insert(id.as_bytes());
            }
            let is_before = range.is_some_and(|range| seqno <= range.after);
            counts = counts && !(is_before && commit.has(id.as_bytes())?);
        }
        Ok(counts)
    }

    /// Returns true if a document is changed again in the epoch after the commit with this number.
    pub fn is_changed_later(&self, commit: usize, id: &[u8]) -> Result<bool> {
        if self.commits[commit].behind.contains(id) {
            return Ok(true);
        }
        for later in &self.commits[commit + 1..] {
            if later.has(id)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl Commit<'_> {
    fn has(&self, id: &[u8]) -> Result<bool> {
        has_changed(&self.parts, id)
    }
}

/// Returns true if a transaction, given by its changes, has changed a document in any index.
pub fn has_changed(parts: &ChangesByIndex, id: &[u8]) -> Result<bool> {
    for part in parts.values() {
        if part.has_changed(id, Epoch(u64::MAX), BlocksFrom::Anywhere)? {
            return Ok(true);
        }
    }
    Ok(false)
}
