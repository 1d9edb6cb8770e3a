//! The order of the changes of one document within an epoch that has commits: its last change counts, whether it is in a commit or not.
//!
//! A document belongs to one vbucket, in which a mutation lies before the seqnos of a commit or after them. A transaction may have deleted
//! a document that no longer existed when it was committed: that deletion got no seqno, and any mutation of the epoch counts instead.

use std::collections::BTreeSet;

use proto::Result;
use proto::model::ids::{Epoch, Seqno, vbucket_of};
use proto::rpc::mutation::CommitMarker;

use crate::apply::documents::{Document, documents_where};
use crate::batch::EpochBatch;
use crate::late_commit::transactions::open::Parts;
use crate::tables::table::BlocksFrom;

/// The commits of an epoch among its mutations.
pub struct CommitOrder<'a> {
    vbuckets: u16,
    commits: Vec<Commit<'a>>,
}

struct Commit<'a> {
    marker: &'a CommitMarker,
    parts: Parts,
    /// Documents that a mutation after the commit changes.
    behind: BTreeSet<&'a [u8]>,
}

impl<'a> CommitOrder<'a> {
    /// Reads an epoch whose commits have these parts. Returns their order, and the last states of
    /// the documents whose mutations outrank the commits.
    pub fn read(batch: &'a EpochBatch, parts: Vec<Parts>) -> Result<(Self, Vec<Document<'a>>)> {
        let commit = |(marker, parts)| Commit { marker, parts, behind: BTreeSet::new() };
        let commits = batch.commits.iter().zip(parts).map(commit).collect();
        let mut order = Self { vbuckets: batch.mark.cut.vbuckets(), commits };
        let documents = documents_where(batch, |seqno, versions| order.counts(seqno, versions.id))?;
        Ok((order, documents))
    }

    /// True if no document of a commit is changed by a mutation after it.
    pub fn is_last(&self) -> Result<bool> {
        for commit in &self.commits {
            for id in &commit.behind {
                if commit.has(id)? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// The parts of the commits, in their order.
    pub fn parts(&self) -> impl Iterator<Item = &Parts> {
        self.commits.iter().map(|commit| &commit.parts)
    }

    /// Records the commits before a mutation. Returns true if no later commit changes the
    /// mutation's document.
    fn counts(&mut self, seqno: Seqno, id: &'a str) -> Result<bool> {
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

    /// Returns true if a document of a commit is changed again later in the epoch.
    pub fn is_later(&self, commit: usize, id: &[u8]) -> Result<bool> {
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

/// Returns true if a transaction has changed a document in any index.
pub fn has_changed(parts: &Parts, id: &[u8]) -> Result<bool> {
    for part in parts.values() {
        if part.has_changed(id, Epoch(u64::MAX), BlocksFrom::Anywhere)? {
            return Ok(true);
        }
    }
    Ok(false)
}
