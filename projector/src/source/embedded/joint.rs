//! Numbers the steps of a joint commit (a commit over several buckets) in a bucket that does not
//! decide its outcome ([`proto::model::joint`]).

use std::sync::Arc;

use bytes::Bytes;
use proto::model::commits::{CommittedTransaction, TransactionEvent};
use proto::model::cut::WritePosition;
use proto::model::ids::{BucketId, TransactionId};
use proto::model::joint::{JointCommit, PREPARED_MAX, PreparedChange, PreparedTransaction};
use proto::model::open_commit::OpenCommit;
use proto::plant::{self, Plant};
use proto::rpc::api::{Decision, WriteReply};
use proto::rpc::mutation::MutationKind;
use proto::{Error, ErrorCode, Result};

use super::commit::effective_changes;
use super::holds::check_joint_limit;
use super::numbering::RequestNumbering;
use crate::source::groups::ahead::UnshownGroups;
use crate::source::pending::PendingChanges;
use crate::transactions::committing::CommitInProgress;
use documents::document_store::DocumentStore;

/// Prepares a transaction, or refuses it. The transaction is stored under the number that it has
/// in the deciding bucket. Returns the number of documents that it locks. A transaction without
/// changes in this bucket is stored too: if the deciding bucket is dropped, the others must
/// report that they have prepared it.
pub(in crate::source) fn prepare(
    pending: &mut PendingChanges,
    store: (&mut UnshownGroups, &dyn DocumentStore),
    (transaction, committing): (TransactionId, &CommitInProgress),
) -> Result<u64> {
    check_joint_limit(pending)?;
    check_prepared(pending)?;
    if pending.bucket.transactions.is_refused(transaction) {
        let what = format!("transaction {transaction} was given up by its other buckets");
        return Err(Error::new(ErrorCode::Conflict, what).with_hint("begin the transaction again"));
    }
    let mut changes: Vec<_> = effective_changes(pending, store, committing)?
        .into_iter()
        .map(|mutation| PreparedChange {
            id: Arc::clone(&mutation.id),
            document: (mutation.kind == MutationKind::Upsert).then(|| mutation.document.clone()),
        })
        .collect();
    changes.sort_unstable_by(|one, other| one.id.cmp(&other.id));
    let count = changes.len() as u64;
    let participants = committing.participants.clone();
    let prepared = PreparedTransaction { transaction, participants, changes };
    pending.add_transaction_step(TransactionEvent::Prepared(Arc::new(prepared)));
    Ok(count)
}

/// Returns an error if the bucket cannot prepare another transaction because too many are
/// prepared. The bytes of a prepared transaction are counted like those of an open one.
fn check_prepared(pending: &PendingChanges) -> Result<()> {
    let count = pending.commits.prepared().len();
    if count < PREPARED_MAX {
        return Ok(());
    }
    let name = &pending.bucket.info.name;
    let what = format!("bucket {name} has {count} prepared transactions, which is the limit");
    Err(Error::new(ErrorCode::TooBusy, what).with_hint("try again when they have ended"))
}

/// Ends a prepared transaction by a commit or an abort.
pub(in crate::source) fn decide(
    pending: &mut PendingChanges,
    transaction: TransactionId,
    decision: Decision,
) -> Result<WriteReply> {
    let bucket = pending.bucket.info.id;
    let prepared = pending.commits.find_prepared(transaction).cloned();
    let known = pending.commits.find(transaction).cloned();
    match (prepared, known, decision) {
        (Some(prepared), _, Decision::Commit { participants }) => {
            Ok(finish(pending, &prepared, participants))
        }
        (None, Some(committed), Decision::Commit { .. }) => {
            let CommittedTransaction { affected, positions, .. } = committed;
            Ok(WriteReply { affected, position: WritePosition { bucket, positions } })
        }
        (None, None, Decision::Commit { .. }) => {
            let name = &pending.bucket.info.name;
            let what = format!("bucket {name} has not prepared transaction {transaction}");
            Err(Error::new(ErrorCode::Conflict, what))
        }
        (prepared, _, Decision::RollBack) => {
            if prepared.is_some() {
                pending.add_transaction_step(TransactionEvent::RolledBack(transaction));
            }
            let position = WritePosition { bucket, positions: Vec::new() };
            Ok(WriteReply { affected: 0, position })
        }
    }
}

fn finish(
    pending: &mut PendingChanges,
    prepared: &PreparedTransaction,
    participants: Vec<BucketId>,
) -> WriteReply {
    let mut numbered = RequestNumbering::for_request(pending, prepared.changes.len());
    for PreparedChange { id, document } in &prepared.changes {
        match document {
            Some(document) => numbered.add(id, MutationKind::Upsert, document.clone()),
            None => numbered.add(id, MutationKind::Deletion, Bytes::new()),
        }
    }
    let reply = numbered.reply();
    let committed = CommittedTransaction {
        transaction: prepared.transaction,
        affected: reply.affected,
        positions: reply.position.positions.clone(),
    };
    if !plant::is(Plant::FinishedTwice) {
        let joint = JointCommit { committed, participants };
        pending.add_transaction_step(TransactionEvent::Opened(OpenCommit::Joint(joint)));
    }
    reply
}
