//! What producers push into their buckets: mutations, transactions and commits.
//!
//! A vbucket may be handed over meanwhile. A call goes to the present owners, and is made again for the vbuckets that have no owner yet, for at
//! most [`NOT_HOME_WAIT`]. An owner that has taken its share does not get it again.

use std::collections::BTreeSet;

use proto::model::assignment::VbucketSet;
use proto::model::bucket::BucketInfo;
use proto::model::ids::ProducerTransactionId;
use proto::model::pushed::PushedCommit;
use proto::rpc::api::{
    PushReply, PushRequest, PushedCommitRequest, PushedStep, TransactionPush, TransactionPushed,
};
use proto::{Error, ErrorCode, Result};
use tokio::time::Instant;

use super::cluster_backend::ClusterBackend;
use super::source_calls::{NOT_HOME_PAUSE, NOT_HOME_WAIT, in_doubt};

impl ClusterBackend {
    /// Pushes mutations to the owners of their vbuckets. While a vbucket is handed over, the push waits for the new owner.
    pub async fn push(&self, bucket: &BucketInfo, mut left: PushRequest) -> Result<PushReply> {
        let deadline = Instant::now() + NOT_HOME_WAIT;
        let mut durable = Vec::new();
        loop {
            match self.source(bucket)?.push(left.clone()).await {
                Ok(reply) => {
                    let taken: BTreeSet<_> = reply.durable.iter().map(|(v, _)| *v).collect();
                    left.branches.retain(|(vbucket, _)| !taken.contains(vbucket));
                    left.mutations.retain(|mutation| !taken.contains(&mutation.vbucket));
                    durable.extend(reply.durable);
                }
                Err(error) if error.code == ErrorCode::NotOwner && Instant::now() < deadline => {}
                Err(error) => return Err(in_doubt(error)),
            }
            // A projector that has taken its share need not get it again.
            if left.mutations.is_empty() && left.branches.is_empty() {
                return Ok(PushReply { durable });
            }
            tokio::time::sleep(NOT_HOME_PAUSE).await;
        }
    }

    /// Keeps mutations of a producer's transaction at the owners of their vbuckets. While a vbucket is handed over, the call waits for
    /// the new owner.
    pub async fn push_in(
        &self,
        bucket: &BucketInfo,
        mut left: TransactionPush,
    ) -> Result<TransactionPushed> {
        let deadline = Instant::now() + NOT_HOME_WAIT;
        let mut kept = Vec::new();
        loop {
            match self.source(bucket)?.push_in(left.clone()).await {
                Ok(reply) => {
                    let taken: BTreeSet<_> = reply.kept.iter().map(|(v, _)| *v).collect();
                    left.mutations.retain(|mutation| !taken.contains(&mutation.vbucket));
                    kept.extend(reply.kept);
                }
                Err(error) if error.code == ErrorCode::NotOwner && Instant::now() < deadline => {}
                Err(error) => return Err(error),
            }
            if left.mutations.is_empty() {
                return Ok(TransactionPushed { kept });
            }
            tokio::time::sleep(NOT_HOME_PAUSE).await;
        }
    }

    /// Commits a producer's transaction at the owners of its vbuckets, which may change meanwhile.
    pub async fn commit_pushed(
        &self,
        bucket: &BucketInfo,
        commit: PushedCommit,
    ) -> Result<PushReply> {
        let deadline = Instant::now() + NOT_HOME_WAIT;
        let mut durable = Vec::new();
        let mut wanted: VbucketSet = commit.parts.iter().map(|part| part.vbucket).collect();
        loop {
            let request = |step, wanted| PushedCommitRequest {
                bucket: bucket.id,
                commit: commit.clone(),
                wanted,
                step,
            };
            let asked = request(PushedStep::Commit, wanted.clone());
            match self.source(bucket)?.commit_pushed(asked).await {
                Ok(reply) if reply.durable.is_empty() && Instant::now() > deadline => {
                    let what = format!("nobody owns the vbuckets of a commit in {}", bucket.name);
                    return Err(Error::unavailable(what).with_hint("commit the transaction again"));
                }
                Ok(reply) => {
                    reply.durable.iter().for_each(|(vbucket, _)| wanted.remove(*vbucket));
                    durable.extend(reply.durable);
                }
                Err(error) if error.code == ErrorCode::NotOwner && Instant::now() < deadline => {}
                Err(error) if error.code == ErrorCode::Interrupted => {
                    let hint = "commit the transaction again";
                    return Err(Error::new(error.code, error.message).with_hint(hint));
                }
                Err(error) => return Err(error),
            }
            if wanted.is_empty() {
                let all = commit.parts.iter().map(|part| part.vbucket).collect();
                // An owner that is not told shows the documents with the next epoch.
                let _told =
                    self.source(bucket)?.commit_pushed(request(PushedStep::Complete, all)).await;
                durable.sort_unstable();
                return Ok(PushReply { durable });
            }
            tokio::time::sleep(NOT_HOME_PAUSE).await;
        }
    }

    /// Rolls a producer's transaction back at all owners of vbuckets.
    pub async fn abort_pushed(
        &self,
        bucket: &BucketInfo,
        transaction: ProducerTransactionId,
    ) -> Result<()> {
        self.source(bucket)?.abort_pushed(bucket.id, transaction).await
    }
}
