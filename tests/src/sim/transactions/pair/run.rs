//! The sessions that write both buckets: their steps, their commits, and reads of both at one
//! moment.

use std::sync::Arc;
use std::time::Duration;

use proto::model::catalog::Catalog;
use proto::model::index::IndexState;
use proto::{Error, ErrorCode};
use tokio::time::{Instant, sleep, timeout};

use super::attempts::Attempts;
use super::background::Background;
use super::keep_history;
use super::lane::Lane;
use super::moments::pin_other;
use super::session::CommitStages;
use crate::sim::checks::is_lossy_without_copies;
use crate::sim::client::session::Session;
use crate::sim::client::workload::{Workload, create, drop_index, now};
use crate::sim::transactions::running::Running;
use crate::sim::{Shared, Summary, violation};

/// The maximum number of concurrent transactions.
const OPEN_MAX: usize = 3;
/// The maximum number of steps of a transaction.
const STEPS_MAX: usize = 6;
/// The time limit of a step, after which the session ends.
pub(super) const STEP: Duration = Duration::from_secs(4);

/// The time after which the changes of a transaction are sent to the indexers.
const YOUNG: Duration = Duration::from_millis(40);

/// An open transaction.
pub(super) struct Open {
    pub parts: [Running; 2],
    pub steps_left: usize,
}

/// Two buckets and their sessions.
pub(in crate::sim) struct Pair {
    pub(super) random: fastrand::Rng,
    pub(super) lanes: [Lane; 2],
    open: Vec<Open>,
    pub(super) background: Background,
    pub(super) attempts: Attempts,
    pub(super) stages: CommitStages,
    pub(super) summary: Shared,
    keeps_history: bool,
}

impl Pair {
    /// Creates the buckets and their indexes; `None` if this seed has none.
    pub async fn create(client: &Workload, session: &Session) -> Option<Self> {
        let (truth, stages) = client.pair.clone()?;
        let (seed, summary) = (client.seed, Arc::clone(&client.summary));
        truth.ask(&session.router);
        let mut lanes = Vec::new();
        for n in 0..2 {
            lanes.push(Lane::create(client, session, n, &truth).await);
        }
        // The bucket with the lowest number decides.
        lanes.sort_by_key(|lane| lane.session.bucket.id);
        let lanes: [Lane; 2] = lanes.try_into().ok()?;
        Some(Self {
            random: fastrand::Rng::with_seed(seed ^ 0x9a14),
            lanes,
            open: Vec::new(),
            background: Background::default(),
            attempts: Attempts::default(),
            stages,
            summary,
            keeps_history: keep_history(seed),
        })
    }

    /// Runs sessions until a time.
    pub async fn run(&mut self, end: Instant) {
        while Instant::now() < end {
            self.step().await;
            self.conclude();
            if self.random.u8(..3) > 0 {
                let pause = Duration::from_millis(self.random.u64(..30));
                self.background.beside(sleep(pause)).await;
                self.conclude();
            }
        }
        self.open.clear();
    }

    async fn step(&mut self) {
        match self.random.u8(..16) {
            0 => self.define().await,
            1..3 if self.open.len() < OPEN_MAX => self.begin(),
            1..3 => self.write_beside().await,
            3 => self.look().await,
            _ if self.open.is_empty() => self.begin(),
            _ => {
                let n = self.random.usize(..self.open.len());
                match self.open[n].steps_left {
                    0 => self.end_session(n).await,
                    _ => self.go_on(n).await,
                }
            }
        }
    }

    /// Recreates an index while a transaction with changes is open, and scans the index in that
    /// transaction.
    async fn define(&mut self) {
        let (at, began) = (self.random.usize(..2), now());
        self.begin();
        let Some(mut open) = self.open.pop() else { return };
        let Self { background, lanes, .. } = self;
        let Lane { work, session } = &mut lanes[at];
        let (index, part) = (&work.indexes[1], &mut open.parts[at]);
        drop(background.beside(timeout(STEP, drop_index(session, index.name))).await);
        let scanning = async {
            work.write_in(session, part, &[]).await?;
            // The transaction's changes are being sent to the indexers then.
            sleep(YOUNG).await;
            create(session, index, true).await?;
            let is_online = |catalog: &Catalog| {
                let made = catalog.index(index.name);
                made.is_some_and(|made| made.state == IndexState::Maintenance)
            };
            session.router.wait_catalog(is_online).await;
            match part.is_failed {
                true => Ok(()),
                false => work.scan_in(session, part, Some(index)).await,
            }
        };
        match background.beside(timeout(STEP, scanning)).await {
            Ok(Ok(())) => self.open.push(open),
            Ok(Err(error)) => self.judge_error("an index beside a transaction", &error, began),
            Err(_late) => {}
        }
    }

    fn begin(&mut self) {
        let steps_left = self.random.usize(1..STEPS_MAX);
        let [left, right] = &mut self.lanes;
        let first = left.session.begin_transaction(None);
        // A session has one number in all its buckets.
        let second = right.session.begin_transaction(Some(first.id()));
        let part = |lane: &mut Lane, changes| {
            Running::new(changes, lane.work.statements.begin(&[]), steps_left)
        };
        let parts = [part(left, first), part(right, second)];
        self.open.push(Open { parts, steps_left });
    }

    /// Returns the documents of open transactions in a bucket.
    fn hot(&self, lane: usize) -> Vec<String> {
        self.open.iter().flat_map(|open| open.parts[lane].hot.iter().cloned()).collect()
    }

    /// Executes a step of a transaction; a failed step ends the session.
    async fn go_on(&mut self, n: usize) {
        let (at, writes) = (self.random.usize(..2), self.random.bool());
        let (hot, began) = (self.hot(at), now());
        let mut open = self.open.remove(n);
        open.steps_left -= 1;
        let Self { background, lanes, .. } = self;
        let lane = &mut lanes[at];
        let step = async {
            pin_other(lane, &mut open.parts, at).await?;
            let part = &mut open.parts[at];
            match writes && !part.is_failed {
                true => lane.work.write_in(&lane.session, part, &hot).await.map(|()| None),
                false => lane.work.step_in(&lane.session, part, &hot).await,
            }
        };
        match background.beside(timeout(STEP, step)).await {
            Ok(Ok(view)) => {
                background.view(view);
                self.count(|summary| summary.transaction_steps += 1);
                self.judge_moment(&open.parts);
                // Part of a session that has failed.
                if open.parts[at].steps_left > 0 {
                    self.open.push(open);
                }
            }
            Ok(Err(error)) => self.judge_error("a transaction", &error, began),
            Err(_late) => {}
        }
    }

    /// True if a source has lost a part of its history.
    pub(super) fn is_lossy(&self) -> bool {
        !self.keeps_history && is_lossy_without_copies(&self.summary)
    }

    /// Commits a transaction, or ends its session without a commit.
    async fn end_session(&mut self, n: usize) {
        let mut open = self.open.remove(n);
        let is_one = self.random.u8(..8) == 0;
        let (hot, began) = ([self.hot(0), self.hot(1)], now());
        let Self { background, lanes, .. } = self;
        for (at, lane) in lanes.iter_mut().enumerate() {
            let has_changed = |open: &Open| open.parts[at].changes.own_changes().is_some();
            let ready = async {
                // Most transactions change both buckets.
                if !is_one && !has_changed(&open) {
                    let part = &mut open.parts[at];
                    lane.work.write_in(&lane.session, part, &hot[at]).await?;
                }
                // A writer that has changed one of its documents since its moment has committed first.
                match has_changed(&open) {
                    true => pin_other(lane, &mut open.parts, at).await,
                    false => Ok(()),
                }
            };
            match background.beside(timeout(STEP, ready)).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => return self.judge_error("a transaction", &error, began),
                Err(_late) => return,
            }
        }
        self.judge_moment(&open.parts);
        if open.parts.iter().any(|part| part.is_failed) || self.random.u8(..8) == 0 {
            return;
        }
        self.commit(open);
    }

    /// Records a violation for an error that no fault explains.
    pub(super) fn judge_error(&self, what: &str, error: &Error, began: Duration) {
        // A projector or an indexer may have given a transaction up.
        let is_lost = [ErrorCode::Conflict, ErrorCode::OverLimit].contains(&error.code);
        if !is_lost && !error.is_retry() && !self.lanes[0].work.is_excused(error, began) {
            violation(&self.summary, format!("{what} over two buckets was refused: {error}"));
        }
    }

    /// Executes a single statement, mostly on documents of open transactions.
    async fn write_beside(&mut self) {
        let at = self.random.usize(..2);
        let hot = self.hot(at);
        let Self { background, lanes, .. } = self;
        let Lane { work, session } = &mut lanes[at];
        let writing = timeout(STEP, work.write_beside(session, &hot));
        if let Ok(written) = background.beside(writing).await {
            session.note_writes(written.as_slice());
        }
    }

    pub(super) fn count(&self, count: impl FnOnce(&mut Summary)) {
        count(&mut self.summary.lock().expect("not poisoned"));
    }
}
