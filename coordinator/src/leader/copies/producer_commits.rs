//! The open commits of a bucket's producer, as the owners of its vbuckets report them.
//!
//! An owner names all open commits that have a part in its vbuckets ([`proto::model::pushed_commit`]). Each commit is remembered with the vbuckets
//! whose newest report has named it. A report replaces only earlier reports of the same vbuckets. So:
//!
//! - A projector that has handed a vbucket over no longer reports it, and its last report counts until the next owner reports that vbucket.
//!   The next owner received the vbucket's open commits before it became the owner, so its first report names each commit that is still
//!   open. No commit is forgotten between the two reports, and no finished commit stays after the second one.
//! - A projector that owns nothing any more need not report again.
//! - Two owners may name different versions of a commit, while its producer repeats it at other positions. Both count.

use std::collections::BTreeMap;

use proto::model::assignment::VbucketSet;
use proto::model::ids::ProducerTransactionId;
use proto::model::pushed_commit::PushedCommit;

/// The open commits of a bucket's producer.
#[derive(Debug, Default)]
pub(in crate::leader) struct ProducerCommits(
    BTreeMap<ProducerTransactionId, Vec<(PushedCommit, VbucketSet)>>,
);

impl ProducerCommits {
    /// Takes over the report of a projector that owns these vbuckets.
    pub(in crate::leader) fn report(&mut self, kept: &VbucketSet, open: Vec<PushedCommit>) {
        for versions in self.0.values_mut() {
            for (_, vouched) in versions.iter_mut() {
                kept.iter().for_each(|vbucket| vouched.remove(vbucket));
            }
        }
        for commit in open {
            let here = commit.parts.iter().map(|part| part.vbucket).filter(|v| kept.contains(*v));
            let here: VbucketSet = here.collect();
            let versions = self.0.entry(commit.transaction).or_default();
            match versions.iter_mut().find(|(known, _)| *known == commit) {
                Some((_, vouched)) => here.iter().for_each(|vbucket| vouched.insert(vbucket)),
                None => {
                    tracing::debug!(transaction = %commit.transaction, "a commit of a producer is open");
                    versions.push((commit, here));
                }
            }
        }
        self.0.retain(|_, versions| {
            versions.retain(|(_, vouched)| !vouched.is_empty());
            !versions.is_empty()
        });
    }

    /// True if there are none.
    pub(in crate::leader) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Iterates over the open commits. A commit may appear in several versions.
    pub(in crate::leader) fn iter(&self) -> impl Iterator<Item = &PushedCommit> {
        self.0.values().flatten().map(|(commit, _)| commit)
    }
}
