//! The steps of a transaction before its end.

use proto::model::ids::TransactionPlace;
use proto::rpc::api::{CheckedWrites, Write, WriteKind};
use proto::value::DOCUMENT_BYTES_MAX;
use proto::{Error, ErrorCode, Result};
use serde_json::Value;
use sextant::access::TransactionView;

use super::expected::Expected;
use super::running::{Running, Snapshot};
use super::views::View;
use crate::sim::client::session::Session;
use crate::sim::client::workload::Workload;
use crate::sim::judge::marks::cut_of;
use crate::sim::judge::oracle::{SimIndex, documents};
use crate::sim::violation;

/// The time limit for the choice of a transaction's epoch in milliseconds, equal to that of a
/// session.
const PIN_MS: u64 = 5_000;

impl Workload {
    /// Executes a step; returns a scan that runs concurrently with the next steps, if the step
    /// starts one.
    pub(super) async fn step_in(
        &mut self,
        session: &Session,
        running: &mut Running,
        hot: &[String],
    ) -> Result<Option<View>> {
        if running.is_failed {
            return self.step_on(session, running).await.map(|()| None);
        }
        // A scan shows best whether a rollback has left anything.
        if std::mem::take(&mut running.went_back) && self.random.u8(..4) > 0 {
            return self.scan_in(session, running, None).await.map(|()| None);
        }
        match self.random.u8(..20) {
            // Most savepoints are after a change, so that a rollback continues the same transaction.
            0..3 if running.place().0 > 0 || self.random.u8(..4) == 0 => running.save(),
            3..5 if running.savepoints() > 0 => self.go_back(session, running).await?,
            5..8 => self.scan_in(session, running, None).await?,
            8..10 => return self.view_in(session, running).await.map(Some),
            10..12 => {
                let ids: Vec<_> = (0..self.random.usize(1..5)).map(|_| self.id_near(hot)).collect();
                self.read_in(session, running, &ids).await?;
            }
            _ => self.write_in(session, running, hot).await?,
        }
        Ok(None)
    }

    /// Continues after a refused statement: at a savepoint, or (as no session does) as if there had
    /// been no error.
    async fn step_on(&mut self, session: &Session, running: &mut Running) -> Result<()> {
        match self.random.u8(..3) {
            0 => running.steps_left = 0,
            _ if running.savepoints() > 0 => self.go_back(session, running).await?,
            _ => {
                running.is_failed = false;
                let ids: Vec<_> = running.hot.iter().rev().take(5).cloned().collect();
                self.read_in(session, running, &ids).await?;
            }
        }
        Ok(())
    }

    fn draw_writes(&mut self, running: &mut Running, hot: &[String]) -> Vec<Write> {
        if self.random.u8(..3) == 0 {
            return vec![Write { id: self.id_near(hot), kind: WriteKind::Delete }];
        }
        let count = self.random.usize(1..5);
        let write = |_| {
            let is_insert = self.random.u8(..8) == 0;
            let id = match self.random.u8(..4) {
                1.. if is_insert => self.new_id(),
                0 => self.id_near(hot),
                _ => self.id_near(&[]),
            };
            let document = self.document(running.mark()).to_string().into();
            let insert = WriteKind::Insert;
            let kind = if is_insert { insert(document) } else { WriteKind::Upsert(document) };
            Write { id, kind }
        };
        (0..count).map(write).collect()
    }

    /// Executes a writing statement.
    pub(super) async fn write_in(
        &mut self,
        session: &Session,
        running: &mut Running,
        hot: &[String],
    ) -> Result<()> {
        let writes = self.draw_writes(running, hot);
        running.hot.extend(writes.iter().map(|write| write.id.clone()));
        let expected = Expected::new(running, &writes, self.readable_of(session, &writes));
        let place = running.place();
        let checked = CheckedWrites::new(writes.clone(), DOCUMENT_BYTES_MAX)?;
        let (wrong, changes) = match running.changes.write(running.epoch(), checked).await {
            Ok(affected) => {
                if affected > 0 {
                    note_changes(running, &writes);
                }
                (expected.judge_written(affected, &self.truth, session), affected)
            }
            Err(error) if error.code == ErrorCode::DuplicateId => {
                running.is_failed = true;
                self.count(|summary| summary.inserts_refused += 1);
                (expected.judge_refused(&self.truth, session), 0)
            }
            Err(error) => return Err(error),
        };
        if let Some(wrong) = wrong {
            violation(&self.summary, format!("a transaction's statement {writes:?}: {wrong}"));
        }
        let now = running.place();
        if now != TransactionPlace(place.0 + changes) {
            let text = format!("{writes:?} took a transaction from place {place} to {now}");
            violation(&self.summary, text);
        }
        Ok(())
    }

    async fn go_back(&mut self, session: &Session, running: &mut Running) -> Result<()> {
        let place = running.back(self.random.usize(..running.savepoints()));
        (running.is_failed, running.went_back) = (false, true);
        match place {
            // Another transaction replaces the changes, as a session does it.
            TransactionPlace(0) => {
                running.changes = session.begin_transaction(None);
            }
            _ => running.changes.rollback_to(place).await?,
        }
        self.count(|summary| summary.savepoint_rollbacks += 1);
        Ok(())
    }

    /// Chooses the epoch of a transaction at its first read. The epoch must cover all writes
    /// acknowledged before.
    async fn pin(&mut self, session: &Session, running: &mut Running) -> Result<()> {
        running.changes.check()?;
        if running.snapshot.is_some() {
            return Ok(());
        }
        let bucket = session.bucket.id;
        let mut at_least = session.last_write();
        at_least.iter_mut().for_each(|last| {
            last.positions.retain(|(v, p)| self.truth.present_log(bucket, *v, *p).is_some());
        });
        let pin = session.backend.pin_bucket(bucket, PIN_MS).await?;
        let Some(cut) = cut_of(&session.marks, bucket, pin.epoch()).await else {
            return Err(Error::unavailable("the cut is not known"));
        };
        let documents = documents(&self.truth, bucket, &cut);
        running.snapshot = Some(Snapshot::new(pin, cut, documents, at_least));
        Ok(())
    }

    /// Scans the index `index`, or a random one.
    pub(super) async fn scan_in(
        &mut self,
        session: &Session,
        running: &mut Running,
        index: Option<&'static SimIndex>,
    ) -> Result<()> {
        self.pin(session, running).await?;
        let Some(seen) = &running.snapshot else { return Ok(()) };
        let (epoch, began) = (seen.epoch(), seen.catalog());
        let mut reader = self.reader();
        reader.random = self.random.fork();
        let any = |random: &mut fastrand::Rng| &self.indexes[random.usize(..self.indexes.len())];
        let index = index.unwrap_or_else(|| any(&mut self.random));
        match reader.scan_in(session, index, (epoch, &began), running.own(), None).await {
            Ok(()) => Ok(()),
            // The scan was refused for a reason that the reader has judged: the transaction has failed.
            Err(refusal) => Err(refusal.unwrap_or_else(|| Error::unavailable("no answer"))),
        }
    }

    /// Starts a scan that runs concurrently with the next steps, even after the end of the
    /// transaction.
    async fn view_in(&mut self, session: &Session, running: &mut Running) -> Result<View> {
        self.pin(session, running).await?;
        let seen = running.snapshot.as_ref();
        let (epoch, began) = seen.map(|seen| (seen.epoch(), seen.catalog())).unwrap_or_default();
        let (mut reader, session, own) = (self.reader(), session.clone(), running.own());
        reader.random = self.random.fork();
        let index = &self.indexes[self.random.usize(..self.indexes.len())];
        let pause_ms_max = [20, 100, 700][self.random.usize(..3)];
        Ok(Box::pin(async move {
            let scan =
                reader.scan_in(&session, index, (epoch, &began), own.clone(), Some(pause_ms_max));
            if scan.await.is_ok() && own.is_passed() {
                let mut summary = reader.summary.lock().expect("not poisoned");
                summary.views_passed += 1;
            }
        }))
    }

    async fn read_in(
        &mut self,
        session: &Session,
        running: &mut Running,
        ids: &[String],
    ) -> Result<()> {
        self.pin(session, running).await?;
        running.hot.extend(ids.iter().cloned());
        let own = running.own();
        let Some(seen) = &running.snapshot else { return Ok(()) };
        let view = TransactionView { snapshot: Some(seen.epoch()), own: own.view };
        let found = session.backend.get(&session.bucket, ids.to_vec(), view).await?;
        let mut expected = seen.documents.clone();
        own.put_over(&mut expected);
        for (id, found) in ids.iter().zip(found) {
            let found: Option<Value> =
                found.map(|found| serde_json::from_slice(&found).expect("JSON"));
            if found.as_ref() != expected.get(id) {
                let (epoch, expected) = (seen.epoch(), expected.get(id));
                let text = format!(
                    "a transaction at epoch {epoch} read document {id} as {found:?}, not {expected:?}"
                );
                violation(&self.summary, text);
            }
        }
        Ok(())
    }
}

/// Records the changes of a statement, all of which are effective.
fn note_changes(running: &mut Running, writes: &[Write]) {
    for Write { id, kind } in writes {
        let (document, is_insert) = match kind {
            WriteKind::Delete => (None, false),
            WriteKind::Upsert(document) => (Some(document), false),
            WriteKind::Insert(document) => (Some(document), true),
        };
        let document = document.map(|text| String::from_utf8_lossy(text).into_owned());
        running.change(id.clone(), document, is_insert);
    }
}
