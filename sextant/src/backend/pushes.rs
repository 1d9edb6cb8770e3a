//! The calls of producers into their buckets: mutations, transactions and commits.
//!
//! A vbucket may be handed over during a call. A call is sent to the present owners, and repeated
//! for the vbuckets that no owner has accepted, for at most `NOT_HOME_WAIT`. An owner that has
//! accepted its share does not receive the share again.

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

/// The part of a call that the owners of its vbuckets have not accepted yet.
trait Share: Clone {
    /// Removes the vbuckets in `taken`, whose owners have accepted their shares.
    fn leave_out(&mut self, taken: &BTreeSet<VbucketId>);
    /// Returns true if no vbucket is left.
    fn is_taken(&self) -> bool;
}

impl Share for PushRequest {
    fn leave_out(&mut self, taken: &BTreeSet<VbucketId>) {
        self.branches.retain(|(vbucket, _)| !taken.contains(vbucket));
        self.mutations.retain(|mutation| !taken.contains(&mutation.vbucket));
    }

    fn is_taken(&self) -> bool {
        self.mutations.is_empty() && self.branches.is_empty()
    }
}

impl Share for TransactionPush {
    fn leave_out(&mut self, taken: &BTreeSet<VbucketId>) {
        self.mutations.retain(|mutation| !taken.contains(&mutation.vbucket));
    }

    fn is_taken(&self) -> bool {
        self.mutations.is_empty()
    }
}

impl Share for PushedCommitRequest {
    fn leave_out(&mut self, taken: &BTreeSet<VbucketId>) {
        taken.iter().for_each(|vbucket| self.wanted.remove(*vbucket));
    }

    fn is_taken(&self) -> bool {
        self.wanted.is_empty()
    }
}

/// Calls the owners of vbuckets until each has accepted its share, for at most [`NOT_HOME_WAIT`].
/// Returns the answer for each vbucket.
async fn until_taken<S: Share, R, F>(
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
                left.leave_out(&taken.iter().map(|(vbucket, _)| *vbucket).collect());
                answers.extend(taken);
            }
            Err(error) if error.code == ErrorCode::NotOwner && Instant::now() < deadline => {}
            Err(error) => return Err(error),
        }
        if left.is_taken() {
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
        let durable = until_taken(bucket, request, push).await.map_err(in_doubt)?;
        Ok(PushReply { durable })
    }

    /// See [`Cluster::push_in`](crate::access::Cluster::push_in).
    pub(super) async fn push_in(
        &self,
        bucket: &BucketInfo,
        request: TransactionPush,
    ) -> Result<TransactionPushed> {
        let push = async |left| Ok(self.source(bucket)?.push_in(left).await?.kept);
        Ok(TransactionPushed { kept: until_taken(bucket, request, push).await? })
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
        let committed = until_taken(bucket, request(PushedStep::Commit), call).await;
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

    impl Share for Wanted {
        fn leave_out(&mut self, taken: &BTreeSet<VbucketId>) {
            taken.iter().for_each(|vbucket| self.0.remove(*vbucket));
        }

        fn is_taken(&self) -> bool {
            self.0.is_empty()
        }
    }

    fn bucket() -> BucketInfo {
        BucketInfo::new(BucketId(1), "p", 4, SourceKind::Push, NodeId(1))
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_is_made_again_for_the_vbuckets_that_nobody_has_taken() {
        let calls = Cell::new(0);
        let call = async |left: Wanted| {
            calls.set(calls.get() + 1);
            match calls.get() {
                1 => Ok(vec![(VbucketId(0), 7), (VbucketId(2), 7)]),
                2 => Err(Error::new(ErrorCode::NotOwner, "on its way")),
                _ => Ok(left.0.iter().map(|vbucket| (vbucket, 9)).collect()),
            }
        };
        let taken = until_taken(&bucket(), Wanted(VbucketSet::all(3)), call).await;
        let expected = [(0, 7), (2, 7), (1, 9)].map(|(vbucket, end)| (VbucketId(vbucket), end));
        assert_eq!(taken, Ok(expected.to_vec()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_of_which_nobody_takes_anything_ends() {
        let call = async |_: Wanted| Ok(Vec::<(VbucketId, u64)>::new());
        let bucket = bucket();
        let calls = until_taken(&bucket, Wanted(VbucketSet::all(3)), call);
        let ended = tokio::time::timeout(10 * NOT_HOME_WAIT, calls).await.expect("it ends");
        assert_eq!(ended.map_err(|error| error.code), Err(ErrorCode::Unavailable));
    }
}
