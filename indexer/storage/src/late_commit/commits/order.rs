//! The order of the changes of one document within an epoch that has commits: its last change counts, whether it is in a commit or not.
//!
//! A document belongs to one vbucket, in which a mutation lies before the seqnos of a commit or after them. A transaction may have deleted
//! a document that no longer existed when it was committed: that deletion got no seqno, and any mutation of the epoch counts instead.

use std::collections::BTreeSet;

use proto::Result;
use proto::model::ids::{Epoch, Seqno, vbucket_of};
use proto::rpc::mutation::{CommitMarker, KeyVersionsReader};

use crate::batch::{EpochBatch, Piece};
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
    /// Documents that a mutation changes after the commit.
    behind: BTreeSet<&'a [u8]>,
}

impl<'a> CommitOrder<'a> {
    /// The order in an epoch whose commits have these parts.
    pub fn new(batch: &'a EpochBatch, parts: Vec<Parts>) -> Result<Self> {
        let commit = |(marker, parts)| Commit { marker, parts, behind: BTreeSet::new() };
        let commits = batch.commits.iter().zip(parts).map(commit).collect();
        let mut order = Self { vbuckets: batch.mark.cut.vbuckets(), commits };
        for mutation in mutations(batch) {
            let (seqno, id) = mutation?;
            order.note(seqno, id);
        }
        Ok(order)
    }

    fn note(&mut self, seqno: Seqno, id: &'a str) {
        let vbucket = vbucket_of(id, self.vbuckets);
        for commit in &mut self.commits {
            let range = commit.marker.range_of(vbucket);
            if range.is_none_or(|range| seqno > range.to) {
                commit.behind.insert(id.as_bytes());
            }
        }
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

    /// True if a mutation counts against the commits: none after it changes the document.
    pub fn counts(&self, seqno: Seqno, id: &str) -> Result<bool> {
        let vbucket = vbucket_of(id, self.vbuckets);
        for commit in &self.commits {
            let range = commit.marker.range_of(vbucket);
            if range.is_some_and(|range| seqno <= range.after) && commit.has(id.as_bytes())? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// True if a document of a commit is changed again after it.
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

/// True if a transaction has changed a document, for whatever index.
pub fn has_changed(parts: &Parts, id: &[u8]) -> Result<bool> {
    for part in parts.values() {
        if part.has_changed(id, Epoch(u64::MAX), BlocksFrom::Anywhere)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The documents that an epoch's mutations change.
pub fn changed_ids(batch: &EpochBatch) -> impl Iterator<Item = Result<&str>> {
    mutations(batch).map(|mutation| mutation.map(|(_, id)| id))
}

fn mutations(batch: &EpochBatch) -> impl Iterator<Item = Result<(Seqno, &str)>> {
    batch.pieces.iter().flat_map(|Piece { body, base, after, to }| {
        let read = KeyVersionsReader::new(body).map(move |versions| {
            let versions = versions?;
            let seqno = base.0.saturating_add(versions.seqno_minus_base);
            Ok((Seqno(seqno), versions.id))
        });
        read.filter(move |mutation| {
            mutation.as_ref().map_or(true, |(seqno, _)| seqno > after && seqno <= to)
        })
    })
}
