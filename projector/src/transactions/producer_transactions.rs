//! The open transactions of producers, in a pushed bucket ([`proto::model::pushed_commit`]).
//!
//! A producer numbers its transactions itself. Each owner of vbuckets also assigns a random
//! number to the mutations of the transaction in its vbuckets, and streams them to the indexers
//! under this number, like any other transaction. No reader sees the complete open transaction.
//!
//! If a commit is refused, the transaction stays open, because the producer can push missing
//! mutations and commit again.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use proto::model::bucket::BucketInfo;
use proto::model::ids::{ProducerTransactionId, TransactionId, TransactionPlace, VbucketId};
use proto::{Error, ErrorCode, Result};
use tokio::time::Instant;

use super::limits::Limits;
use super::open::Transactions;
use super::producer::Producer;
use super::transaction::Transaction;
use crate::source::push::check::CheckedPush;
use documents::mutation::Mutation;

/// A request with mutations of a producer's transaction.
pub struct PushIn<'p> {
    /// The producer's id of the transaction.
    pub transaction: ProducerTransactionId,
    /// The number that this projector assigns to the transaction, if it begins.
    pub number: TransactionId,
    /// The name of the user that runs the transaction, for display.
    pub owner: &'p str,
    /// The mutations. In each vbucket their seqnos count the transaction's mutations from the
    /// first one on.
    pub mutations: Vec<CheckedPush>,
    /// The time for which the transaction is kept after its last mutation.
    pub kept_for: Duration,
    /// True if epochs may wait for the transaction. It may then exceed the memory limit of all
    /// transactions, by the size of one transaction; otherwise the transaction and the epochs
    /// could wait for each other.
    pub is_awaited: bool,
}

/// The number of stored mutations of each vbucket.
pub type MutationsByVbucket = BTreeMap<VbucketId, u64>;

/// A guard of the commit of a producer's transaction. Dropping the guard makes the transaction
/// open again, unless `end` was set.
pub struct ProducerCommitGuard {
    /// The number of the transaction on this projector, and its place (the number of its
    /// changes). `None` if none of its mutations is stored.
    pub open: Option<(TransactionId, TransactionPlace)>,
    /// The mutations of the transaction, in order.
    pub mutations: Vec<Arc<Mutation>>,
    /// The number of the transaction among the bucket's transactions.
    pub number: u64,
    end: AfterCommit,
    transactions: Arc<Transactions>,
}

/// The state of the transaction after the attempt to commit it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AfterCommit {
    /// The transaction is open again.
    Open,
    /// The transaction has ended.
    Gone,
    /// The outcome of the commit is unknown.
    InDoubt,
}

impl ProducerCommitGuard {
    /// Returns the number of the transaction's stored mutations in each vbucket.
    pub fn kept(&self) -> MutationsByVbucket {
        let mut kept = MutationsByVbucket::new();
        self.mutations.iter().for_each(|one| *kept.entry(one.vbucket).or_default() += 1);
        kept
    }

    /// The approximate size of the request, in bytes.
    pub fn bytes(&self) -> usize {
        self.mutations.iter().map(|mutation| mutation.bytes()).sum()
    }

    /// Ends the transaction after its commit.
    pub fn finish(mut self) {
        self.end = AfterCommit::Gone;
    }

    /// Records that the outcome of the commit is unknown, so that the transaction neither ends
    /// nor is open again. Returns the error for the caller.
    pub fn keep_in_doubt(mut self, error: Error) -> Error {
        self.end = AfterCommit::InDoubt;
        let what = format!("{}; the transaction may be committed", error.message);
        Error::new(ErrorCode::Interrupted, what).with_hint("commit it again")
    }
}

impl Drop for ProducerCommitGuard {
    fn drop(&mut self) {
        let Some((id, _)) = self.open else { return };
        match self.end {
            AfterCommit::Gone => self.transactions.end((id, self.number)),
            AfterCommit::Open => self.transactions.open_after_refusal((id, self.number)),
            AfterCommit::InDoubt => {}
        }
    }
}

impl Transactions {
    /// Stores mutations of a producer's transaction: all of them, or none after an error. Returns
    /// the number of stored mutations of the transaction in each vbucket of the request.
    pub fn push(
        &self,
        bucket: &BucketInfo,
        request: PushIn<'_>,
        limits: &Limits,
        now: Instant,
    ) -> Result<MutationsByVbucket> {
        let PushIn { transaction, number, owner, mutations, kept_for, is_awaited } = request;
        let (limits, reserve) = match is_awaited {
            true => (&limits.for_awaited(), limits.bytes_max),
            false => (limits, 0),
        };
        let mut state = self.state();
        let id = state.by_producer.get(&transaction).copied().unwrap_or(number);
        if let Some(open) = state.open.get_mut(&id) {
            if open.is_committing {
                return Err(committing_error(transaction));
            }
            open.asked_at = now;
        }
        let open = state.open.get(&id);
        let known = open.and_then(|open| open.producer.as_ref()).map(|producer| &producer.kept);
        let (new, kept) = new_mutations(&bucket.name, transaction, (known, mutations))?;
        if new.is_empty() {
            return Ok(kept);
        }
        let bytes = new.iter().map(|push| Transaction::bytes_of_mutation(&push.mutation)).sum();
        let before = open.map_or(0, |open| open.held.bytes());
        limits.check_bytes(TransactionId(transaction.0), before + bytes)?;
        let mut held = limits.room.empty_reservation();
        held.grow_beyond_budget(bytes, reserve)?;
        let open = state.find_or_begin(bucket, (id, owner, 0), limits, now)?;
        open.held.add(held);
        for CheckedPush { mutation, .. } in new {
            let Mutation { vbucket, id, kind, document, .. } = mutation;
            open.add_mutation(vbucket, id, kind, document);
        }
        let producer = open.producer.get_or_insert(Producer {
            transaction,
            kept: MutationsByVbucket::new(),
            kept_for,
        });
        producer.kept.extend(&kept);
        let is_young = open.is_young(now);
        state.by_producer.insert(transaction, id);
        state.record_change(id);
        drop(state);
        self.wake_for_change(is_young);
        Ok(kept)
    }

    /// Returns the number of stored mutations of a producer's transaction in each vbucket. The
    /// error is `Unavailable` while the transaction is being committed.
    pub fn kept(&self, transaction: ProducerTransactionId) -> Result<MutationsByVbucket> {
        let state = self.state();
        let open = state.by_producer.get(&transaction).and_then(|id| state.open.get(id));
        match open {
            Some(open) if open.is_committing => Err(committing_error(transaction)),
            open => {
                let kept = open.and_then(|open| open.producer.as_ref());
                Ok(kept.map(|producer| producer.kept.clone()).unwrap_or_default())
            }
        }
    }

    /// Begins the commit of a producer's transaction, even if no mutations of it are stored. A
    /// commit with at least `large_changes` changes may become a large commit. The error is
    /// `Unavailable` if another commit of the transaction is in progress.
    pub fn commit_pushed(
        self: &Arc<Self>,
        transaction: ProducerTransactionId,
        (now, large_changes): (Instant, u64),
    ) -> Result<ProducerCommitGuard> {
        let mut state = self.state();
        let state = &mut *state;
        let (mut committing, transactions) = (None, Arc::clone(self));
        if let Some(id) = state.by_producer.get(&transaction).copied()
            && let Some(open) = state.open.get_mut(&id)
        {
            if open.is_committing {
                return Err(committing_error(transaction));
            }
            (open.is_committing, open.asked_at) = (true, now);
            open.is_large = open.changes() >= large_changes;
            committing = Some((id, open.place(), open.number, open.all(), open.is_large));
        }
        let Some((id, place, number, all, is_large)) = committing else {
            let (open, mutations, number, end) = (None, Vec::new(), 0, AfterCommit::Gone);
            return Ok(ProducerCommitGuard { open, mutations, number, end, transactions });
        };
        if is_large {
            state.record_change(id);
            self.wake_for_change(false);
        }
        let (open, mutations) = (Some((id, place)), all.in_order());
        Ok(ProducerCommitGuard { open, mutations, number, end: AfterCommit::Open, transactions })
    }

    /// Rolls a producer's transaction back. Returns false if it is not open, which is not an
    /// error.
    pub fn abort_pushed(&self, transaction: ProducerTransactionId) -> Result<bool> {
        let of = {
            let state = self.state();
            let id = state.by_producer.get(&transaction);
            match id.and_then(|id| state.open.get(id).map(|open| (*id, open))) {
                None => return Ok(false),
                Some((_, open)) if open.is_committing => return Err(committing_error(transaction)),
                Some((id, open)) => (id, open.number),
            }
        };
        self.end(of);
        Ok(true)
    }

    /// Makes a transaction open again after its commit was refused.
    fn open_after_refusal(&self, (id, number): (TransactionId, u64)) {
        let mut state = self.state();
        let Some(open) = state.open.get_mut(&id).filter(|open| open.number == number) else {
            return;
        };
        (open.is_committing, open.is_large) = (false, false);
        // A stream passes over what is being committed.
        state.record_change(id);
        drop(state);
        self.wake_for_change(false);
    }
}

/// Returns those mutations of a request that are not stored yet. Also returns, for each vbucket
/// of the request, the number of stored mutations after them. The error is `OutOfOrder` if an
/// earlier mutation is missing.
fn new_mutations(
    bucket: &str,
    transaction: ProducerTransactionId,
    (known, mutations): (Option<&MutationsByVbucket>, Vec<CheckedPush>),
) -> Result<(Vec<CheckedPush>, MutationsByVbucket)> {
    let mut kept = MutationsByVbucket::new();
    let mut new = Vec::with_capacity(mutations.len());
    for push in mutations {
        let (vbucket, position) = (push.mutation.vbucket, push.mutation.seqno.0);
        let before = || known.and_then(|known| known.get(&vbucket).copied()).unwrap_or_default();
        let count = kept.entry(vbucket).or_insert_with(before);
        if position == 0 {
            let what = format!("vbucket {vbucket} of bucket {bucket}: a mutation without position");
            return Err(Error::new(ErrorCode::InvalidParameter, what).with_hint(
                "positions count the mutations of the transaction in each vbucket from 1",
            ));
        }
        if position > *count + 1 {
            let what = format!(
                "transaction {transaction} of the producer of bucket {bucket} has {count} mutations of vbucket {vbucket} here, so position {position} leaves a gap; nothing was taken"
            );
            return Err(Error::new(ErrorCode::OutOfOrder, what).with_hint(
                "push the mutations of the transaction again from there: the projector was restarted, gave the transaction up, or has taken the vbucket over",
            ));
        }
        if position == *count + 1 {
            *count += 1;
            new.push(push);
        }
    }
    Ok((new, kept))
}

/// Returns the error for a call of a producer's transaction that is being committed.
fn committing_error(transaction: ProducerTransactionId) -> Error {
    let what = format!("transaction {transaction} of the producer is being committed");
    Error::unavailable(what).with_hint("try again")
}
