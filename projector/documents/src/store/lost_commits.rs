//! Finds the commits over several buckets of which a recovery loses this bucket's changes. Such a
//! commit is *halved* if another bucket still has its changes.

use std::path::Path;
use std::sync::Arc;

use proto::env::FileSystem;
use proto::model::ids::{BucketId, Seqno, TransactionId, VbucketId};
use proto::model::joint::PreparedTransaction;
use storage::log::Lsn;

use super::checkpoint::{CHECKPOINT_FILE, Checkpoint};
use super::paired_file::inspect;
use crate::change_log::{SeenJointStep, read_damaged_log};
use crate::record::BucketRecord;

/// A commit over several buckets whose changes in one bucket are lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostCommit {
    /// The id of the transaction.
    pub transaction: TransactionId,
    /// All buckets that the transaction has changed.
    pub participants: Vec<BucketId>,
    /// True if the log had the changes with their seqnos. False if the transaction was only
    /// prepared; then the deciding bucket may never have committed it.
    pub was_committed: bool,
}

/// Returns the commits that a bucket loses if only the log up to the LSN `from` remains, and the
/// vbuckets up to the seqnos `ends`. `record` is the record at that LSN.
pub(super) fn lost_commits(
    record: &BucketRecord,
    (ends, from): (&[Seqno], Lsn),
    seen: Vec<SeenJointStep>,
) -> Vec<LostCommit> {
    let is_beyond = |(vbucket, seqno): &(VbucketId, Seqno)| {
        ends.get(usize::from(vbucket.0)).is_none_or(|end| seqno > end)
    };
    let commits = &record.commits;
    // A transaction that is still prepared ends again, as the deciding bucket decides.
    let is_lost = |seen: &SeenJointStep| match &seen.committed {
        Some(_) if commits.find_prepared(seen.transaction).is_some() => false,
        Some(positions) => seen.at >= from || positions.iter().any(is_beyond),
        // The transaction may occur twice.
        None => seen.at >= from && commits.find_prepared(seen.transaction).is_none(),
    };
    let mut lost: Vec<_> = seen.into_iter().filter(is_lost).map(lost_commit).collect();
    for open in commits.joint() {
        let committed = &open.committed;
        let mut positions = committed.positions.iter().map(|(vbucket, end)| (*vbucket, end.seqno));
        let is_new = lost.iter().all(|lost| lost.transaction != committed.transaction);
        if is_new && positions.any(|end| is_beyond(&end)) {
            lost.push(LostCommit {
                transaction: committed.transaction,
                participants: open.participants.clone(),
                was_committed: true,
            });
        }
    }
    lost
}

/// Adds prepared transactions whose changes cannot be read to the lost commits. The lost range of
/// the log may contain the commit of such a transaction, and the commit may have been
/// acknowledged.
pub(super) fn add_unreadable(lost: &mut Vec<LostCommit>, unreadable: &[Arc<PreparedTransaction>]) {
    for prepared in unreadable {
        let transaction = prepared.transaction;
        if lost.iter().all(|lost| lost.transaction != transaction) {
            let participants = prepared.participants.clone();
            lost.push(LostCommit { transaction, participants, was_committed: false });
        }
    }
}

fn lost_commit(seen: SeenJointStep) -> LostCommit {
    let SeenJointStep { transaction, participants, committed, .. } = seen;
    LostCommit { transaction, participants, was_committed: committed.is_some() }
}

/// Returns all commits over several buckets of a bucket that is given up completely, as far as
/// its files are readable.
pub(super) fn all_commits(fs: &dyn FileSystem, dir: &Path) -> Vec<LostCommit> {
    let checkpoint: (Option<Checkpoint>, _) = inspect(fs, dir, CHECKPOINT_FILE);
    let Some(Checkpoint { log, record, .. }) = checkpoint.0 else { return Vec::new() };
    let seen = read_damaged_log(fs, &dir.join("log"), &log, &mut |_, _| Ok(()));
    let seen = seen.map_or_else(|_| Vec::new(), |salvaged| salvaged.joint);
    let mut lost: Vec<_> = seen.into_iter().map(lost_commit).collect();
    let commits = &record.commits;
    let open = commits.joint();
    let open = open.map(|joint| (joint.committed.transaction, &joint.participants, true));
    let prepared = commits.prepared().map(|one| (one.transaction, &one.participants, false));
    for (transaction, participants, was_committed) in open.chain(prepared) {
        if lost.iter().all(|lost| lost.transaction != transaction) {
            let participants = participants.clone();
            lost.push(LostCommit { transaction, participants, was_committed });
        }
    }
    lost
}
