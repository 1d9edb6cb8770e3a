//! Tests of the calls of a commit to the buckets of a transaction, for each kind of answer.

use std::sync::Mutex;

use async_trait::async_trait;
use proto::lock::lock;
use proto::model::bucket::{BucketInfo, SourceKind};
use proto::model::cut::WritePosition;
use proto::model::ids::{NodeId, TransactionPlace};
use proto::rpc::api::CheckedWrites;
use proto::rpc::scan::UncommittedView;

use super::*;

/// The buckets of the transaction, of which the first decides.
const BUCKETS: [BucketId; 3] = [BucketId(2), BucketId(4), BucketId(6)];
/// The number of the commit, which is that of the changes in the first bucket.
const DECIDED: TransactionId = TransactionId(2);

/// All calls in their order: the name of the step and the bucket.
type Calls = Arc<Mutex<Vec<(&'static str, u64)>>>;

/// Scripted changes in a bucket, whose steps have the outcomes that a test sets.
struct Scripted {
    bucket: BucketInfo,
    calls: Calls,
    prepares: Result<u64>,
    commits: Result<()>,
}

impl Scripted {
    fn note(&self, step: &'static str) {
        lock(&self.calls).push((step, self.bucket.id.0));
    }

    fn reply(&self) -> WriteReply {
        let position = WritePosition { bucket: self.bucket.id, positions: Vec::new() };
        WriteReply { affected: 1, position }
    }
}

#[async_trait]
impl BucketTransaction for Scripted {
    fn id(&self) -> TransactionId {
        TransactionId(self.bucket.id.0)
    }

    fn bucket(&self) -> &BucketInfo {
        &self.bucket
    }

    fn own_changes(&self) -> Option<UncommittedView> {
        Some(UncommittedView { transaction: self.id(), place: TransactionPlace(1) })
    }

    async fn write(&self, _: Option<Epoch>, _: CheckedWrites) -> Result<u64> {
        Ok(1)
    }

    async fn rollback_to(&self, _: TransactionPlace) -> Result<()> {
        Ok(())
    }

    async fn commit(&self, _: Option<Epoch>, participants: &[BucketId]) -> Result<WriteReply> {
        assert_eq!(participants, BUCKETS);
        self.note("commit");
        self.commits.clone().map(|()| self.reply())
    }

    async fn prepare(
        &self,
        _: Option<Epoch>,
        joint: TransactionId,
        of: &[BucketId],
    ) -> Result<u64> {
        assert_eq!((joint, of), (DECIDED, &BUCKETS[..]));
        self.note("prepare");
        self.prepares.clone()
    }

    async fn decide(&self, _: TransactionId, decision: Decision) -> Result<WriteReply> {
        self.note(match decision {
            Decision::Commit { .. } => "finish",
            Decision::RollBack => "roll back",
        });
        Ok(self.reply())
    }
}

fn error(code: ErrorCode) -> Error {
    Error::new(code, "as the test wants")
}

/// Returns changes in the three buckets, in an arbitrary order.
fn parts(calls: &Calls, last_prepares: &Result<u64>, commits: &Result<()>) -> Vec<Part> {
    let part = |id: BucketId| {
        let bucket = BucketInfo::new(id, "b", 4, SourceKind::Embedded, NodeId(1));
        let prepares = if id == BUCKETS[2] { last_prepares.clone() } else { Ok(1) };
        let (calls, commits) = (Arc::clone(calls), commits.clone());
        Part { changes: Arc::new(Scripted { bucket, calls, prepares, commits }), snapshot: None }
    };
    BUCKETS.into_iter().rev().map(part).collect()
}

/// Commits changes in three buckets. Returns the code of the error, and all calls.
async fn committed(
    last_prepares: Result<u64>,
    commits: Result<()>,
) -> (Option<ErrorCode>, Vec<(&'static str, u64)>) {
    let calls = Calls::default();
    let outcome = commit_all(parts(&calls, &last_prepares, &commits)).await;
    if let Ok(replies) = &outcome {
        let buckets: Vec<_> = replies.iter().map(|reply| reply.position.bucket).collect();
        assert_eq!(buckets, BUCKETS);
    }
    let calls = lock(&calls).clone();
    (outcome.err().map(|error| error.code), calls)
}

#[tokio::test]
async fn all_others_prepare_before_the_lowest_bucket_decides_and_finish_behind_it() {
    let (failed, calls) = committed(Ok(1), Ok(())).await;
    assert_eq!(failed, None);
    let expected = [("prepare", 4), ("prepare", 6), ("commit", 2), ("finish", 4), ("finish", 6)];
    assert_eq!(calls, expected);
}

/// The log of a commit must contain its number in the deciding bucket, by which its outcome is
/// found later.
#[test]
fn a_commit_is_logged_under_its_number_in_the_bucket_that_decides() {
    let parts = parts(&Calls::default(), &Ok(1), &Ok(()));
    assert_eq!(number_of(&parts), Some(DECIDED));
}

#[tokio::test]
async fn a_bucket_that_refuses_to_prepare_takes_all_back_and_nothing_is_decided() {
    let rolled_back = [("prepare", 4), ("prepare", 6), ("roll back", 4), ("roll back", 6)];
    for (refusal, told) in [
        (ErrorCode::Conflict, ErrorCode::Conflict),
        // The commit was not decided, so the session knows more than the bucket.
        (ErrorCode::InDoubt, ErrorCode::Conflict),
    ] {
        let (failed, calls) = committed(Err(error(refusal)), Ok(())).await;
        assert_eq!((failed, &calls[..]), (Some(told), &rolled_back[..]));
    }
}

#[tokio::test]
async fn a_refusal_of_the_deciding_bucket_takes_all_back() {
    for code in [ErrorCode::Conflict, ErrorCode::OverLimit, ErrorCode::TooBusy] {
        let (failed, calls) = committed(Ok(1), Err(error(code))).await;
        assert_eq!(failed, Some(code));
        assert_eq!(calls[3..], [("roll back", 4), ("roll back", 6)]);
    }
}

#[tokio::test]
async fn without_a_refusal_nothing_is_taken_back_since_it_may_be_committed() {
    // A deciding bucket that was dropped may have committed before.
    for code in [ErrorCode::Unknown, ErrorCode::InDoubt] {
        let (failed, calls) = committed(Ok(1), Err(error(code))).await;
        assert_eq!(failed, Some(ErrorCode::InDoubt));
        assert_eq!(calls, [("prepare", 4), ("prepare", 6), ("commit", 2)]);
    }
}
