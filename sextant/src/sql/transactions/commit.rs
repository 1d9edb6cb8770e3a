//! Commits the changes of a transaction in all its buckets.
//!
//! Changes in one bucket are committed by one call. Changes in several buckets are committed in
//! two phases ([`proto::model::joint`]): the bucket with the lowest number decides when all
//! others have prepared. The client gets the answer after the decision. If a bucket does not
//! finish within `FINISH_WAIT`, it finishes later without the session, and readers of its newest
//! documents wait until then.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use proto::model::ids::{BucketId, Epoch, TransactionId};
use proto::rpc::api::{Decision, WriteReply};
use proto::{Error, ErrorCode, ErrorKind, Result};
use tokio::time::timeout;

use crate::access::BucketTransaction;

/// The maximum time after the decision in which the answer waits for the other buckets to finish.
const FINISH_WAIT: Duration = Duration::from_secs(2);

/// The changes of a transaction in one bucket, and the epoch that it has read there.
pub struct Part {
    /// The changes in the bucket.
    pub changes: Arc<dyn BucketTransaction>,
    /// The epoch that the transaction has read in the bucket; `None` if it has read nothing
    /// there.
    pub snapshot: Option<Epoch>,
}

impl Part {
    /// Returns the bucket of the changes.
    pub fn bucket(&self) -> BucketId {
        self.changes.bucket().id
    }

    /// Prepares the changes for the commit `joint` over several buckets.
    async fn prepare(&self, joint: TransactionId, participants: &[BucketId]) -> Result<u64> {
        self.changes.prepare(self.snapshot, joint, participants).await
    }
}

/// Returns the number with which the commit of a transaction is logged: the transaction's number
/// in the deciding bucket.
pub fn number_of(parts: &[Part]) -> Option<TransactionId> {
    let changed = parts.iter().filter(|part| part.changes.own_changes().is_some());
    changed.min_by_key(|part| part.bucket()).map(|part| part.changes.id())
}

/// Commits all changes of a transaction durably, or none of them. Returns the results of the
/// buckets that have answered.
pub async fn commit_all(parts: Vec<Part>) -> Result<Vec<WriteReply>> {
    let mut parts: Vec<_> =
        parts.into_iter().filter(|part| part.changes.own_changes().is_some()).collect();
    parts.sort_by_key(Part::bucket);
    let mut parts = parts.into_iter();
    let Some(decider) = parts.next() else { return Ok(Vec::new()) };
    let joint = decider.changes.id();
    let others = prepare_all(parts.collect(), (&decider, joint)).await?;
    let participants = match others.is_empty() {
        true => Vec::new(),
        false => [&decider].into_iter().chain(&others).map(Part::bucket).collect(),
    };
    let decided = match decider.changes.commit(decider.snapshot, &participants).await {
        Ok(decided) => decided,
        Err(error) => {
            if is_refusal(&error) {
                end_all(&others, joint, &Decision::RollBack).await;
                return Err(error);
            }
            return Err(if others.is_empty() { error } else { in_doubt(error) });
        }
    };
    let mut replies = vec![decided];
    replies.extend(end_all(&others, joint, &Decision::Commit { participants }).await);
    Ok(replies)
}

/// Prepares the changes in all buckets except the deciding one, and returns them. If one bucket
/// refuses, the changes in all are rolled back.
async fn prepare_all(
    others: Vec<Part>,
    (decider, joint): (&Part, TransactionId),
) -> Result<Vec<Part>> {
    let participants: Vec<_> = [decider].into_iter().chain(&others).map(Part::bucket).collect();
    let prepared = join_all(others.iter().map(|part| part.prepare(joint, &participants))).await;
    let failed = prepared.iter().find_map(|prepared| prepared.as_ref().err().cloned());
    if let Some(error) = failed {
        end_all(&others, joint, &Decision::RollBack).await;
        return Err(not_committed(error));
    }
    Ok(others)
}

/// Sends the decision to the prepared buckets and waits for a limited time. Returns the results
/// of the buckets that answer.
async fn end_all(parts: &[Part], joint: TransactionId, decision: &Decision) -> Vec<WriteReply> {
    let ended = parts.iter().map(|part| async move {
        let ended = timeout(FINISH_WAIT, part.changes.decide(joint, decision.clone())).await;
        ended.map_err(|_| Error::new(ErrorCode::Cancelled, "no answer in time")).flatten()
    });
    let mut replies = Vec::new();
    for (part, ended) in parts.iter().zip(join_all(ended).await) {
        match ended {
            Ok(reply) => replies.push(reply),
            Err(error) => {
                let bucket = &part.changes.bucket().name;
                tracing::warn!(transaction = %joint, %bucket, %error, "a bucket ends a commit by itself");
            }
        }
    }
    replies
}

/// Returns the error for a commit whose deciding bucket was not called. It says that nothing is
/// committed.
fn not_committed(error: Error) -> Error {
    match error.code {
        ErrorCode::InDoubt => Error {
            code: ErrorCode::Conflict,
            message: format!("{}; it was not", error.message),
            hint: Some("begin the transaction again".to_owned()),
        },
        _ => error,
    }
}

/// Returns the error for a commit whose outcome is unknown, because the deciding bucket did not
/// answer with a refusal. If that bucket was dropped, the other buckets decide.
fn in_doubt(error: Error) -> Error {
    match error.code {
        ErrorCode::Unknown => {
            let what =
                format!("{}; the transaction may be committed in its other buckets", error.message);
            Error::new(ErrorCode::InDoubt, what)
                .with_hint("look at the data before you write again")
        }
        _ => error,
    }
}

/// Returns true if the error of a commit means that nothing was committed.
fn is_refusal(error: &Error) -> bool {
    !matches!(error.code, ErrorCode::InDoubt | ErrorCode::Unknown)
        && (error.code.kind() == ErrorKind::Caller || error.code == ErrorCode::TooBusy)
}

#[cfg(test)]
#[path = "commit_tests.rs"]
mod tests;
