//! The open commits of a bucket ([`proto::model::open_commit`]), as its projectors report them.
//!
//! A projector names all open commits that have a part in its vbuckets: the leading copy of an embedded bucket owns all of them. Each
//! commit is remembered with the vbuckets whose newest report has named it. A report replaces only earlier reports of the same
//! vbuckets. So:
//!
//! - A projector that has handed a vbucket over no longer reports it, and its last report counts until the next owner reports that vbucket.
//!   The next owner received the vbucket's open commits before it became the owner, so its first report names each commit that is still
//!   open. No commit is forgotten between the two reports, and no finished commit stays after the second one.
//! - A projector that owns nothing any more need not report again.
//! - Two owners may name different versions of a commit, while its producer repeats it at other positions. Both count.

use std::collections::BTreeMap;

use proto::model::assignment::VbucketSet;
use proto::model::ids::TransactionId;
use proto::model::joint::JointCommit;
use proto::model::open_commit::{CommitId, OpenCommit};
use proto::model::pushed_commit::PushedCommit;

/// The open commits of a bucket (those that no epoch has), each in all versions that projectors
/// report.
#[derive(Debug, Default)]
pub(in crate::leader) struct OpenCommits(BTreeMap<CommitId, Vec<Version>>);

/// One version of an open commit, as projectors have reported it.
#[derive(Debug)]
struct Version {
    commit: OpenCommit,
    /// The vbuckets whose owners named this version in their newest report.
    vouched: VbucketSet,
    /// The time at which the commit was first reported in this term, in milliseconds.
    since_ms: u64,
}

impl OpenCommits {
    /// Records a new report of open commits, from the projector that owns the vbuckets `kept`.
    /// The report replaces all earlier reports of these vbuckets.
    pub(in crate::leader) fn report(
        &mut self,
        kept: &VbucketSet,
        open: Vec<OpenCommit>,
        now_ms: u64,
    ) {
        for version in self.0.values_mut().flatten() {
            match version.commit {
                // The leading copy of an embedded bucket owns all vbuckets.
                OpenCommit::Joint(_) => version.vouched = VbucketSet::default(),
                OpenCommit::Pushed(_) => kept.iter().for_each(|v| version.vouched.remove(v)),
            }
        }
        for named in open {
            let here = match &named {
                OpenCommit::Joint(_) => kept.clone(),
                OpenCommit::Pushed(commit) => {
                    let parts = commit.parts.iter().map(|part| part.vbucket);
                    parts.filter(|vbucket| kept.contains(*vbucket)).collect()
                }
            };
            let versions = self.0.entry(named.id()).or_default();
            let since_ms = versions.iter().map(|known| known.since_ms).min().unwrap_or(now_ms);
            match versions.iter_mut().find(|known| known.commit == named) {
                Some(known) if known.vouched.is_empty() => known.vouched = here,
                Some(known) => here.iter().for_each(|vbucket| known.vouched.insert(vbucket)),
                None => {
                    if let OpenCommit::Pushed(commit) = &named {
                        tracing::debug!(transaction = %commit.transaction, "a commit of a producer is open");
                    }
                    versions.push(Version { commit: named, vouched: here, since_ms });
                }
            }
        }
        self.0.retain(|_, versions| {
            versions.retain(|version| !version.vouched.is_empty());
            !versions.is_empty()
        });
    }

    /// Iterates over the commits. A commit of a producer may appear in several versions.
    pub(in crate::leader) fn iter(&self) -> impl Iterator<Item = &OpenCommit> {
        self.0.values().flatten().map(|version| &version.commit)
    }

    /// Iterates over the joint commits (of transactions over several buckets).
    pub(in crate::leader) fn joint(&self) -> impl Iterator<Item = &JointCommit> {
        self.iter().filter_map(OpenCommit::joint)
    }

    /// Iterates over the commits of producers (of transactions in a pushed bucket).
    pub(in crate::leader) fn pushed(&self) -> impl Iterator<Item = &PushedCommit> {
        self.iter().filter_map(OpenCommit::pushed)
    }

    /// Finds a joint commit (of a transaction over several buckets) by its transaction.
    pub(in crate::leader) fn find_joint(&self, transaction: TransactionId) -> Option<&JointCommit> {
        self.0.get(&CommitId::Joint(transaction))?.first()?.commit.joint()
    }

    /// Returns the time at which a joint commit was first reported in this term, in milliseconds.
    pub(in crate::leader) fn joint_since_ms(&self, transaction: TransactionId) -> Option<u64> {
        let versions = self.0.get(&CommitId::Joint(transaction))?;
        versions.iter().map(|version| version.since_ms).min()
    }
}
