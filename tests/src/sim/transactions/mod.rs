//! Transactions of the simulated client, each with statements on an embedded bucket, scans, reads
//! of documents, savepoints, and a commit or none.
//!
//! Up to two transactions are open at once. Their steps alternate, and between them the client
//! writes single statements. All these writers prefer documents that an open transaction has read
//! or changed, so that commits are refused at times.
//!
//! - A scan or a read of documents in the transaction must return the model at the cut of the
//!   transaction's epoch, with the transaction's changes up to then (`steps`). A scan that runs
//!   concurrently with the transaction must include exactly the changes at the scan's beginning
//!   (`views`).
//! - An INSERT of a document that the transaction sees is refused, and leaves the transaction as it
//!   was (`expected`).
//! - After a commit no other writer has changed one of its documents after that cut, and none of
//!   its INSERTs found a document. A refused commit must have such a reason, and no effect
//!   (`commit`).
//!
//! A commit is one statement of the client's history ([`super::judge::statements`]), which judges
//! that the statement is completely in the log, once, or not at all. The statement gets its number
//! when the transaction begins, since the marks of documents contain it. A document that a later
//! change has replaced, or that was rolled back, is not part of the statement, so it is a violation
//! in the log.

mod commit;
mod expected;
pub(in crate::sim) mod pair;
mod running;
mod steps;
mod views;

use std::time::Duration;

use proto::ErrorCode;
use proto::model::cut::WritePosition;
use proto::rpc::api::{Write, WriteKind};
use tokio::time::{sleep, timeout};

use self::running::Running;
use self::views::Views;
use super::client::session::Session;
use super::client::workload::{STATEMENT, Workload, now};
use super::violation;

pub(super) use self::running::Own;

/// The maximum number of steps of a transaction.
const STEPS_MAX: usize = 12;
/// The maximum number of transactions that run before the client does something else.
const BEGUN_MAX: usize = 3;
/// The maximum number of concurrent transactions.
const OPEN_MAX: usize = 2;
/// The number of documents that the first load leaves out, so that an INSERT can succeed.
const NEW_IDS: u64 = 24;

/// True if a run has transactions.
pub(super) fn are_chosen(seed: u64) -> bool {
    seed % 5 == 3
}

impl Workload {
    /// Runs some transactions, with single statements between their steps.
    pub(super) async fn transactions(&mut self, session: &Session) {
        let (mut views, mut begun) = (Views::default(), 1);
        let mut open = vec![self.begin_transaction(session)];
        while !open.is_empty() {
            if begun < BEGUN_MAX && open.len() < OPEN_MAX && self.random.u8(..6) == 0 {
                open.push(self.begin_transaction(session));
                begun += 1;
            }
            let hot: Vec<String> = open.iter().flat_map(|open| open.hot.iter().cloned()).collect();
            if self.random.u8(..5) == 0 {
                let written = views.beside(self.write_beside(session, &hot)).await;
                session.note_writes(written.as_slice());
            }
            let n = self.random.usize(..open.len());
            if open[n].steps_left == 0 && self.random.bool() {
                views.end().await;
            }
            let turn = self.turn(session, &mut open[n], &hot, &mut views);
            if !turn.await {
                open.remove(n);
            }
            // Without a pause a scan arrives before the changes that it must see.
            if self.random.u8(..3) > 0 {
                let pause = Duration::from_millis(self.random.u64(..40));
                views.beside(sleep(pause)).await;
            }
        }
        views.end().await;
    }

    fn begin_transaction(&mut self, session: &Session) -> Running {
        let changes = session.begin_transaction(None);
        let steps = self.random.usize(1..STEPS_MAX);
        Running::new(changes, self.statements.begin(&[]), steps)
    }

    /// Executes the next step of a transaction, or its end; false if it has ended.
    async fn turn(
        &mut self,
        session: &Session,
        running: &mut Running,
        hot: &[String],
        views: &mut Views,
    ) -> bool {
        if running.steps_left == 0 {
            if !running.is_failed
                && self.random.u8(..5) > 0
                && running.changes.own_changes().is_some()
            {
                let written = views.beside(self.commit(session, running)).await;
                session.note_writes(written.as_slice());
            }
            return false;
        }
        running.steps_left -= 1;
        let began = now();
        let step = timeout(STATEMENT, views.beside(self.step_in(session, running, hot))).await;
        match step {
            Ok(Ok(view)) => {
                self.count(|summary| summary.transaction_steps += 1);
                views.extend(view);
                true
            }
            Ok(Err(error)) => {
                // The projector does not know it any more, or a scan was refused for a reason that its reader has judged.
                let is_lost = [ErrorCode::Conflict, ErrorCode::OverLimit].contains(&error.code);
                if !is_lost && !error.is_retry() && !self.is_excused(&error, began) {
                    violation(&self.summary, format!("a transaction was refused: {error}"));
                }
                false
            }
            Err(_late) => false,
        }
    }

    /// Executes a statement outside of the open transactions, mostly on their documents.
    async fn write_beside(&mut self, session: &Session, hot: &[String]) -> Option<WritePosition> {
        let writes = (0..self.random.usize(1..4)).map(|row| {
            let id = match self.random.u8(..4) {
                0 => self.id_near(&[]),
                _ => self.id_near(hot),
            };
            let mark = format!("{}.{row}", self.statements.next());
            let kind = match self.random.u8(..8) {
                0..3 => WriteKind::Delete,
                3 => WriteKind::Insert(self.document(mark).to_string().into()),
                _ => WriteKind::Upsert(self.document(mark).to_string().into()),
            };
            Write { id, kind }
        });
        let writes = writes.collect();
        self.write(session, writes).await
    }

    /// Returns mostly one of the ids `hot`, sometimes any other.
    fn id_near(&mut self, hot: &[String]) -> String {
        match self.random.u8(..8) {
            0 => self.new_id(),
            1..7 if !hot.is_empty() => hot[self.random.usize(..hot.len())].clone(),
            _ => self.id(),
        }
    }

    /// Returns the id of a document that the first load has left out.
    fn new_id(&mut self) -> String {
        format!("new{}", self.random.u64(..NEW_IDS))
    }
}
