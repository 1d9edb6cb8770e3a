//! When a joint commit is open, and what other buckets report about it.

use std::time::Duration;

use documents::ownership::Ownership;
use documents::record::BucketRecord;
use proto::model::bucket::{BucketInfo, SourceKind};
use proto::model::commits::{NewestCommits, TransactionEvent};
use proto::model::cut::Position;
use proto::model::ids::{NodeId, Seqno, VbucketId, Vbuuid};

use super::*;

const OWN: BucketId = BucketId(1);
const SECOND: BucketId = BucketId(2);
const THIRD: BucketId = BucketId(3);

/// A joint commit of all three buckets, which has changed a document of this one or none.
fn joint(has_changes: bool) -> OpenCommit {
    let end = Position { vbuuid: Vbuuid(7), seqno: Seqno(4) };
    let positions = has_changes.then_some((VbucketId(0), end)).into_iter().collect();
    let committed = CommittedTransaction { transaction: TransactionId(5), affected: 1, positions };
    OpenCommit::Joint(JointCommit { committed, participants: vec![OWN, SECOND, THIRD] })
}

fn bucket(commit: &OpenCommit) -> Bucket {
    let info = BucketInfo::new(OWN, "b", 1, SourceKind::Embedded, NodeId(1));
    let mut commits = NewestCommits::default();
    commits.apply_event(&TransactionEvent::Opened(commit.clone()));
    let ownership = Ownership { owned: VbucketSet::all(1), ..Ownership::default() };
    let branches = vec![[(Vbuuid(7), 0)].into()];
    let record = BucketRecord { info, branches, ownership, given_up: Default::default(), commits };
    let bucket = Bucket::new(record, &[Seqno(9)], 1 << 20);
    bucket.start_ages();
    bucket
}

fn note(bucket: &Bucket, commit: &OpenCommit, other: BucketId, state: PartState) {
    bucket.record_parts(commit, &[(Participant::Bucket(other), state)]);
}

#[tokio::test(start_paused = true)]
async fn empty_part_ends_when_all_others_have_the_commit() {
    let commit = joint(false);
    let bucket = bucket(&commit);
    tokio::time::sleep(JOINT_LATE_AFTER).await;
    let both = vec![Participant::Bucket(SECOND), Participant::Bucket(THIRD)];
    for _ in 0..2 {
        assert_eq!(bucket.commits_to_query(9), [(commit.clone(), both.clone())]);
        note(&bucket, &commit, SECOND, PartState::Shown);
        assert_eq!(bucket.settled(), [], "the third one has not answered in this turn");
    }
    note(&bucket, &commit, THIRD, PartState::Shown);
    assert_eq!(bucket.settled(), [commit]);
}

#[tokio::test(start_paused = true)]
async fn only_a_lost_part_makes_a_commit_halved() {
    let commit = joint(true);
    let bucket = bucket(&commit);
    note(&bucket, &commit, SECOND, PartState::Shown);
    note(&bucket, &commit, SECOND, PartState::Lost);
    assert_eq!(bucket.halved_commits(), []);
    note(&bucket, &commit, THIRD, PartState::Lost);
    let transaction = TransactionId(5);
    assert_eq!(
        bucket.halved_commits(),
        [PartlyLostCommit { transaction, bucket: OWN, lost_in: THIRD }]
    );
    let report = bucket.report().expect("a report");
    assert_eq!(report.joint()[0].others(OWN).count(), 0, "no other bucket is waited for");
    assert_eq!(bucket.settled(), [], "no epoch of this bucket has it");
    tokio::time::sleep(JOINT_LATE_AFTER + Duration::from_secs(1)).await;
    assert_eq!(bucket.commits_to_query(9), [], "there is nothing to ask");
}
