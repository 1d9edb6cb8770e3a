//! The calls of producers of pushed buckets: Push, CommitPush and AbortPush.
//!
//! A router stores nothing about a producer's transaction, so each call of a transaction may go
//! to any router.

use std::net::SocketAddr;
use std::sync::Arc;

use proto::env::Env;
use proto::grpc::{
    AbortPushRequest, AbortReply, CommitPushRequest, KeptMutations, PushReply, PushRequest,
};
use proto::model::bucket::BucketInfo;
use proto::model::ids::ProducerTransactionId;
use proto::model::pushed_commit::PushedCommit;
use proto::model::users::Privilege;
use proto::rpc::api;
use proto::{Error, ErrorCode, Result};

use super::admission::CallPlaces;
use super::decode::{
    decode_branch, decode_commit_part, decode_mutation, decode_uncommitted, position,
};
use crate::access::Access;

/// Handles one request of a Push stream and returns its reply. `from` is the address of the
/// client, for messages.
pub(super) async fn push(
    access: &Access,
    bucket: &Arc<BucketInfo>,
    request: PushRequest,
    from: Option<SocketAddr>,
) -> Result<PushReply> {
    if request.transaction != 0 {
        return push_in(access, bucket, request, from).await;
    }
    // The privilege is checked before the contents are read.
    let writer = access.writer(bucket)?;
    let mutations =
        request.mutations.into_iter().map(decode_mutation).collect::<Result<Vec<_>>>()?;
    let branches = request.branches.into_iter().map(decode_branch).collect::<Result<Vec<_>>>()?;
    let request = api::PushRequest { bucket: bucket.id, branches, mutations };
    let reply = writer.push(request).await?;
    Ok(reply_of(reply))
}

/// Handles a request with mutations of a producer's transaction.
async fn push_in(
    access: &Access,
    bucket: &Arc<BucketInfo>,
    request: PushRequest,
    from: Option<SocketAddr>,
) -> Result<PushReply> {
    let writer = access.writer(bucket)?;
    if !request.branches.is_empty() {
        let what = "a request with mutations of a transaction begins no branches";
        return Err(Error::new(ErrorCode::InvalidParameter, what).with_hint("send them before"));
    }
    let transaction = ProducerTransactionId(request.transaction);
    let mutations =
        request.mutations.into_iter().map(decode_uncommitted).collect::<Result<Vec<_>>>()?;
    let from = from.map(|from| format!(" from {from}")).unwrap_or_default();
    let owner = format!("producer, transaction {transaction}, {}, gRPC{from}", access.principal());
    let request = api::TransactionPush { bucket: bucket.id, transaction, owner, mutations };
    let kept = writer.push_in(request).await?.kept.into_iter();
    let kept =
        kept.map(|(vbucket, position)| KeptMutations { vbucket: vbucket.0.into(), position });
    Ok(PushReply { durable: Vec::new(), kept: kept.collect() })
}

/// Commits a producer's transaction in a separate task. `held` contains the counts and the memory
/// that the call has taken; the task gives them back at its end.
pub(super) async fn commit(
    access: &Access,
    env: &Env,
    request: CommitPushRequest,
    held: Option<Arc<CallPlaces>>,
) -> Result<PushReply> {
    let CommitPushRequest { bucket, transaction, parts } = request;
    let bucket = access.bucket(&bucket).await?;
    access.check_privilege(Privilege::Write, bucket.id)?;
    let parts = parts.into_iter().map(decode_commit_part).collect::<Result<Vec<_>>>()?;
    if let Some(part) = parts.iter().find(|part| part.vbucket.0 >= bucket.vbuckets) {
        let (name, vbuckets, vbucket) = (&bucket.name, bucket.vbuckets, part.vbucket);
        let what = format!(
            "bucket {name} has {vbuckets} vbuckets, and the commit names vbucket {vbucket}"
        );
        return Err(Error::new(ErrorCode::InvalidParameter, what));
    }
    let commit = PushedCommit::new(ProducerTransactionId(transaction), parts)?;
    let (done, outcome) = tokio::sync::oneshot::channel();
    let committing = {
        let (access, bucket) = (access.clone(), Arc::clone(&bucket));
        async move {
            let committed = async { access.writer(&bucket)?.commit_pushed(commit).await }.await;
            drop(held);
            // The client may have disconnected, and may ask again.
            let _gone = done.send(committed);
        }
    };
    // A client that disconnects must not leave a partial commit.
    env.spawn_request("commit of a producer", committing).detach();
    let failed = |_| Error::internal("the task of a commit has failed");
    outcome.await.map_err(failed)?.map(reply_of)
}

/// Rolls back a producer's transaction.
pub(super) async fn abort(access: &Access, request: AbortPushRequest) -> Result<AbortReply> {
    let bucket = access.bucket(&request.bucket).await?;
    access.writer(&bucket)?.abort_pushed(ProducerTransactionId(request.transaction)).await?;
    Ok(AbortReply {})
}

fn reply_of(reply: api::PushReply) -> PushReply {
    PushReply { durable: reply.durable.into_iter().map(position).collect(), kept: Vec::new() }
}
