//! Answers the calls of producers' transactions in pushed buckets
//! ([`proto::model::pushed_commit`]).
//!
//! `CANCEL TRANSACTION` ends the wait for the missing parts of a commit. The statement is refused
//! while a vbucket of the commit is being handed over: its next owner has received the commit
//! too.

use std::sync::Arc;

use proto::model::ids::{BucketId, ProducerTransactionId, TransactionId, VbucketId};
use proto::model::open_commit::PartState;
use proto::rpc::api::{
    OWNER_BYTES_MAX, PushMutation, PushReply, PushedCommitRequest, PushedStateQuery, PushedStep,
    TransactionPush, TransactionPushed,
};
use proto::{Error, ErrorCode, Result};
use tokio::time::Instant;

use super::checks::INLINE_BYTES_MAX;
use crate::projector::Projector;
use crate::source::kind::WriteCall;
use crate::source::push::check::{CheckedPush, check_pushes};
use crate::source::push::commit::check;
use crate::source::view::bucket::Bucket;
use crate::source::writer::Work;
use crate::transactions::producer_transactions::PushIn;

/// The number of bits of the number that this process gives to a transaction. Tools may display
/// the number as a floating-point number, which has no more bits; sessions' transactions have the
/// same limit.
const NUMBER_BITS: u32 = 53;

impl Projector {
    /// Validates pushed mutations up to the first invalid one. Returns the valid ones, the error
    /// of the invalid one, and the approximate size in bytes of all that were validated.
    pub(super) async fn checked_pushes(
        &self,
        bucket: &Arc<Bucket>,
        mutations: Vec<PushMutation>,
    ) -> (Vec<CheckedPush>, Option<Error>, usize) {
        let limit = self.config.document_bytes_max;
        let sizes = mutations.iter().map(|mutation| mutation.document.len());
        match sizes.sum::<usize>() > INLINE_BYTES_MAX {
            true => {
                let at = Arc::clone(bucket);
                self.env.blocking(move || check_pushes(&at.info, mutations, limit)).await
            }
            false => check_pushes(&bucket.info, mutations, limit),
        }
    }

    /// Stores mutations of a producer's transaction; see
    /// [`proto::rpc::api::ProjectorApi::push_in`].
    pub(super) async fn push_in_transaction(
        &self,
        request: TransactionPush,
    ) -> Result<TransactionPushed> {
        let TransactionPush { bucket, transaction, owner, mutations } = request;
        if owner.len() > OWNER_BYTES_MAX || transaction.0 == 0 {
            let what = format!(
                "transaction {transaction} of a producer, whose owner has {} bytes",
                owner.len()
            );
            return Err(Error::new(ErrorCode::InvalidParameter, what));
        }
        let bucket = self.bucket_for_call(bucket, WriteCall::Mutations).await?;
        let (mutations, error, _) = self.checked_pushes(&bucket, mutations).await;
        if let Some(error) = error {
            return Err(error);
        }
        let ownership = bucket.ownership();
        let elsewhere = |push: &&CheckedPush| !ownership.is_writable(push.mutation.vbucket);
        if let Some(push) = mutations.iter().find(elsewhere) {
            return Err(bucket.not_owned(push.mutation.vbucket));
        }
        let number = TransactionId(self.env.random.next_u64() >> (u64::BITS - NUMBER_BITS));
        let kept_for = self.config.producer_kept;
        let is_awaited =
            bucket.is_open_pushed(transaction) || bucket.awaits_transaction(transaction);
        let request =
            PushIn { transaction, number, owner: &owner, mutations, kept_for, is_awaited };
        let limits = &self.transaction_limits;
        let kept = bucket.transactions.push(&bucket.info, request, limits, Instant::now());
        self.schedule_young_wake(&bucket);
        Ok(TransactionPushed { kept: kept?.into_iter().collect() })
    }

    /// Commits parts of a producer's transaction; see
    /// [`proto::rpc::api::ProjectorApi::commit_pushed`].
    pub(super) async fn commit_pushed_parts(
        &self,
        request: PushedCommitRequest,
    ) -> Result<PushReply> {
        let bucket = self.bucket_for_call(request.bucket, WriteCall::Mutations).await?;
        let transaction = request.commit.transaction;
        match request.step {
            PushedStep::Check => {
                self.wait_for_commit(&bucket, &request).await?;
                check(&bucket, &request, &bucket.transactions.kept(transaction)?)?;
                return Ok(PushReply { durable: Vec::new() });
            }
            PushedStep::Complete => {
                bucket.record_all_parts_durable(&request.commit);
                return Ok(PushReply { durable: Vec::new() });
            }
            PushedStep::Commit => {}
        }
        self.wait_for_commit(&bucket, &request).await?;
        let begun = (Instant::now(), self.config.large_commit_changes);
        let committing = bucket.transactions.commit_pushed(transaction, begun)?;
        let bytes = committing.bytes();
        let work = |reply| Work::CommitPushed(request, Box::new(committing), reply);
        let committed = self.queue_unreserved(bucket, bytes, work).await;
        self.transaction_counts.pushed_commit_ended(&committed);
        committed
    }

    /// Returns the states of parts of a producer's commit; see
    /// [`proto::rpc::api::ProjectorApi::look_at_pushed`].
    pub(super) async fn look_at_pushed_parts(
        &self,
        look: PushedStateQuery,
    ) -> Result<Vec<(VbucketId, PartState)>> {
        let PushedStateQuery { bucket, commit, wanted } = look;
        Ok(self.bucket(bucket).await?.look_at_pushed(&commit, &wanted))
    }

    /// Rolls a producer's transaction back; see [`proto::rpc::api::ProjectorApi::abort_pushed`].
    pub(super) async fn abort_pushed_transaction(
        &self,
        bucket: BucketId,
        transaction: ProducerTransactionId,
    ) -> Result<()> {
        let bucket = self.bucket_for_call(bucket, WriteCall::Mutations).await?;
        if bucket.is_open_pushed(transaction) {
            let name = &bucket.info.name;
            let what = format!(
                "transaction {transaction} of the producer of bucket {name} is committed in part"
            );
            return Err(Error::new(ErrorCode::TransactionState, what).with_hint(
                "commit it again; CANCEL TRANSACTION lets epochs have the part without the rest",
            ));
        }
        if bucket.transactions.abort_pushed(transaction)? {
            self.transaction_counts.add_aborted();
        }
        Ok(())
    }

    /// Gives up the missing parts of a producer's open commit, so that epochs include the commit
    /// without them. Does nothing if no open commit has this number.
    pub(super) async fn give_up_missing_parts(
        &self,
        bucket: Arc<Bucket>,
        transaction: ProducerTransactionId,
    ) -> Result<()> {
        if !bucket.is_open_pushed(transaction) {
            return Ok(());
        }
        let name = &bucket.info.name;
        if let Some(vbucket) = bucket.released_with_part_of(transaction) {
            let what = format!(
                "vbucket {vbucket} of bucket {name} is on its way to another owner, which has the commit of transaction {transaction} too"
            );
            return Err(Error::unavailable(what)
                .with_hint("cancel the transaction again when the hand-over has ended"));
        }
        tracing::error!(%transaction, bucket = %name, "a producer's commit may be halved: CANCEL TRANSACTION waits for its missing parts no longer");
        let work = |reply| Work::GiveUpRest(transaction, reply);
        self.queue_unreserved(bucket, 0, work).await
    }
}
