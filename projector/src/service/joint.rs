//! Answers the calls of joint commits, which are commits over several buckets
//! ([`proto::model::joint`]).

use std::sync::Arc;

use proto::Result;
use proto::model::commits::CommittedTransaction;
use proto::model::ids::{BucketId, TransactionId};
use proto::rpc::api::{Decision, TransactionCommit, TransactionState, WriteReply};

use super::transactions::{BegunCommit, repeated_answer, reply_of};
use crate::projector::Projector;
use crate::source::kind::WriteCall;
use crate::source::view::bucket::Bucket;
use crate::source::writer::Work;

impl Projector {
    /// Prepares a transaction in a bucket; see [`proto::rpc::api::ProjectorApi::prepare`].
    pub(super) async fn prepare_transaction(
        &self,
        joint: TransactionId,
        request: TransactionCommit,
    ) -> Result<u64> {
        let (transaction, behind) = (request.transaction, request.behind);
        let bucket = self.bucket_for_call(request.bucket, WriteCall::Documents).await?;
        bucket.wait_for_joint_pause().await;
        let begun = match self.begin_commit(&bucket, request).await {
            // Another call may have prepared the transaction. A transaction ends when it is prepared.
            Err(_) if !bucket.transactions.is_open(transaction) => {
                let prepared = bucket.find_prepared(joint);
                let again =
                    || repeated_answer(&bucket, (joint, behind)).map(|reply| reply.affected);
                let count =
                    prepared.map_or_else(again, |prepared| Ok(prepared.changes.len() as u64));
                return bucket.check_open().and(count);
            }
            begun => begun?,
        };
        let Some(begun) = begun else { return Ok(0) };
        let prepared = self.prepare_begun(bucket, joint, begun).await;
        self.transaction_counts.prepare_ended(&prepared);
        prepared
    }

    async fn prepare_begun(
        &self,
        bucket: Arc<Bucket>,
        joint: TransactionId,
        begun: BegunCommit,
    ) -> Result<u64> {
        let committing = self.do_early_commit_work(&bucket, begun).await?;
        let bytes = committing.bytes();
        let work = |reply| Work::Prepare(joint, Box::new(committing), reply);
        self.queue_unreserved(bucket, bytes, work).await
    }

    /// Ends a prepared transaction with its outcome; see
    /// [`proto::rpc::api::ProjectorApi::decide`].
    pub(super) async fn decide_transaction(
        &self,
        bucket: BucketId,
        transaction: TransactionId,
        decision: Decision,
    ) -> Result<WriteReply> {
        let bucket = self.bucket_for_call(bucket, WriteCall::Documents).await?;
        if decision == Decision::RollBack && bucket.transactions.abort_unprepared(transaction) {
            self.transaction_counts.add_aborted();
        }
        let commits = matches!(decision, Decision::Commit { .. });
        let prepared = bucket.find_prepared(transaction).filter(|_| commits);
        let bytes = prepared.map_or(0, |prepared| prepared.bytes());
        let work = |reply| Work::Decide(transaction, decision, reply);
        let decided = self.queue_unreserved(bucket, bytes, work).await;
        if commits {
            self.transaction_counts.commit_ended(&decided);
        }
        decided
    }

    /// Returns what a bucket knows about the fate of a transaction; see
    /// [`proto::rpc::api::ProjectorApi::fate`].
    pub(super) async fn fate_of_transaction(
        &self,
        bucket: BucketId,
        transaction: TransactionId,
    ) -> Result<TransactionState> {
        let bucket = self.bucket_for_call(bucket, WriteCall::Documents).await?;
        let fate = fate_in(&bucket, transaction);
        bucket.check_open()?;
        Ok(fate)
    }
}

fn fate_in(bucket: &Bucket, transaction: TransactionId) -> TransactionState {
    // Order matters: a transaction ends when its outcome is there.
    if bucket.transactions.is_open(transaction) {
        return TransactionState::Open;
    }
    let known = || match (bucket.find_prepared(transaction), bucket.committed(transaction)) {
        (Some(_), _) => Some(TransactionState::Prepared),
        (None, Some(committed)) => Some(committed_fate(bucket, committed)),
        (None, None) => None,
    };
    if let Some(known) = known() {
        return known;
    }
    // The transaction may have begun meanwhile.
    match bucket.transactions.is_open_or_refuse(transaction) {
        true => TransactionState::Open,
        false => known().unwrap_or(TransactionState::Unknown),
    }
}

fn committed_fate(bucket: &Bucket, committed: CommittedTransaction) -> TransactionState {
    let transaction = committed.transaction;
    TransactionState::Committed {
        reply: reply_of(bucket, committed),
        participants: bucket.participants(transaction),
        is_open: bucket.is_open_joint(transaction),
    }
}
