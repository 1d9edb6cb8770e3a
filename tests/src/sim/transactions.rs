//! Transactions of the simulated client: several statements on an embedded bucket, some of them taken back, with scans and reads of
//! documents in between, and a commit or none.
//!
//! The whole transaction is drawn first, so that the client knows which changes a commit leaves: they are one statement of its history
//! ([`super::statements`]), which judges that they are in the log as a whole and once, or not at all. Documents that a later
//! change of the transaction replaces or takes back have a mark that no statement has, so one that appears in the log is a violation.
//!
//! - A scan, or a read of documents, in the transaction shows the model at the cut of the transaction's epoch with the changes so far.
//! - After a commit nobody else has changed one of its documents between that cut and the commit. The client has no other writer of
//!   the bucket while a transaction runs, so the runs provoke no conflict yet; `clusters::transactions` does.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use proto::model::cut::WritePosition;
use proto::model::ids::{Epoch, TransactionPlace, vbucket_of};
use proto::rpc::api::{CheckedWrite, CheckedWrites, Write, WriteKind};
use proto::rpc::scan::OwnView;
use proto::value::DOCUMENT_BYTES_MAX;
use proto::{Error, ErrorCode};
use serde_json::Value;
use sextant::sql::backend::{Backend, BucketTransaction, EpochPin, TransactionView};
use tokio::time::{sleep, timeout};

use super::hosts::VBUCKETS;
use super::marks::cut_of;
use super::oracle::{INDEXES, documents};
use super::session::Session;
use super::statements::Outcome;
use super::violation;
use super::workload::{STATEMENT, Workload, now};

/// The row of a document that no commit leaves, and of which no statement of the client has so many.
const REPLACED_ROW: usize = 1_000;
/// Maximum of steps of a transaction.
const STEPS_MAX: usize = 7;

/// True if a run has transactions.
pub(super) fn are_chosen(seed: u64) -> bool {
    seed % 5 == 3
}

/// A change of a document; `None` is a deletion.
pub(super) type Change = (String, Option<String>);

/// The changes of a transaction that a scan of it sees.
#[derive(Clone, Default)]
pub(super) struct Own {
    /// The place of the scan.
    pub view: Option<OwnView>,
    /// The last change of each document up to there.
    pub changes: BTreeMap<String, Option<String>>,
}

impl Own {
    /// Puts the changes over the documents of an epoch.
    pub fn put_over(&self, documents: &mut BTreeMap<String, Value>) {
        for (id, document) in &self.changes {
            match document {
                Some(text) => {
                    let document = serde_json::from_str(text).expect("JSON");
                    documents.insert(id.clone(), document);
                }
                None => drop(documents.remove(id)),
            }
        }
    }
}

/// A step of a transaction.
enum Step {
    /// Some upserts, or one deletion: its answer tells whether the document was there.
    Write(Vec<Change>),
    /// Remembers the place.
    Save,
    /// Goes back to the place that was remembered last.
    Back,
    /// Scans an index.
    Scan(usize),
    /// Reads documents by id.
    Read(Vec<String>),
}

/// A transaction that was drawn.
struct Script {
    steps: Vec<Step>,
    /// The changes that a commit leaves, in the order of the last change of each document.
    left: Vec<Change>,
    commits: bool,
}

/// A transaction in progress.
struct Running {
    changes: Arc<dyn BucketTransaction>,
    pin: Option<Box<dyn EpochPin>>,
    own: Own,
    saved: Vec<(TransactionPlace, BTreeMap<String, Option<String>>)>,
}

impl Running {
    fn snapshot(&self) -> Option<Epoch> {
        self.pin.as_ref().map(|pin| pin.epoch())
    }
}

impl Workload {
    /// Runs a transaction.
    pub(super) async fn transaction(&mut self, session: &Session) -> Vec<WritePosition> {
        let script = self.draw_script();
        let changes = session.backend.begin(&session.bucket, "the client");
        let mut running = Running { changes, pin: None, own: Own::default(), saved: Vec::new() };
        for step in &script.steps {
            let began = now();
            match timeout(STATEMENT, self.step_of(session, &mut running, step)).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => {
                    // The projector does not know it any more, or a scan was refused for a reason that its reader has judged.
                    let is_lost = [ErrorCode::Conflict, ErrorCode::OverLimit].contains(&error.code);
                    if !is_lost && !error.is_retry() && !self.is_excused(&error, began) {
                        violation(&self.summary, format!("a transaction was refused: {error}"));
                    }
                    return Vec::new();
                }
                Err(_) => return Vec::new(),
            }
            sleep(Duration::from_millis(self.random.u64(..40))).await;
        }
        match script.commits && running.changes.own().is_some() {
            true => self.commit(session, &running, &script.left).await.into_iter().collect(),
            false => Vec::new(),
        }
    }

    fn draw_script(&mut self) -> Script {
        let statement = self.statements.next();
        let (mut steps, mut saved) = (Vec::new(), Vec::new());
        let mut now: Vec<(usize, String)> = Vec::new();
        let mut drawn: Vec<(String, bool)> = Vec::new();
        for _ in 0..self.random.usize(1..STEPS_MAX) {
            steps.push(match self.random.u8(..12) {
                0 => {
                    saved.push(now.clone());
                    Step::Save
                }
                1 if !saved.is_empty() => {
                    now = saved.last().cloned().unwrap_or_default();
                    Step::Back
                }
                2..5 => Step::Scan(self.random.usize(..INDEXES.len())),
                5 => Step::Read((0..self.random.usize(1..5)).map(|_| self.id()).collect()),
                _ => {
                    let is_upsert = self.random.u8(..3) > 0;
                    let count = if is_upsert { self.random.usize(1..5) } else { 1 };
                    for _ in 0..count {
                        let id = self.id();
                        now.retain(|(_, other)| *other != id);
                        now.push((drawn.len(), id.clone()));
                        drawn.push((id, is_upsert));
                    }
                    Step::Write(vec![(String::new(), None); count])
                }
            });
        }
        // Only now it is known which of the changes a commit leaves, and so the marks of their documents.
        let row_of = |n: usize| now.iter().position(|(drawn, _)| *drawn == n);
        let changes: Vec<Change> = drawn
            .into_iter()
            .enumerate()
            .map(|(n, (id, is_upsert))| {
                let row = row_of(n).unwrap_or(REPLACED_ROW + n);
                let document = |this: &mut Self| this.document(format!("{statement}.{row}"));
                (id, is_upsert.then(|| document(self).to_string()))
            })
            .collect();
        let left = now.iter().map(|(n, _)| changes[*n].clone()).collect();
        let mut rest = changes.into_iter();
        for step in &mut steps {
            if let Step::Write(writes) = step {
                *writes = rest.by_ref().take(writes.len()).collect();
            }
        }
        Script { steps, left, commits: self.random.u8(..5) > 0 }
    }

    async fn step_of(
        &mut self,
        session: &Session,
        running: &mut Running,
        step: &Step,
    ) -> Result<(), Error> {
        match step {
            Step::Write(changes) => {
                let writes = writes(changes).into_iter();
                let writes = writes.map(|write| CheckedWrite::new(write, DOCUMENT_BYTES_MAX));
                let writes: CheckedWrites =
                    writes.collect::<Result<Vec<_>, _>>()?.into_iter().collect();
                let affected = running.changes.write(running.snapshot(), writes).await?;
                if affected > 0 {
                    running.own.changes.extend(changes.iter().cloned());
                }
            }
            Step::Save => {
                let place = running.changes.own().map(|own| own.place).unwrap_or_default();
                running.saved.push((place, running.own.changes.clone()));
            }
            Step::Back => {
                let Some((place, changes)) = running.saved.last().cloned() else { return Ok(()) };
                running.changes.back_to(place).await?;
                running.own.changes = changes;
            }
            Step::Scan(_) | Step::Read(_) => {
                if running.pin.is_none() {
                    let pinning = session.backend.pin_bucket(session.bucket.id, 5_000);
                    running.pin = Some(pinning.await?);
                }
                running.own.view = running.changes.own();
                match step {
                    Step::Scan(index) => self.scan_in(session, running, *index).await?,
                    Step::Read(ids) => self.read_in(session, running, ids).await?,
                    _ => {}
                }
            }
        }
        self.count(|summary| summary.transaction_steps += 1);
        Ok(())
    }

    async fn scan_in(
        &mut self,
        session: &Session,
        running: &Running,
        index: usize,
    ) -> Result<(), Error> {
        let Some(epoch) = running.snapshot() else { return Ok(()) };
        let mut reader = self.reader();
        reader.random = self.random.fork();
        match reader.scan_in(session, &INDEXES[index], epoch, running.own.clone()).await {
            Ok(()) => Ok(()),
            // The scan was refused for a reason that the reader has judged: the transaction has failed.
            Err(refusal) => Err(refusal.unwrap_or_else(|| Error::unavailable("no answer"))),
        }
    }

    async fn read_in(
        &mut self,
        session: &Session,
        running: &Running,
        ids: &[String],
    ) -> Result<(), Error> {
        let Some(epoch) = running.snapshot() else { return Ok(()) };
        let view = TransactionView { snapshot: Some(epoch), own: running.own.view };
        let found = session.backend.get_in(&session.bucket, ids.to_vec(), view).await?;
        let Some(cut) = cut_of(&session.marks, session.bucket.id, epoch).await else {
            return Err(Error::unavailable("the cut is not known"));
        };
        let mut expected = documents(&self.truth, session.bucket.id, &cut);
        running.own.put_over(&mut expected);
        for (id, found) in ids.iter().zip(found) {
            let found: Option<Value> =
                found.map(|found| serde_json::from_slice(&found).expect("JSON"));
            if found.as_ref() != expected.get(id) {
                let expected = expected.get(id);
                let text = format!(
                    "a transaction at epoch {epoch} read document {id} as {found:?}, not {expected:?}"
                );
                violation(&self.summary, text);
            }
        }
        Ok(())
    }

    async fn commit(
        &mut self,
        session: &Session,
        running: &Running,
        left: &[Change],
    ) -> Option<WritePosition> {
        let (mut writes, began) = (writes(left), now());
        for (row, write) in writes.iter_mut().enumerate() {
            let is_deletion = write.kind == WriteKind::Delete;
            if is_deletion && !running.own.changes.contains_key(&write.id) {
                // It found nothing. Somebody may have written the document since, which the commit leaves alone.
                write.id = format!("absent{row}");
            }
        }
        let ids = writes.iter().map(|write| write.id.clone()).collect();
        let statement = self.statements.begin(&writes);
        match timeout(STATEMENT, running.changes.commit(running.snapshot())).await {
            Ok(Ok(reply)) => {
                self.count(|summary| {
                    summary.transactions += 1;
                    summary.note(&reply);
                });
                self.statements.end(statement, Outcome::Acknowledged(reply.clone()));
                self.acknowledged.push((reply.position.clone(), ids));
                if let Some(copied) = self.truth.copied() {
                    copied.acknowledge(&reply.position);
                }
                if let Some(epoch) = running.snapshot() {
                    self.judge_conflicts(session, epoch, &reply.position, &writes).await;
                }
                return Some(reply.position);
            }
            Ok(Err(error)) if error.code == ErrorCode::Conflict => {
                self.statements.end(statement, Outcome::Refused);
                self.count(|summary| summary.conflicts += 1);
            }
            Ok(Err(error)) if !error.is_retry() && !self.is_excused(&error, began) => {
                violation(&self.summary, format!("a commit was refused: {error}"));
            }
            _ => self.count(|summary| summary.writes_unknown += 1),
        }
        None
    }

    /// Nobody may have changed a document of a commit since the epoch that its transaction has read.
    async fn judge_conflicts(
        &self,
        session: &Session,
        epoch: Epoch,
        committed: &WritePosition,
        writes: &[Write],
    ) {
        let bucket = session.bucket.id;
        let Some(cut) = cut_of(&session.marks, bucket, epoch).await else { return };
        for (vbucket, position) in &committed.positions {
            let Some(log) = self.truth.log_at(bucket, *vbucket, *position) else { continue };
            let seen = cut.get(*vbucket).seqno;
            let ids = writes.iter().filter(|write| vbucket_of(&write.id, VBUCKETS) == *vbucket);
            for Write { id, .. } in ids {
                let changes: Vec<_> = log
                    .iter()
                    .filter(|mutation| mutation.seqno > seen && *mutation.id == **id)
                    .map(|mutation| mutation.seqno)
                    .collect();
                if changes.len() > 1 {
                    let text = format!(
                        "a transaction that read epoch {epoch} replaced a change of document {id}: {changes:?}"
                    );
                    violation(&self.summary, text);
                }
            }
        }
    }
}

fn writes(changes: &[Change]) -> Vec<Write> {
    let write = |(id, document): &Change| {
        let kind = match document {
            Some(text) => WriteKind::Upsert(Bytes::from(text.clone())),
            None => WriteKind::Delete,
        };
        Write { id: id.clone(), kind }
    };
    changes.iter().map(write).collect()
}
