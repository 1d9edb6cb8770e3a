//! Range-partitioned indexes and CANCEL BUILD, in some seeds: the client's indexes get other
//! partitions, and a separate index is created, altered, cancelled, dropped and read. The slices of
//! this index are split: by further split points, and automatically when they exceed
//! `slice_bytes_max`.
//!
//! Readers judge the indexes in any partition. A build whose cancellation was acknowledged must
//! never serve, the serving generation must continue to serve, and at the end no indexer may have
//! data of a cancelled build. If an index has a size limit, a cancellation may hit a build that the
//! leader has begun, and is then not judged.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proto::model::catalog::Catalog;
use proto::model::ids::LocalIndexId;
use proto::model::index::{IndexInfo, IndexState, SLICE_BYTES_MAX_LEAST};
use proto::model::node::Role;
use proto::rpc::command::{CancelBuild, Outcome, SetSliceBytesMax};
use proto::value::Value;
use proto::value::key::decode_part;
use proto::{Error, ErrorCode, Result};
use sextant::sql::ast::Statement;
use sextant::sql::definitions::alter::alter_index;
use sextant::sql::named::run_on_index;
use sextant::sql::parse::parse;
use sextant::sql::remarks::Remarks;
use tokio::time::{sleep, timeout};

use super::client::session::Session;
use super::client::workload::{STATEMENT, create, drop_index};
use super::cluster::disks::files;
use super::cluster::hosts::{DATA, Hosts};
use super::data_sets;
use super::judge::oracle::{INDEXES, SimIndex};
use super::scans::Reader;
use super::{Shared, violation};

/// The separate index of this client.
pub const INDEX: SimIndex = SimIndex {
    name: "ranged",
    sql: "CREATE INDEX ranged ON b (n, w) INCLUDE (p) PARTITION BY RANGE (n) SPLIT AT (45) WITH (replicas = 1)",
    keys: |document| match document.get("n") {
        None => Vec::new(),
        n => vec![vec![n.cloned(), document.get("w").cloned()]],
    },
    descending: &[false, false],
    included: Some("p"),
};

/// The field that makes the entries of this index large, so that slices exceed the minimum limit.
pub const PAD: &str = "p";
/// The range of the lengths of this field's texts.
const PAD_BYTES: std::ops::Range<usize> = 1_500..4_000;

/// Returns a text for [`PAD`]; `None` in seeds without this index.
pub(super) fn pad(seed: u64, random: &mut fastrand::Rng) -> Option<String> {
    data_sets::are_chosen(seed).then(|| {
        let bytes = random.usize(PAD_BYTES);
        (0..bytes).map(|_| random.alphanumeric()).collect()
    })
}

/// Partitions that an index may get.
const DIVISIONS: [&str; 6] = [
    "PARTITION BY RANGE (n) SPLIT AT (30, 60)",
    "PARTITION BY RANGE (n) SPLIT AT (10, 50, 55, 90)",
    "PARTITION BY RANGE (a) SPLIT AT (0, 'a', 'b')",
    "PARTITION BY HASH (n)",
    "PARTITION BY HASH (META().id)",
    "SET (slices = 3)",
];
/// The time for which a build is observed.
const WATCHED: Duration = Duration::from_secs(5);
/// The maximum time between the beginning of a build and its cancellation, in milliseconds.
const CANCELLED_MS_MAX: u64 = 120;

/// The cancelled builds; clones share them.
pub type Cancelled = Arc<Mutex<BTreeSet<LocalIndexId>>>;

/// The client that changes the partitions of indexes.
pub(super) struct Ranged {
    random: fastrand::Rng,
    reader: Reader,
    cancelled: Cancelled,
}

impl Ranged {
    /// Returns the client of this seed; `None` if it has none.
    pub fn of(seed: u64, mut reader: Reader, cancelled: &Cancelled) -> Option<Self> {
        let mut random = fastrand::Rng::with_seed(seed ^ 0x4a6e);
        reader.random = random.fork();
        let cancelled = Arc::clone(cancelled);
        data_sets::are_chosen(seed).then_some(Self { random, reader, cancelled })
    }

    /// Changes the partitions of indexes and reads the separate index, until the future is dropped.
    pub async fn run(mut self, session: Session) {
        let reader = Reader { random: self.random.fork(), ..self.reader.clone() };
        let reading = read(reader, session.clone());
        let dividing = async {
            loop {
                sleep(Duration::from_millis(self.random.u64(200..1_500))).await;
                match self.random.u8(..3) {
                    0 => {
                        let index = &INDEXES[self.random.usize(..INDEXES.len())];
                        self.divide(&session, index.name, false).await;
                    }
                    _ => self.change_own(&session).await,
                }
            }
        };
        futures::join!(reading, dividing);
    }

    async fn change_own(&mut self, session: &Session) {
        let catalog = session.router.catalog();
        let is_cancelled = self.random.bool();
        match catalog.index(INDEX.name) {
            None => self.create(session, is_cancelled).await,
            Some(_) if self.random.u8(..6) == 0 => {
                let _ = timeout(STATEMENT, drop_index(session, INDEX.name)).await;
            }
            Some(_) => self.divide(session, INDEX.name, is_cancelled).await,
        }
    }

    async fn create(&mut self, session: &Session, is_cancelled: bool) {
        let created = timeout(STATEMENT, create(session, &INDEX, false)).await;
        let Ok(Ok(Outcome::Index(index))) = created else { return };
        let has_limit = self.random.bool();
        if has_limit {
            let limit = SetSliceBytesMax { index, bytes: SLICE_BYTES_MAX_LEAST };
            let _ = timeout(STATEMENT, session.backend.command(limit.into())).await;
        }
        let ready = timeout(WATCHED, session.backend.wait_ready(index, None));
        let cancel = self.cancel_later(session, is_cancelled);
        let (ready, cancelled) = futures::join!(ready, cancel);
        let judged = cancelled.filter(|_| !has_limit).flatten();
        self.judge(session, (cancelled.is_some(), judged), ready.ok(), || {
            format!("the build of index {index}")
        });
        if cancelled.is_some() {
            self.note_gone(session, cancelled.flatten());
        }
    }

    /// Changes the partition of an index, and cancels the build if `is_cancelled`.
    async fn divide(&mut self, session: &Session, name: &str, is_cancelled: bool) {
        let division = DIVISIONS[self.random.usize(..DIVISIONS.len())];
        let finer = (name == INDEX.name && self.random.bool()).then(|| self.finer(session));
        let division = finer.flatten().unwrap_or_else(|| division.to_owned());
        let text = format!("ALTER INDEX {name} {division}");
        let parsed = parse(&text).expect("the simulation's statements are right");
        let Statement::AlterIndex { change, .. } = &parsed[0].statement else { unreachable!() };
        let remarks = Remarks::unread();
        let altering = alter_index(&session.backend, name, change, &remarks);
        let altering = timeout(WATCHED, altering);
        let cancel = self.cancel_later(session, is_cancelled);
        let (altered, cancelled) = futures::join!(altering, cancel);
        let altered = altered.ok().map(|altered| altered.map(|_| ()));
        if let Some(Ok(())) = altered {
            self.reader.summary.lock().expect("not poisoned").divided_anew += 1;
        }
        let is_ended = matches!(&altered, Some(Err(e)) if e.code == ErrorCode::BuildCancelled);
        let judged = cancelled.filter(|_| !is_limited(session)).flatten();
        self.judge(session, (cancelled.is_some(), judged), altered, || text.clone());
        if is_ended && cancelled.is_some() {
            self.note_gone(session, cancelled.flatten());
        }
    }

    /// Returns a partition of the separate index with one more split point; `None` unless the index
    /// is partitioned by ranges of its first key now.
    fn finer(&mut self, session: &Session) -> Option<String> {
        let info = session.router.catalog().index(INDEX.name).cloned()?;
        let ranges = info.spec.leading_ranges().filter(|ranges| ranges.bounds.len() < 8)?;
        let point = |bound: &Vec<u8>| match decode_part(&mut &bound[..], false).ok()? {
            Value::Number(number) => number.as_i64(),
            _ => None,
        };
        let mut points: Vec<i64> = ranges.bounds.iter().map(point).collect::<Option<_>>()?;
        points.push(self.random.i64(1..100));
        points.sort_unstable();
        points.dedup();
        let points: Vec<String> = points.iter().map(i64::to_string).collect();
        Some(format!("PARTITION BY RANGE (n) SPLIT AT ({})", points.join(", ")))
    }

    /// Cancels the build of the separate index after a random time. If the cancellation was
    /// acknowledged, returns the generation that was being built at that time.
    fn cancel_later<'a>(
        &mut self,
        session: &'a Session,
        is_cancelled: bool,
    ) -> impl Future<Output = Option<Option<LocalIndexId>>> + use<'a> {
        let later = Duration::from_millis(self.random.u64(..CANCELLED_MS_MAX));
        async move {
            if !is_cancelled {
                return None;
            }
            sleep(later).await;
            let catalog = session.router.catalog();
            let built = built_of(&catalog);
            let cancel = |index: &IndexInfo| Ok(CancelBuild { index: index.id }.into());
            let cancelling = run_on_index(&session.backend, INDEX.name, cancel);
            let done = timeout(STATEMENT, cancelling).await;
            matches!(done, Ok(Ok(_))).then_some(built)
        }
    }

    /// Judges the end of a build: a build that was in progress when an acknowledged cancellation
    /// was sent must not serve. This may be an earlier build, for which no statement waits any
    /// more.
    fn judge(
        &self,
        session: &Session,
        (is_cancelled, judged): (bool, Option<LocalIndexId>),
        built: Option<Result<()>>,
        what: impl FnOnce() -> String,
    ) {
        let mut summary = self.reader.summary.lock().expect("not poisoned");
        summary.builds_cancelled += u64::from(is_cancelled);
        drop(summary);
        let is_wrong = |error: &Error| error.code == ErrorCode::Internal;
        match built {
            Some(Ok(())) if judged.is_some() && judged == serving(session) => {
                let what = format!("{} serves, though its cancellation was acknowledged", what());
                violation(&self.reader.summary, what);
            }
            Some(Err(error)) if is_wrong(&error) => {
                violation(&self.reader.summary, format!("{} ended with {error}", what()));
            }
            _ => {}
        }
    }

    /// Records a cancelled build if the catalog shows that it was dropped; it must not appear
    /// again.
    fn note_gone(&self, session: &Session, built: Option<LocalIndexId>) {
        let catalog = session.router.catalog();
        let gone = built.filter(|id| catalog.is_generation_dropped(*id));
        self.cancelled.lock().expect("not poisoned").extend(gone);
    }
}

/// Returns the generation of the index that is being built, if there is one.
fn built_of(catalog: &Catalog) -> Option<LocalIndexId> {
    let info = catalog.index(INDEX.name)?;
    let first = (info.state == IndexState::Backfill).then_some(info);
    catalog.next_generation(info.id).or(first).map(|info| info.local_id())
}

/// Returns the serving generation of the index, if there is one.
fn serving(session: &Session) -> Option<LocalIndexId> {
    let catalog = session.router.catalog();
    let info = catalog.index(INDEX.name).filter(|info| info.state == IndexState::Maintenance)?;
    Some(info.local_id())
}

/// True if the leader may begin builds of the index, because it has a size limit.
fn is_limited(session: &Session) -> bool {
    let catalog = session.router.catalog();
    let index = catalog.index(INDEX.name);
    index.is_none_or(|info| catalog.slice_bytes_max.contains_key(&info.id))
}

/// Reads the index until the future is dropped.
async fn read(mut reader: Reader, session: Session) {
    loop {
        sleep(Duration::from_millis(reader.random.u64(100..900))).await;
        let slowly = reader.random.bool();
        let _ = reader.scan(&session, &INDEX, false, slowly).await;
    }
}

/// Checks that no indexer has data of a cancelled build.
pub(super) fn check_cancelled(hosts: &Hosts, summary: &Shared) {
    let cancelled = hosts.cancelled.lock().expect("not poisoned").clone();
    for host in hosts.all.values().filter(|host| host.info.role == Role::Indexer) {
        for path in files(&host.fs, Path::new(DATA)) {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
            let is_of = |id: &&LocalIndexId| name == Some(format!("index-{id}.manifest"));
            if let Some(id) = cancelled.iter().find(is_of) {
                violation(
                    summary,
                    format!("{} has a manifest of {id}, whose build was cancelled", host.name),
                );
            }
        }
    }
}
