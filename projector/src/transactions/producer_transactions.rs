//! The open transactions of producers, in a pushed bucket ([`proto::model::pushed_commit`]).
//!
//! A producer has its own number for a transaction. Each owner of vbuckets also assigns a random
//! number to its part of the transaction, and streams the part to the indexers under this number
//! like any other transaction. No reader sees the complete open transaction.
//!
//! A commit that is refused leaves the transaction open, because the producer can push the missing
//! parts and commit again.

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
    /// The user of the transaction, for display.
    pub owner: &'p str,
    /// The mutations. Their seqnos are positions in the transaction, counted in each vbucket.
    pub mutations: Vec<CheckedPush>,
    /// The time for which the transaction is kept after its last mutation.
    pub kept_for: Duration,
    /// True if epochs may wait for the transaction. It may then exceed the memory limit by the size
    /// of one transaction, since it and the epochs would otherwise wait for each other.
    pub is_awaited: bool,
}

/// The number of stored mutations of each vbucket.
pub type MutationsByVbucket = BTreeMap<VbucketId, u64>;

/// A guard of the commit of a producer's transaction. When it is dropped the transaction is open
/// again, unless `end` was set.
pub struct ProducerCommitGuard {
    /// The transaction's number on this projector, and its place; `None` if none of its mutations
    /// is stored.
    pub open: Option<(TransactionId, TransactionPlace)>,
    /// The mutations of the transaction, in order.
    pub mutations: Vec<Arc<Mutation>>,
    /// The number of the transaction among the bucket's transactions.
    pub number: u64,
    end: End,
    transactions: Arc<Transactions>,
}

/// The state of the transaction after the commit attempt.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// The transaction is open again.
    Open,
    /// The transaction has ended.
    Gone,
    /// The outcome is unknown.
    InDoubt,
}

impl ProducerCommitGuard {
    /// Returns the number of mutations of each vbucket.
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
        self.end = End::Gone;
    }

    /// Keeps the transaction in its present state, since the outcome of its commit is unknown.
    /// Returns the error for the caller.
    pub fn in_doubt(mut self, error: Error) -> Error {
        self.end = End::InDoubt;
        let what = format!("{}; the transaction may be committed", error.message);
        Error::new(ErrorCode::Interrupted, what).with_hint("commit it again")
    }
}

impl Drop for ProducerCommitGuard {
    fn drop(&mut self) {
        let Some((id, _)) = self.open else { return };
        match self.end {
            End::Gone => self.transactions.end((id, self.number)),
            End::Open => self.transactions.reopen((id, self.number)),
            End::InDoubt => {}
        }
    }
}

impl Transactions {
    /// Stores mutations of a producer's transaction, all or none. Returns the number of stored
    /// mutations of each vbucket in the request.
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
                return Err(is_committing(transaction));
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
        let mut held = limits.room.hold();
        held.grow_into(bytes, reserve)?;
        let open = state.begun(bucket, (id, owner, 0), limits, now)?;
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
        state.changed(id);
        drop(state);
        self.wake_for_change(is_young);
        Ok(kept)
    }

    /// Returns the number of stored mutations of a producer's transaction, by vbucket;
    /// `Unavailable` while it is being committed.
    pub fn kept(&self, transaction: ProducerTransactionId) -> Result<MutationsByVbucket> {
        let state = self.state();
        let open = state.by_producer.get(&transaction).and_then(|id| state.open.get(id));
        match open {
            Some(open) if open.is_committing => Err(is_committing(transaction)),
            open => {
                let kept = open.and_then(|open| open.producer.as_ref());
                Ok(kept.map(|producer| producer.kept.clone()).unwrap_or_default())
            }
        }
    }

    /// Begins the commit of a producer's transaction, whether or not it has stored mutations. A commit of at least `large_changes` may be
    /// large. `Unavailable` if another commit of it is in progress.
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
                return Err(is_committing(transaction));
            }
            (open.is_committing, open.asked_at) = (true, now);
            open.is_large = open.changes() >= large_changes;
            committing = Some((id, open.place(), open.number, open.all(), open.is_large));
        }
        let Some((id, place, number, all, is_large)) = committing else {
            let (open, mutations, number, end) = (None, Vec::new(), 0, End::Gone);
            return Ok(ProducerCommitGuard { open, mutations, number, end, transactions });
        };
        if is_large {
            state.changed(id);
            self.wake_for_change(false);
        }
        let (open, mutations) = (Some((id, place)), all.in_order());
        Ok(ProducerCommitGuard { open, mutations, number, end: End::Open, transactions })
    }

    /// Rolls a producer's transaction back. Returns false if it is not open, which is no error.
    pub fn abort_pushed(&self, transaction: ProducerTransactionId) -> Result<bool> {
        let of = {
            let state = self.state();
            let id = state.by_producer.get(&transaction);
            match id.and_then(|id| state.open.get(id).map(|open| (*id, open))) {
                None => return Ok(false),
                Some((_, open)) if open.is_committing => return Err(is_committing(transaction)),
                Some((id, open)) => (id, open.number),
            }
        };
        self.end(of);
        Ok(true)
    }

    /// Opens a transaction again whose commit was refused.
    fn reopen(&self, (id, number): (TransactionId, u64)) {
        let mut state = self.state();
        let Some(open) = state.open.get_mut(&id).filter(|open| open.number == number) else {
            return;
        };
        (open.is_committing, open.is_large) = (false, false);
        // A stream passes over what is being committed.
        state.changed(id);
        drop(state);
        self.wake_for_change(false);
    }
}

/// Returns the mutations that are not stored yet, and the number of stored mutations afterwards for
/// each vbucket in the request. `OutOfOrder` if an earlier mutation is missing.
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

fn is_committing(transaction: ProducerTransactionId) -> Error {
    let what = format!("transaction {transaction} of the producer is being committed");
    Error::unavailable(what).with_hint("try again")
}
