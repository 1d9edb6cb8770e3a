//! The steps with which a follower's writer changes its copy of a bucket: a rewind to the
//! leader's history, and the storing of the leader's mutations, documents and commits.
//!
//! A complete copy is at a *group boundary*, and so at a cut that splits no statement: a session
//! begins at such a boundary, and the copy receives complete groups from there on. Before the
//! session's beginning, the copy may have newer mutations in one vbucket than in another, and may
//! have partial vbuckets ([`documents::record::is_partial`]).
//!
//! A rewind to the leader's history also stores the leader's commits whose mutations the copy
//! has. Other commits of the leader arrive in the next step, together with their mutations.

use std::sync::Arc;

use proto::model::commits::NewestCommits;
use proto::model::history::{Branches, SourceHistory, common_end};
use proto::model::ids::{Seqno, VbucketId};
use proto::plant::{self, Plant};
use proto::rpc::api::{CopiedGroup, CopiedMutation};
use proto::{Error, ErrorCode, Result};

use crate::source::groups::gate::ClosedGate;
use crate::source::view::bucket::Bucket;
use crate::source::writer::Writer;
use crate::source::{Mutation, StoredDocument};
use documents::document_store::{Batch, ShowBatch};
use documents::record::{BucketRecord, is_partial};

/// Returns the index of a vbucket in a list of all vbuckets.
fn index_of_vbucket(vbucket: VbucketId) -> usize {
    usize::from(vbucket.0)
}

/// Converts a mutation that was received from the leader.
fn received_mutation(copied: CopiedMutation) -> Arc<Mutation> {
    let CopiedMutation { vbucket, seqno, id, kind, document } = copied;
    Arc::new(Mutation::new((vbucket, seqno), Arc::from(id), kind, document))
}

/// Returns an error unless this projector follows a leader in the bucket.
fn check_is_follower(bucket: &Bucket) -> Result<()> {
    match bucket.has_ended() || bucket.is_leader() {
        true => Err(Error::unavailable("this projector does not follow in the bucket any more")),
        false => Ok(()),
    }
}

/// Mutations that are in the log and not in the document table yet.
pub struct LoggedMutations<'b> {
    mutations: Vec<Arc<Mutation>>,
    show: ShowBatch,
    /// The guard of the bucket's closed gate: no other group is in progress. A change of the
    /// bucket's role waits until the guard is dropped, because it reopens the documents.
    _gate: ClosedGate<'b>,
}

impl Writer {
    /// Begins the branches of a new term in a bucket that this projector leads, and stores them.
    pub fn begin_term(&self, bucket: &Bucket, branches: Vec<Branches>) -> Result<()> {
        let _gate = bucket.gate.close();
        if bucket.has_ended() || !bucket.is_leader() {
            return Err(Error::unavailable("another copy leads the bucket by now"));
        }
        let record = bucket.record_with(branches.clone(), (*bucket.ownership()).clone());
        // A store that could not write a change accepts no more until it is opened again.
        self.store.put_records(&[record]).inspect_err(|_| self.failed.notify_one())?;
        bucket.set_branches(branches);
        (self.on_change)(bucket.info.id);
        Ok(())
    }

    /// Rewinds a copy to the history of its leader, in one step: removes the mutations that the
    /// leader does not have. `may_empty` allows to empty a vbucket that is partial, or that
    /// cannot be rewound because its earlier documents were purged. Without `may_empty`, such a
    /// vbucket causes the error `OutOfOrder`.
    ///
    /// The step also stores the leader's commits whose mutations the copy has. A rewind may
    /// remove the end of a prepared transaction. The same step then makes the transaction
    /// prepared again, as at the leader, because the copy may become the leader before any other
    /// step.
    pub fn rewind_copy(
        &self,
        bucket: &Bucket,
        (leader, commits): (&SourceHistory, &NewestCommits),
        may_empty: bool,
    ) -> Result<()> {
        let _gate = bucket.gate.close();
        check_is_follower(bucket)?;
        if may_empty {
            self.empty_partial_copies(bucket)?;
        }
        let back: Vec<(VbucketId, Seqno)> = ends_beyond_leader(bucket, leader).collect();
        if back.is_empty() || plant::is(Plant::CopyKeepsTail) {
            return Ok(());
        }
        let mut branches = bucket.branches();
        for (vbucket, common) in &back {
            let theirs = leader.logs.get(*vbucket).cloned().unwrap_or_default();
            branches[index_of_vbucket(*vbucket)] = theirs;
            branches[index_of_vbucket(*vbucket)].retain(|(_, began)| Seqno(*began) <= *common);
        }
        let record = bucket.record_with(branches.clone(), (*bucket.ownership()).clone());
        let commits = commits_up_to(bucket, commits, &back);
        let record = BucketRecord { commits: commits.clone(), ..record };
        match self.store.rewind(&record, &back) {
            Ok(()) => {
                bucket.lose_history(branches, &back);
                bucket.set_commits(commits);
            }
            Err(error) if error.code == ErrorCode::OutOfOrder && may_empty => {
                for (vbucket, _) in back {
                    self.empty_vbucket(bucket, vbucket)?;
                }
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Empties the partial vbuckets of a copy.
    fn empty_partial_copies(&self, bucket: &Bucket) -> Result<()> {
        let (durable, branches) = (bucket.durable(), bucket.branches());
        for (vbucket, end) in durable.iter() {
            if is_partial(&branches[index_of_vbucket(vbucket)], end.seqno) {
                self.empty_vbucket(bucket, vbucket)?;
            }
        }
        Ok(())
    }

    /// Removes all data of a vbucket.
    fn empty_vbucket(&self, bucket: &Bucket, vbucket: VbucketId) -> Result<()> {
        let mut branches = bucket.branches();
        branches[index_of_vbucket(vbucket)].clear();
        let record = bucket.record_with(branches.clone(), (*bucket.ownership()).clone());
        self.store.remove_vbucket(&record, vbucket)?;
        bucket.set_copied(branches, [(vbucket, Seqno(0))]);
        Ok(())
    }

    /// Starts the copying of vbuckets whose logs the leader has purged up to these seqnos. The
    /// next step must store their documents.
    pub fn begin_partial_vbuckets(
        &self,
        bucket: &Bucket,
        purged: &[(VbucketId, Seqno)],
    ) -> Result<()> {
        let _gate = bucket.gate.close();
        check_is_follower(bucket)?;
        for (vbucket, purged) in purged {
            if bucket.has_data(*vbucket) {
                self.empty_vbucket(bucket, *vbucket)?;
            }
            let branches = bucket.branches();
            let record = bucket.record_with(branches.clone(), (*bucket.ownership()).clone());
            self.store.begin_purged(&record, *vbucket, *purged)?;
            bucket.set_copied(branches, [(*vbucket, *purged)]);
        }
        Ok(())
    }

    /// Stores documents of vbuckets that are being copied, and are partial until the copying is
    /// complete.
    pub fn put_copied_documents(
        &self,
        bucket: &Bucket,
        documents: &[StoredDocument],
    ) -> Result<()> {
        let _gate = bucket.gate.close();
        check_is_follower(bucket)?;
        self.store.put_documents(bucket.info.id, documents)
    }

    /// Stores a range of a vbucket's log. If the range completes the vbucket, also stores its
    /// branches, which are those in `known`.
    pub fn put_log_range(
        &self,
        bucket: &Bucket,
        vbucket: VbucketId,
        log: Vec<CopiedMutation>,
        known: Option<&Branches>,
    ) -> Result<()> {
        let _gate = bucket.gate.close();
        check_is_follower(bucket)?;
        let end = bucket.durable().get(vbucket).seqno;
        let mutations: Vec<_> = log.into_iter().map(received_mutation).collect();
        let mut before = end;
        let follows = |m: &Arc<Mutation>| {
            let follows = directly_follows(before, m.seqno) && m.vbucket == vbucket;
            before = m.seqno;
            follows
        };
        if !mutations.iter().all(follows) {
            return Err(out_of_order_error(vbucket, end));
        }
        let end = mutations.last().map_or(end, |mutation| mutation.seqno);
        let mut branches = bucket.branches();
        branches[index_of_vbucket(vbucket)] = known.cloned().unwrap_or_default();
        branches[index_of_vbucket(vbucket)].retain(|(_, began)| Seqno(*began) <= end);
        let record = bucket.record_with(branches.clone(), (*bucket.ownership()).clone());
        let batch = Batch { mutations, record: Some(record), ..Batch::default() };
        self.store.commit(bucket.info.id, batch).inspect_err(|_| self.failed.notify_one())?;
        bucket.set_copied(branches, [(vbucket, end)]);
        Ok(())
    }

    /// Stores, in one step, all mutations that a copy in sync lacks up to a place in the leader's
    /// history. One step is needed because such a copy may become the leader at any moment: it
    /// must always end at the end of a group, with the commits of all its transactions.
    pub fn put_missing_mutations(
        &self,
        bucket: &Bucket,
        missing: Vec<CopiedMutation>,
        (base, commits): (&SourceHistory, NewestCommits),
    ) -> Result<()> {
        let _gate = bucket.gate.close();
        check_is_follower(bucket)?;
        let mutations: Vec<_> = missing.into_iter().map(received_mutation).collect();
        let ends = check_order(bucket, &mutations)?;
        let branches = branches_of(base);
        let record = bucket.record_with(branches.clone(), (*bucket.ownership()).clone());
        let record = BucketRecord { commits: commits.clone(), ..record };
        let batch = Batch { mutations, record: Some(record), ..Batch::default() };
        self.store.commit(bucket.info.id, batch).inspect_err(|_| self.failed.notify_one())?;
        bucket.set_copied(branches, (0..).map(VbucketId).zip(ends));
        bucket.set_commits(commits);
        Ok(())
    }

    /// Stores the branches and the commits of the leader at the beginning of a session. The copy's
    /// mutations must equal the leader's at that place.
    pub fn adopt_leader_branches(
        &self,
        bucket: &Bucket,
        base: &SourceHistory,
        commits: &NewestCommits,
    ) -> Result<()> {
        let _gate = bucket.gate.close();
        check_is_follower(bucket)?;
        let is_there = |(vbucket, position): (VbucketId, proto::model::cut::Position)| {
            base.durable.get(vbucket).seqno == position.seqno
        };
        if let Some((vbucket, position)) = bucket.durable().iter().find(|end| !is_there(*end))
            && !plant::is(Plant::CopyKeepsTail)
        {
            return Err(out_of_order_error(vbucket, position.seqno));
        }
        let branches = branches_of(base);
        if branches != bucket.branches() || *commits != bucket.commits() {
            let ownership = (*bucket.ownership()).clone();
            let record = bucket.record_with(branches.clone(), ownership);
            let record = BucketRecord { commits: commits.clone(), ..record };
            self.store.put_records(&[record])?;
            bucket.set_branches(branches);
            bucket.set_commits(commits.clone());
        }
        Ok(())
    }

    /// Makes groups durable in the log. The caller must call [`Self::make_groups_visible`] next.
    pub fn append_groups<'b>(
        &self,
        bucket: &'b Bucket,
        groups: Vec<CopiedGroup>,
    ) -> Result<LoggedMutations<'b>> {
        let gate = bucket.gate.close();
        check_is_follower(bucket)?;
        let (mut mutations, mut commits) = (Vec::new(), Vec::new());
        for group in groups {
            mutations.extend(group.mutations.into_iter().map(received_mutation));
            commits.extend(group.commits);
        }
        check_order(bucket, &mutations)?;
        let batch = Arc::new(Batch { mutations, commits, ..Batch::default() });
        let show = self.store.log(bucket.info.id, &batch);
        let show = show.inspect_err(|_| self.failed.notify_one())?;
        bucket.add_copied_mutations(&batch.mutations, &batch.commits);
        Ok(LoggedMutations { mutations: batch.mutations.clone(), show, _gate: gate })
    }

    /// Adds the mutations of groups that are already in the log to the document table, and makes
    /// them visible.
    pub fn make_groups_visible(&self, bucket: &Bucket, appended: LoggedMutations<'_>) {
        let shown = (appended.show)();
        if let Err(error) = shown {
            let count = appended.mutations.len();
            tracing::error!(bucket = %bucket.info.name, count, %error, "a copy could not take its groups");
            self.failed.notify_one();
        }
    }
}

/// Returns the commits of the leader whose mutations a copy still has after a rewind to `back`.
fn commits_up_to(
    bucket: &Bucket,
    commits: &NewestCommits,
    back: &[(VbucketId, Seqno)],
) -> NewestCommits {
    let mut commits = commits.clone();
    bucket
        .durable()
        .iter()
        .for_each(|(vbucket, end)| commits.remove_lost_commits(vbucket, end.seqno));
    back.iter().for_each(|(vbucket, to)| commits.remove_lost_commits(*vbucket, *to));
    commits
}

/// Returns the branches of each vbucket in a leader's history.
fn branches_of(base: &SourceHistory) -> Vec<Branches> {
    base.logs.iter().map(|(_, branches)| branches.clone()).collect()
}

/// Returns the vbuckets in which the copy has mutations that are not in its leader's history,
/// each with the last seqno that both histories share.
pub fn ends_beyond_leader<'b>(
    bucket: &Bucket,
    leader: &'b SourceHistory,
) -> impl Iterator<Item = (VbucketId, Seqno)> + use<'b> {
    let (durable, branches) = (bucket.durable(), bucket.branches());
    let ends: Vec<_> = durable.iter().map(|(vbucket, end)| (vbucket, end.seqno)).collect();
    ends.into_iter().zip(branches).filter_map(move |((vbucket, end), mine)| {
        let last = leader.durable.get(vbucket).seqno;
        let common = common_end(&mine, leader.logs.get(vbucket)?).min(end).min(last);
        (common < end).then_some((vbucket, common))
    })
}

/// Returns the last seqno of each vbucket after these mutations. An error if the mutations do not
/// directly follow the bucket's last ones.
fn check_order(bucket: &Bucket, mutations: &[Arc<Mutation>]) -> Result<Vec<Seqno>> {
    let mut ends: Vec<Seqno> = bucket.durable().iter().map(|(_, end)| end.seqno).collect();
    for mutation in mutations {
        let Some(end) = ends.get_mut(index_of_vbucket(mutation.vbucket)) else {
            return Err(out_of_order_error(mutation.vbucket, Seqno(0)));
        };
        if !directly_follows(*end, mutation.seqno) && !plant::is(Plant::CopyKeepsTail) {
            return Err(out_of_order_error(mutation.vbucket, *end));
        }
        *end = mutation.seqno;
    }
    Ok(ends)
}

/// Returns true if `seqno` directly follows `end`; no seqno follows the largest number.
fn directly_follows(end: Seqno, seqno: Seqno) -> bool {
    end.0.checked_add(1) == Some(seqno.0)
}

fn out_of_order_error(vbucket: VbucketId, end: Seqno) -> Error {
    let what = format!("vbucket {vbucket}: what the leader sends does not follow seqno {end}");
    Error::new(ErrorCode::OutOfOrder, what)
}

#[cfg(test)]
#[path = "apply_tests.rs"]
mod tests;
