//! The scans of the simulated client, each of which is judged: it must return the entries of the
//! model at the cut of its epoch, and the epoch must cover everything that was requested. Rows that
//! arrive before an error are judged too.
//!
//! The client scans between its statements. Other readers scan all the time, some of them so slowly
//! that the slices move, are compacted or lose their node during a scan ([`Reader::run`]).

mod judge;
mod query;
mod read;
mod text;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use proto::model::catalog::Catalog;
use proto::model::cut::{Position, WritePosition};
use proto::model::ids::{Epoch, VbucketId};
use proto::model::index::{IndexInfo, IndexState};
use proto::rpc::scan::Consistency;
use proto::{Error, ErrorCode};
use tokio::time::{sleep, timeout};

pub use self::query::Query;
use self::read::{Pace, Read, read};
use super::client::session::{Gone, Session};
use super::client::workload::{STATEMENT, Workload, now};
use super::cluster::hosts::has_small_queues;
use super::effects::Effects;
use super::judge::oracle::{INDEXES, SimIndex};
use super::judge::truth::Truth;
use super::transactions::Own;
use super::{Shared, violation};

/// The maximum time between two pages, in milliseconds.
const HOLD_MS_MAX: u64 = 20_000;
/// The time after a rollback within which a node may drop a copy that cannot be rolled back,
/// although the copy was reported as readable when a scan chose its epoch.
pub(super) const ROLLBACK_REACHES_NODES: Duration = Duration::from_secs(10);
/// The faults after which a copy may answer only newer epochs than before, because it is copied,
/// rebuilt or resynced.
const LOSSES_OF_PAST: [&str; 5] =
    ["purge", "purge_while_away", "empty_disk", "flipped_bit", "removed_node"];
/// The maximum pause of a slow reader after a batch, in milliseconds.
const PAUSE_MS_MAX: u64 = 800;
/// The maximum number of pauses of a scan that runs concurrently with its transaction.
const VIEW_PAUSES: usize = 5;

/// A reader with its own random numbers, which shares everything else with the client.
#[derive(Clone)]
pub struct Reader {
    /// The random numbers of the reader.
    pub random: fastrand::Rng,
    /// The true history.
    pub truth: Truth,
    /// The summary of the run.
    pub summary: Shared,
    /// The time of the last disk fault, in simulated milliseconds.
    pub disks_broken_at_ms: Arc<AtomicU64>,
    /// The number of batches that slow readers have received.
    pub parts_read: Arc<AtomicU64>,
    /// True if scans may be read in pages.
    pub has_pages: bool,
}

/// A scan as it was requested.
struct Asked<'a> {
    index: &'a SimIndex,
    info: Arc<IndexInfo>,
    query: Query,
    consistency: Consistency,
    pace: Pace,
    /// The positions that the epoch must cover, unless they are lost.
    at_least: Option<WritePosition>,
    /// The value of [`Truth::losses`] at the time of the request.
    losses: Vec<u64>,
    /// True if the scan must not be refused.
    must: bool,
    /// The epoch of the transaction; `None` outside of one.
    pinned: Option<Epoch>,
    /// True if the index did not serve yet when the transaction fixed its moment, so that it may
    /// not have that epoch.
    is_younger: bool,
    /// The changes of the transaction.
    own: Own,
    /// The time of the request.
    began: Duration,
}

/// Returns the consistency of the next scan, in half of the cases with the last epoch that the
/// session has read as its floor.
fn floor_of(session: &Session, index: &IndexInfo) -> Consistency {
    match session.seen(index.id).filter(|epoch| epoch.0 % 2 == 0) {
        Some(epoch) => Consistency::AtLeast(epoch),
        None => Consistency::Any,
    }
}

impl Workload {
    /// Runs and judges a scan of all or some entries of an index; writes continue during half of
    /// the scans. With `must` the scan may not be refused. Returns true if it succeeded.
    pub(super) async fn scan(
        &mut self,
        session: &mut Session,
        index: &SimIndex,
        must: bool,
    ) -> bool {
        let mut reader = self.reader();
        reader.random = self.random.fork();
        let scanned = match !must && self.random.bool() {
            true => {
                let scanning = reader.scan(session, index, must, false);
                let (scanned, written) = tokio::join!(scanning, self.change_meanwhile(session));
                session.note_writes(&written);
                scanned
            }
            false => reader.scan(session, index, must, false).await,
        };
        match scanned {
            Ok(()) => true,
            Err(refusal) => {
                self.refusal = refusal;
                false
            }
        }
    }

    /// Writes while a scan reads, so that epochs advance.
    async fn change_meanwhile(&mut self, session: &Session) -> Vec<WritePosition> {
        let mut written = Vec::new();
        for _ in 0..self.random.usize(1..4) {
            sleep(Duration::from_millis(self.random.u64(..8))).await;
            written.extend(self.change_some(session).await);
        }
        written
    }
}

impl Reader {
    /// Scans until the future is dropped, sometimes slowly.
    pub async fn run(mut self, session: Session) {
        loop {
            sleep(Duration::from_millis(self.random.u64(50..1_000))).await;
            if self.random.u8(..6) == 0 {
                self.transaction(&session, &INDEXES).await;
                continue;
            }
            let slowly = self.random.u8(..4) > 0;
            // A slow scan is most useful where another copy can go on with it.
            let index = match slowly && self.random.bool() {
                true => &INDEXES[2 * self.random.usize(..2)],
                false => &INDEXES[self.random.usize(..INDEXES.len())],
            };
            let _ = self.scan(&session, index, false, slowly).await;
        }
    }

    /// Runs and judges a scan; returns the error if it was refused.
    pub(super) async fn scan(
        &mut self,
        session: &Session,
        index: &SimIndex,
        must: bool,
        slowly: bool,
    ) -> Result<(), Option<Error>> {
        let Some(info) = session.router.catalog().index(index.name).cloned() else {
            return if must { Err(None) } else { Ok(()) };
        };
        let asked = self.draw_scan(session, index, info, must, slowly);
        self.scan_as(session, asked).await
    }

    /// Runs the scans of a transaction, which all read the epoch of the first one while the
    /// transaction's lease lasts.
    pub(super) async fn transaction(&mut self, session: &Session, indexes: &[SimIndex]) {
        let index = &indexes[self.random.usize(..indexes.len())];
        let Some(info) = session.router.catalog().index(index.name).cloned() else { return };
        let first = self.draw_scan(session, index, Arc::clone(&info), false, false);
        let pinning = session.backend.pin(info.local_id(), &first.consistency, 5_000);
        let Ok(Ok(pin)) = timeout(STATEMENT, pinning).await else { return };
        for _ in 0..self.random.usize(1..4) {
            let drawn = self.draw_scan(session, index, Arc::clone(&info), false, false);
            let asked = Asked {
                consistency: Consistency::Epoch(pin.epoch()),
                at_least: first.at_least.clone(),
                losses: first.losses.clone(),
                pinned: Some(pin.epoch()),
                began: first.began,
                ..drawn
            };
            if self.scan_as(session, asked).await.is_err() {
                return;
            }
            self.count(|summary| summary.pinned_scans += 1);
            sleep(Duration::from_millis(self.random.u64(..2_000))).await;
        }
    }

    /// Runs and judges a scan of a transaction that has uncommitted changes, with pauses if
    /// `pause_ms_max` is given.
    pub(super) async fn scan_in(
        &mut self,
        session: &Session,
        index: &SimIndex,
        (epoch, began): (Epoch, &Catalog),
        own: Own,
        pause_ms_max: Option<u64>,
    ) -> Result<(), Option<Error>> {
        let Some(shown) = session.router.catalog().index(index.name).cloned() else {
            return Ok(());
        };
        // The scan continues in the generation that served when the transaction fixed its moment.
        let (info, is_younger) = match began.indexes.get(&shown.id) {
            Some(info) if info.state == IndexState::Maintenance => (Arc::clone(info), false),
            _ => (shown, true),
        };
        let drawn = self.draw_scan(session, index, info, false, pause_ms_max.is_some());
        let pauses = pause_ms_max.into_iter().flat_map(|most| [most; VIEW_PAUSES]);
        let pauses = pauses.map(|most| Duration::from_millis(self.random.u64(..most)));
        let asked = Asked {
            consistency: Consistency::Epoch(epoch),
            at_least: own.at_least.clone(),
            pinned: Some(epoch),
            is_younger,
            // A token names no transaction.
            pace: Pace { pauses: pauses.collect(), ..Pace::default() },
            own,
            ..drawn
        };
        self.scan_as(session, asked).await
    }

    /// Runs and judges a scan.
    async fn scan_as(&mut self, session: &Session, asked: Asked<'_>) -> Result<(), Option<Error>> {
        let (index, catalog) = (asked.index, session.router.catalog());
        let bucket = catalog.buckets.get(&asked.info.bucket);
        // A transaction may go on with what it began to read before a rollback.
        let from = bucket.and_then(|bucket| bucket.readable_from());
        let from = from.filter(|_| asked.pinned.is_none());
        let mut request =
            asked.query.request(index, asked.info.local_id(), asked.consistency.clone());
        request.own = asked.own.view;
        // The others keep the request that the query builds itself.
        if asked.consistency != Consistency::RequestPlus {
            match text::planned(&asked.query, &asked.info, request.clone()) {
                Ok(planned) => request = planned,
                Err(what) => violation(&self.summary, format!("a scan's text: {what}")),
            }
            self.count(|summary| summary.scans_by_text += 1);
        }
        let pauses: Duration = asked.pace.pauses.iter().sum();
        let reading = read(session, &self.parts_read, &asked.info, &request, asked.pace.clone());
        let Ok(read) = timeout(STATEMENT + pauses, reading).await else {
            self.count(|summary| summary.scans_refused += 1);
            return Err(None);
        };
        if let Some(epoch) = read.epoch.filter(|epoch| from.is_some_and(|from| *epoch < from)) {
            let what =
                format!("a scan of {} read epoch {epoch}, from before a rollback", index.name);
            violation(&self.summary, what);
        }
        if let (Consistency::AtLeast(floor), Some(epoch)) = (&asked.consistency, read.epoch)
            && epoch < *floor
        {
            let what =
                format!("a session that had read epoch {floor} of {} read {epoch}", index.name);
            violation(&self.summary, what);
        }
        read.epoch.iter().for_each(|epoch| session.note_seen(asked.info.id, *epoch));
        if asked.pinned.is_some() && read.epoch.is_some() && read.epoch != asked.pinned {
            let (pinned, read) = (asked.pinned, read.epoch);
            let what = format!("a transaction of {pinned:?} read {read:?} of {}", index.name);
            violation(&self.summary, what);
        }
        if session.router.catalog().generations.contains_key(&asked.info.local_id()) {
            self.count(|summary| summary.scans_of_retired += u64::from(read.error.is_none()));
        }
        self.judge(session, &asked, &read).await;
        match read.error {
            None => Ok(()),
            Some(error) => self.refused(session, &asked, read.epoch.or(asked.pinned), error),
        }
    }

    /// Judges the error of a scan. An error about lost positions does not show whether the index is
    /// served.
    fn refused(
        &self,
        session: &Session,
        asked: &Asked<'_>,
        epoch: Option<Epoch>,
        error: Error,
    ) -> Result<(), Option<Error>> {
        let is_wrong = match (error.code, epoch) {
            // The transaction has left the scan's place.
            (ErrorCode::SnapshotTooOld, _) if asked.own.is_gone() || asked.is_younger => false,
            // An indexer may know of a rollback before the catalog of the router does, so the end decides.
            (ErrorCode::SnapshotTooOld, Some(epoch)) if self.is_broken_lease(session, asked) => {
                let text = format!(
                    "{error}; asked at {:?}, told at {:?}: {:?}",
                    asked.began,
                    now(),
                    asked.query
                );
                session.note_gone(Gone { epoch, began: asked.began, text });
                false
            }
            (ErrorCode::SnapshotTooOld, None) => self.is_broken_lease(session, asked),
            (ErrorCode::SnapshotTooOld, Some(_)) => false,
            _ => self.is_wrong(asked, &error),
        };
        if is_wrong {
            let text = format!("a scan of {} failed: {error}; {:?}", asked.index.name, asked.query);
            violation(&self.summary, text);
            return Ok(());
        }
        self.count(|summary| {
            summary.scans_refused += 1;
            *summary.refusals.entry(format!("{:?}", error.code)).or_default() += 1;
        });
        match error.code {
            ErrorCode::InvalidParameter => Err(None),
            _ => Err(Some(error)),
        }
    }

    fn count(&self, count: impl FnOnce(&mut super::Summary)) {
        count(&mut self.summary.lock().expect("not poisoned"));
    }

    fn draw_scan<'a>(
        &mut self,
        session: &Session,
        index: &'a SimIndex,
        info: Arc<IndexInfo>,
        must: bool,
        slowly: bool,
    ) -> Asked<'a> {
        // A slow scan of all rows is in the midst of its shards for longer.
        let all = must || slowly && self.random.bool();
        let query = match all {
            true => Query::all(&mut self.random),
            false => Query::draw(&mut self.random, index),
        };
        let last_write = session.last_write();
        let (consistency, at_least) = match (must, self.random.u32(..3), last_write) {
            (false, 0, _) => (floor_of(session, &info), None),
            (false, 1, Some(last)) => (Consistency::AtPlus(last.positions.clone()), Some(last)),
            (_, _, mut last) => {
                // Positions that the source lacks at the time of the request are left out, though they may be pushed
                // again later.
                let is_here = |(v, p): &(VbucketId, Position)| {
                    self.truth.present_log(info.bucket, *v, *p).is_some()
                };
                last.iter_mut().for_each(|last| last.positions.retain(is_here));
                (Consistency::RequestPlus, last)
            }
        };
        let pace = if must { Pace::default() } else { self.draw_pace(&query, slowly) };
        let (losses, began) = (self.truth.losses(), now());
        let (pinned, own) = (None, Own::default());
        let is_younger = false;
        Asked {
            index,
            info,
            query,
            consistency,
            pace,
            at_least,
            losses,
            must,
            pinned,
            is_younger,
            own,
            began,
        }
    }

    fn draw_pace(&mut self, query: &Query, slowly: bool) -> Pace {
        let random = &mut self.random;
        // A page ends between rows, so aggregates have none.
        let has_pages = random.u8(..3) == 0 && !query.aggregates && self.has_pages;
        let page_rows = has_pages.then(|| random.u64(1..20));
        if !slowly {
            return Pace { page_rows, ..Pace::default() };
        }
        let holds_pages = page_rows.is_some();
        let pauses = match holds_pages {
            true => vec![Duration::from_millis(random.u64(1_000..HOLD_MS_MAX))],
            false => {
                let pause = |_| Duration::from_millis(random.u64(..PAUSE_MS_MAX));
                (0..8).map(pause).collect()
            }
        };
        Pace { page_rows, pauses, holds_pages }
    }

    /// True if a scan must not end in this error.
    fn is_wrong(&self, asked: &Asked<'_>, error: &Error) -> bool {
        let of_the_lost = error.code == ErrorCode::InvalidParameter && self.is_lost(asked);
        let excused = !asked.must && self.is_excused(error, asked.began);
        // Nodes with little memory give up what open transactions have.
        let given_up = error.code == ErrorCode::OverLimit && asked.own.view.is_some();
        let expected = of_the_lost || given_up || excused;
        !expected && !error.is_retry() && error.code != ErrorCode::Unknown
    }

    /// True if the scan's epoch had to be readable: its lease or token was valid, the bucket was
    /// not rolled back, and no copy of this run has lost old epochs. A copy whose queue was too
    /// small for an epoch is resynced, and loses old epochs too.
    fn is_broken_lease(&self, session: &Session, asked: &Asked<'_>) -> bool {
        let catalog = session.router.catalog();
        let bucket = catalog.buckets.get(&asked.info.bucket);
        let summary = self.summary.lock().expect("not poisoned");
        let lost_past = |kind: &&str| summary.faults.contains_key(*kind);
        let last = summary.rolled_back.iter().map(|(_, _, heard)| *heard).max();
        let rolled_back = last.is_some_and(|heard| asked.began < heard + ROLLBACK_REACHES_NODES)
            || bucket.is_some_and(|bucket| bucket.rollback.is_some());
        let overflowed = has_small_queues(summary.seed) && Effects::of_process().has_resyncs();
        !rolled_back && !overflowed && !LOSSES_OF_PAST.iter().any(lost_past)
    }

    /// True if a broken disk can explain an error, because the statement began before the repair.
    pub(super) fn is_excused(&self, error: &Error, began: Duration) -> bool {
        let broken_at = Duration::from_millis(self.disks_broken_at_ms.load(Ordering::Relaxed));
        [ErrorCode::Io, ErrorCode::Corrupt].contains(&error.code) && began <= broken_at
    }

    /// True if a failover has lost a part of the writes that `at_plus` requires.
    fn is_lost(&self, asked: &Asked<'_>) -> bool {
        asked.at_least.as_ref().is_some_and(|last| {
            let lost = |(v, p): &(VbucketId, Position)| {
                self.truth.present_log(last.bucket, *v, *p).is_none()
            };
            last.positions.iter().any(lost)
        })
    }
}
