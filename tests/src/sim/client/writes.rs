//! The writes of the simulated client: statements to an embedded bucket, or changes at a producer that pushes them.

use proto::ErrorCode;
use proto::model::cut::WritePosition;
use proto::rpc::api::{CheckedWrites, Write, WriteKind};
use proto::value::DOCUMENT_BYTES_MAX;
use serde_json::json;
use tokio::time::timeout;

use super::session::Session;
use super::workload::{STATEMENT, Workload, now};
use crate::sim::judge::statements::{MARK, Outcome};
use crate::sim::producer::Producer;
use crate::sim::ranges;
use crate::sim::violation;

/// The number of document ids of the client's bucket.
pub(super) const IDS: u64 = 120;
/// The number of documents of each statement of the first load.
const LOADED_TOGETHER: u64 = 30;

impl Workload {
    /// Draws the id of a document.
    pub(in crate::sim) fn id(&mut self) -> String {
        format!("k{}", self.random.u64(..self.ids))
    }

    /// Returns a random document that contains a mark of its statement and row.
    pub(in crate::sim) fn document(&mut self, mark: String) -> serde_json::Value {
        let mut document = serde_json::Map::new();
        document.insert(MARK.into(), json!(mark));
        let strings = ["", "a", "aa", "b\u{0}c", "é", "z"];
        match self.random.u32(..40) {
            0 => drop(document.insert("a".into(), json!("long".repeat(1_250)))),
            1..6 => {}
            6..11 => drop(document.insert("a".into(), json!(null))),
            11..16 => drop(document.insert("a".into(), json!(self.random.i64(-3..3)))),
            _ => drop(
                document.insert("a".into(), json!(strings[self.random.usize(..strings.len())])),
            ),
        }
        if self.random.u32(..8) > 0 {
            document.insert("n".into(), json!(self.random.i64(0..100)));
        }
        let tags: Vec<&str> =
            (0..self.random.usize(..4)).map(|_| strings[self.random.usize(..4)]).collect();
        document.insert("t".into(), json!(tags));
        if let Some(pad) = ranges::pad(self.seed, &mut self.random) {
            document.insert(ranges::PAD.into(), json!(pad));
        }
        serde_json::Value::Object(document)
    }

    /// Changes some documents, and records and returns the acknowledged positions.
    pub(super) async fn change(&mut self, session: &mut Session) -> Vec<WritePosition> {
        let written = self.change_some(session).await;
        session.note_writes(&written);
        written
    }

    /// Changes some documents; returns the acknowledged positions.
    pub(in crate::sim) async fn change_some(&mut self, session: &Session) -> Vec<WritePosition> {
        match self.producer.clone() {
            Some(producer) => {
                let changes = (0..self.random.usize(1..5)).map(|row| {
                    let id = self.id();
                    let is_upsert = self.random.u32(..4) > 0;
                    let mark = format!("{}.{row}", producer.mutations());
                    (id, is_upsert.then(|| self.document(mark).to_string()))
                });
                let changes = changes.collect();
                self.push(&producer, session, changes).await
            }
            None => {
                let writes = (0..self.random.usize(1..5)).map(|row| {
                    let id = self.id();
                    let mark = format!("{}.{row}", self.statements.next());
                    let kind = match self.random.u32(..16) {
                        0..4 => WriteKind::Delete,
                        4 => WriteKind::Insert(self.document(mark).to_string().into()),
                        _ => WriteKind::Upsert(self.document(mark).to_string().into()),
                    };
                    Write { id, kind }
                });
                let writes = writes.collect();
                self.write(session, writes).await.into_iter().collect()
            }
        }
    }

    /// Writes all documents once, so that a shard has more rows than a slow reader accepts at once.
    pub(in crate::sim) async fn load(&mut self, session: &Session) {
        for first in (0..self.ids).step_by(LOADED_TOGETHER as usize) {
            let ids = (first..self.ids.min(first + LOADED_TOGETHER)).map(|n| format!("k{n}"));
            let written = match self.producer.clone() {
                Some(producer) => {
                    let statement = producer.mutations();
                    let changes = ids.enumerate().map(|(row, id)| {
                        (id, Some(self.document(format!("{statement}.{row}")).to_string()))
                    });
                    let changes = changes.collect();
                    self.push(&producer, session, changes).await
                }
                None => {
                    let statement = self.statements.next();
                    let writes = ids.enumerate().map(|(row, id)| {
                        let document = self.document(format!("{statement}.{row}"));
                        Write { id, kind: WriteKind::Upsert(document.to_string().into()) }
                    });
                    let writes = writes.collect();
                    self.write(session, writes).await.into_iter().collect()
                }
            };
            session.note_writes(&written);
        }
    }

    /// Executes a writing statement; returns the acknowledged position.
    pub(in crate::sim) async fn write(
        &mut self,
        session: &Session,
        writes: Vec<Write>,
    ) -> Option<WritePosition> {
        let (ids, began) = (writes.iter().map(|write| write.id.clone()).collect(), now());
        let statement = self.statements.begin(&writes);
        let before = self.readable_of(session, &writes);
        let checked = CheckedWrites::new(writes.clone(), DOCUMENT_BYTES_MAX).expect("JSON");
        let writing = async { session.backend.writer(&session.bucket)?.write(checked).await };
        match timeout(STATEMENT, writing).await {
            Ok(Ok(reply)) => {
                self.count(|summary| {
                    summary.writes += 1;
                    summary.note(&reply);
                });
                self.statements.end(statement, Outcome::Acknowledged(reply.clone()));
                self.acknowledged.push((reply.position.clone(), ids));
                if let Some(copied) = self.truth.copied() {
                    copied.acknowledge(&reply.position);
                }
                return Some(reply.position);
            }
            Ok(Err(error)) if error.code == ErrorCode::DuplicateId => {
                self.statements.end(statement, Outcome::Refused);
                self.judge_duplicate(session, &writes, &before);
            }
            Ok(Err(error)) if !error.is_retry() && !self.is_excused(&error, began) => {
                violation(&self.summary, format!("a write was refused: {error}"));
            }
            _ => self.count(|summary| summary.writes_unknown += 1),
        }
        None
    }

    /// Changes documents at the producer and pushes the mutations; returns the acknowledged
    /// positions.
    async fn push(
        &mut self,
        producer: &Producer,
        session: &Session,
        changes: Vec<(String, Option<String>)>,
    ) -> Vec<WritePosition> {
        let ids: Vec<String> = changes.iter().map(|(id, _)| id.clone()).collect();
        let (places, began) = (producer.change(changes), now());
        producer.transact(&session.backend, &session.bucket, &places).await;
        match producer.push_all(&session.backend, &session.bucket).await {
            Err(error) if !self.is_excused(&error, began) => {
                violation(&self.summary, format!("a push was refused: {error}"));
            }
            _ => {}
        }
        let (bucket, mut written) = (session.bucket.id, Vec::new());
        for ((vbucket, position), id) in places.into_iter().zip(ids) {
            if !producer.is_taken(vbucket, position) {
                self.count(|summary| summary.writes_unknown += 1);
                continue;
            }
            let write = WritePosition { bucket, positions: vec![(vbucket, position)] };
            self.count(|summary| {
                summary.writes += 1;
                summary.note(&write);
            });
            self.acknowledged.push((write.clone(), vec![id]));
            written.push(write);
        }
        written
    }
}
