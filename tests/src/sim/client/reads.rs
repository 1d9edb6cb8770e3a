//! Reads of documents by id, and inserts, judged by the source's log: a read that begins at one
//! position of the log and ends at a later one must return the document at a position between the
//! two.

use std::sync::Arc;

use projector::testing::Mutation;
use proto::model::ids::{VbucketId, vbucket_of};
use proto::rpc::api::{Write, WriteKind};
use proto::rpc::mutation::MutationKind;
use serde_json::Value;
use tokio::time::timeout;

use super::session::Session;
use super::workload::{STATEMENT, Workload, now};
use crate::sim::cluster::hosts::VBUCKETS;
use crate::sim::judge::truth::{Readable, Truth};
use crate::sim::violation;
use sextant::access::TransactionView;

/// The readable logs of some documents' vbuckets, in the order of the documents.
pub(in crate::sim) type Before = Vec<Option<Readable>>;

impl Workload {
    /// Reads some documents by id.
    pub(super) async fn read_documents(&mut self, session: &Session) {
        let ids: Vec<String> = (0..self.random.usize(1..5)).map(|_| self.id()).collect();
        let before: Before = ids.iter().map(|id| self.readable(session, id)).collect();
        let began = now();
        let now_shown = TransactionView::default();
        let reading = session.backend.get(&session.bucket, ids.clone(), now_shown);
        match timeout(STATEMENT, reading).await {
            Ok(Ok(found)) if found.len() == ids.len() => {
                self.count(|summary| {
                    summary.documents_read += found.len() as u64;
                    summary.note(&found);
                });
                for ((id, before), found) in ids.iter().zip(before).zip(found) {
                    let found = found.map(|found| serde_json::from_slice(&found).expect("JSON"));
                    let Some(states) = self.states_since(session, id, before) else { continue };
                    if !states.contains(&found) {
                        let text = format!(
                            "document {id} was read as {found:?}, not as one of {states:?}"
                        );
                        violation(&self.summary, text);
                    }
                }
            }
            Ok(Ok(found)) => {
                let text = format!("{} documents for {} ids", found.len(), ids.len());
                violation(&self.summary, text);
            }
            Ok(Err(error)) if !error.is_retry() && !self.is_excused(&error, began) => {
                violation(&self.summary, format!("a read of documents was refused: {error}"));
            }
            _ => {}
        }
    }

    /// Returns the readable logs of the documents of a statement.
    pub(in crate::sim) fn readable_of(&self, session: &Session, writes: &[Write]) -> Before {
        writes.iter().map(|write| self.readable(session, &write.id)).collect()
    }

    fn readable(&self, session: &Session, id: &str) -> Option<Readable> {
        self.truth.readable(session.bucket.id, vbucket(id))
    }

    /// Checks that an insert is refused only if the document exists, possibly by an earlier write of the statement.
    pub(super) fn judge_duplicate(&self, session: &Session, writes: &[Write], before: &Before) {
        let mut excused = false;
        for (n, write) in writes.iter().enumerate() {
            if !matches!(write.kind, WriteKind::Insert(_)) {
                continue;
            }
            let earlier = writes[..n].iter().rev().find(|earlier| earlier.id == write.id);
            excused |= match (earlier, &before[n]) {
                (Some(earlier), _) => earlier.kind != WriteKind::Delete,
                (None, None) => true,
                (None, Some(before)) => {
                    let states = self.states_between(session, &write.id, before);
                    states.is_none_or(|states| states.iter().any(Option::is_some))
                }
            };
        }
        if !excused {
            let text = format!("refused, though no inserted document is there: {writes:?}");
            violation(&self.summary, text);
        }
    }

    fn states_since(
        &self,
        session: &Session,
        id: &str,
        before: Option<Readable>,
    ) -> Option<Vec<Option<Value>>> {
        self.states_between(session, id, &before?)
    }

    /// Returns the states of a document from a position of the log up to now; `None` if the log was
    /// rewound in the meantime.
    fn states_between(
        &self,
        session: &Session,
        id: &str,
        before: &Readable,
    ) -> Option<Vec<Option<Value>>> {
        states_between(&self.truth, session, id, before)
    }
}

/// Returns the states of a document from a position of the log up to now; `None` if the log was
/// rewound in the meantime.
pub(in crate::sim) fn states_between(
    truth: &Truth,
    session: &Session,
    id: &str,
    before: &Readable,
) -> Option<Vec<Option<Value>>> {
    let after = truth.readable(session.bucket.id, vbucket(id))?;
    let is_same = after.lost == before.lost;
    let states = after.logs.iter().flat_map(|log| states_from(log, id, before.from));
    is_same.then(|| states.collect())
}

/// Returns the states of a document from a position of a log on.
fn states_from(log: &[Arc<Mutation>], id: &str, from: usize) -> Vec<Option<Value>> {
    let mut states = vec![None];
    for (n, mutation) in log.iter().enumerate() {
        if n == from {
            states.drain(..states.len() - 1);
        }
        if *mutation.id == *id {
            states.push(match mutation.kind {
                MutationKind::Upsert => serde_json::from_slice(&mutation.document).ok(),
                MutationKind::Deletion => None,
            });
        }
    }
    if from >= log.len() {
        states.drain(..states.len() - 1);
    }
    states
}

/// The vbucket of a document.
pub(in crate::sim) fn vbucket(id: &str) -> VbucketId {
    vbucket_of(id, VBUCKETS)
}
