//! The calls by which producers write into their buckets: mutations, transactions and commits.
//!
//! A vbucket may be handed over to another node during a call. A call is sent to the present
//! owners of its vbuckets. For the vbuckets that no owner has accepted, the call is repeated for
//! at most `NOT_HOME_WAIT`. An owner that has accepted its vbuckets does not receive them again.

use std::collections::BTreeSet;

use proto::model::bucket::BucketInfo;
use proto::model::ids::{ProducerTransactionId, VbucketId};
use proto::model::pushed_commit::PushedCommit;
use proto::rpc::api::{
    PushReply, PushRequest, PushedCommitRequest, PushedStep, TransactionPush, TransactionPushed,
};
use proto::{Error, ErrorCode, Result};
use tokio::time::Instant;

use super::source_calls::{NOT_HOME_PAUSE, NOT_HOME_WAIT, SourceCalls, in_doubt};

/// A request, of which only those vbuckets remain whose owners have not accepted it yet.
trait PendingRequest: Clone {
    /// Removes the vbuckets in `taken` from the request, because their owners have accepted it.
    fn remove_vbuckets(&mut self, taken: &BTreeSet<VbucketId>);
    /// Returns true if the owners of all vbuckets have accepted the request.
    fn is_accepted(&self) -> bool;
}

impl PendingRequest for PushRequest {
    fn remove_vbuckets(&mut self, taken: &BTreeSet<VbucketId>) {
        self.branches.retain(|(vbucket, _)| !taken.contains(vbucket));
        self.mutations.retain(|mutation| !taken.contains(&mutation.vbucket));
    }

    fn is_accepted(&self) -> bool {
        self.mutations.is_empty() && self.branches.is_empty()
    }
}

impl PendingRequest for TransactionPush {
    fn remove_vbuckets(&mut self, taken: &BTreeSet<VbucketId>) {
        self.mutations.retain(|mutation| !taken.contains(&mutation.vbucket));
    }

    fn is_accepted(&self) -> bool {
        self.mutations.is_empty()
    }
}

impl PendingRequest for PushedCommitRequest {
    fn remove_vbuckets(&mut self, taken: &BTreeSet<VbucketId>) {
        taken.iter().for_each(|vbucket| self.wanted.remove(*vbucket));
    }

    fn is_accepted(&self) -> bool {
        self.wanted.is_empty()
    }
}

/// Calls the owners of vbuckets until each owner has accepted its vbuckets, for at most
/// [`NOT_HOME_WAIT`]. Returns the answer for each vbucket.
async fn call_until_accepted<S: PendingRequest, R, F>(
    bucket: &BucketInfo,
    mut left: S,
    call: impl Fn(S) -> F,
) -> Result<Vec<(VbucketId, R)>>
where
    F: Future<Output = Result<Vec<(VbucketId, R)>>>,
{
    let deadline = Instant::now() + NOT_HOME_WAIT;
    let mut answers = Vec::new();
    loop {
        match call(left.clone()).await {
            Ok(taken) if taken.is_empty() && Instant::now() > deadline => {
                let what = format!("nobody owns the vbuckets of a push into {}", bucket.name);
                return Err(Error::unavailable(what).with_hint("try again"));
            }
            Ok(taken) => {
                left.remove_vbuckets(&taken.iter().map(|(vbucket, _)| *vbucket).collect());
                answers.extend(taken);
            }
            Err(error) if error.code == ErrorCode::NotOwner && Instant::now() < deadline => {}
            Err(error) => return Err(error),
        }
        if left.is_accepted() {
            return Ok(answers);
        }
        tokio::time::sleep(NOT_HOME_PAUSE).await;
    }
}

impl SourceCalls {
    /// See [`Cluster::push`](crate::access::Cluster::push).
    pub(super) async fn push(
        &self,
        bucket: &BucketInfo,
        request: PushRequest,
    ) -> Result<PushReply> {
        let push = async |left| Ok(self.source(bucket)?.push(left).await?.durable);
        let durable = call_until_accepted(bucket, request, push).await.map_err(in_doubt)?;
        Ok(PushReply { durable })
    }

    /// See [`Cluster::push_in`](crate::access::Cluster::push_in).
    pub(super) async fn push_in(
        &self,
        bucket: &BucketInfo,
        request: TransactionPush,
    ) -> Result<TransactionPushed> {
        let push = async |left| Ok(self.source(bucket)?.push_for_transaction(left).await?.kept);
        Ok(TransactionPushed { kept: call_until_accepted(bucket, request, push).await? })
    }

    /// See [`Cluster::commit_pushed`](crate::access::Cluster::commit_pushed).
    pub(super) async fn commit_pushed(
        &self,
        bucket: &BucketInfo,
        commit: PushedCommit,
    ) -> Result<PushReply> {
        let request = |step| PushedCommitRequest {
            bucket: bucket.id,
            commit: commit.clone(),
            wanted: commit.parts.iter().map(|part| part.vbucket).collect(),
            step,
        };
        let call = async |left| Ok(self.source(bucket)?.commit_pushed(left).await?.durable);
        let committed = call_until_accepted(bucket, request(PushedStep::Commit), call).await;
        let mut durable = committed.map_err(|error| match error.code {
            ErrorCode::Interrupted => {
                Error::new(error.code, error.message).with_hint("commit the transaction again")
            }
            _ => error,
        })?;
        // An owner that this call does not reach shows the documents with the next epoch.
        let _told = self.source(bucket)?.commit_pushed(request(PushedStep::Complete)).await;
        durable.sort_unstable();
        Ok(PushReply { durable })
    }

    /// See [`Cluster::abort_pushed`](crate::access::Cluster::abort_pushed).
    pub(super) async fn abort_pushed(
        &self,
        bucket: &BucketInfo,
        transaction: ProducerTransactionId,
    ) -> Result<()> {
        self.source(bucket)?.abort_pushed(bucket.id, transaction).await
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use proto::model::assignment::VbucketSet;
    use proto::model::bucket::SourceKind;
    use proto::model::ids::{BucketId, NodeId};

    use super::*;

    #[derive(Clone)]
    struct Wanted(VbucketSet);

    impl PendingRequest for Wanted {
        fn remove_vbuckets(&mut self, taken: &BTreeSet<VbucketId>) {
            taken.iter().for_each(|vbucket| self.0.remove(*vbucket));
        }

        fn is_accepted(&self) -> bool {
            self.0.is_empty()
        }
    }

    fn bucket() -> BucketInfo {
        BucketInfo::new(BucketId(1), "p", 4, SourceKind::Push, NodeId(1))
    }

    #[tokio::test(start_paused = true)]
    async fn refused_vbuckets_are_called_again() {
        let calls = Cell::new(0);
        let call = async |left: Wanted| {
            calls.set(calls.get() + 1);
            match calls.get() {
                1 => Ok(vec![(VbucketId(0), 7), (VbucketId(2), 7)]),
                2 => Err(Error::new(ErrorCode::NotOwner, "on its way")),
                _ => Ok(left.0.iter().map(|vbucket| (vbucket, 9)).collect()),
            }
        };
        let taken = call_until_accepted(&bucket(), Wanted(VbucketSet::all(3)), call).await;
        let expected = [(0, 7), (2, 7), (1, 9)].map(|(vbucket, end)| (VbucketId(vbucket), end));
        assert_eq!(taken, Ok(expected.to_vec()));
    }

    #[tokio::test(start_paused = true)]
    async fn retries_of_a_push_end() {
        let call = async |_: Wanted| Ok(Vec::<(VbucketId, u64)>::new());
        let bucket = bucket();
        let calls = call_until_accepted(&bucket, Wanted(VbucketSet::all(3)), call);
        let ended = tokio::time::timeout(10 * NOT_HOME_WAIT, calls).await.expect("it ends");
        assert_eq!(ended.map_err(|error| error.code), Err(ErrorCode::Unavailable));
    }
}
