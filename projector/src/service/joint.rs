//! The calls of joint commits ([`proto::model::joint`]).

use std::sync::Arc;

use proto::Result;
use proto::model::commits::Committed;
use proto::model::ids::{BucketId, TransactionId};
use proto::rpc::api::{Decision, TransactionCommit, TransactionFate, WriteReply};

use super::transactions::{BegunCommit, answer_again, reply_of};
use crate::projector::Projector;
use crate::source::kind::WriteCall;
use crate::source::view::bucket::Bucket;
use crate::source::writer::Work;

impl Projector {
    /// See [`proto::rpc::api::ProjectorApi::prepare`].
    pub(super) async fn prepare_transaction(
        &self,
        joint: TransactionId,
        request: TransactionCommit,
    ) -> Result<u64> {
        let (transaction, behind) = (request.transaction, request.behind);
        let bucket = self.writable(request.bucket, WriteCall::Documents).await?;
        bucket.joint_pause().await;
        let begun = match self.begin_commit(&bucket, request).await {
            // Another call may have prepared the transaction. A transaction ends when it is prepared.
            Err(_) if !bucket.transactions.is_open(transaction) => {
                let prepared = bucket.find_prepared(joint);
                let again = || answer_again(&bucket, (joint, behind)).map(|reply| reply.affected);
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
        let committing = self.before_turn(&bucket, begun).await?;
        let bytes = committing.bytes();
        let work = |reply| Work::Prepare(joint, Box::new(committing), reply);
        self.queue_held(bucket, bytes, work).await
    }

    /// See [`proto::rpc::api::ProjectorApi::decide`].
    pub(super) async fn decide_transaction(
        &self,
        bucket: BucketId,
        transaction: TransactionId,
        decision: Decision,
    ) -> Result<WriteReply> {
        let bucket = self.writable(bucket, WriteCall::Documents).await?;
        if decision == Decision::RollBack && bucket.transactions.give_up(transaction) {
            self.transaction_counts.add_aborted();
        }
        let commits = matches!(decision, Decision::Commit { .. });
        let prepared = bucket.find_prepared(transaction).filter(|_| commits);
        let bytes = prepared.map_or(0, |prepared| prepared.bytes());
        let work = |reply| Work::Decide(transaction, decision, reply);
        let decided = self.queue_held(bucket, bytes, work).await;
        if commits {
            self.transaction_counts.commit_ended(&decided);
        }
        decided
    }

    /// See [`proto::rpc::api::ProjectorApi::fate`].
    pub(super) async fn fate_of_transaction(
        &self,
        bucket: BucketId,
        transaction: TransactionId,
    ) -> Result<TransactionFate> {
        let bucket = self.writable(bucket, WriteCall::Documents).await?;
        let fate = fate_in(&bucket, transaction);
        bucket.check_open()?;
        Ok(fate)
    }
}

fn fate_in(bucket: &Bucket, transaction: TransactionId) -> TransactionFate {
    // Order matters: a transaction ends when its outcome is there.
    if bucket.transactions.is_open(transaction) {
        return TransactionFate::Open;
    }
    let known = || match (bucket.find_prepared(transaction), bucket.committed(transaction)) {
        (Some(_), _) => Some(TransactionFate::Prepared),
        (None, Some(committed)) => Some(committed_fate(bucket, committed)),
        (None, None) => None,
    };
    if let Some(known) = known() {
        return known;
    }
    // The transaction may have begun meanwhile.
    match bucket.transactions.is_open_or_refused(transaction) {
        true => TransactionFate::Open,
        false => known().unwrap_or(TransactionFate::Unknown),
    }
}

fn committed_fate(bucket: &Bucket, committed: Committed) -> TransactionFate {
    let transaction = committed.transaction;
    TransactionFate::Committed {
        reply: reply_of(bucket, committed),
        participants: bucket.participants(transaction),
        is_open: bucket.is_open_joint(transaction),
    }
}
