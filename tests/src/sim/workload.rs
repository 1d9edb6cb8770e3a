//! What the simulated client does: declares indexes, writes, scans, and judges each scan.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt;
use proto::api::{Directory, WatchMessage, Write, WriteKind};
use proto::command::{Command, CommandRequest, Outcome, RequestId};
use proto::cut::{Cut, Position, WritePosition};
use proto::env::sim::{SimClock, SimFs};
use proto::ids::{BucketId, Epoch, NodeId, VbucketId};
use proto::index::{IndexInfo, NodeInfo, Role, SourceKind};
use proto::key;
use proto::scan::{Consistency, KeyRange, Output, Row, ScanRequest};
use proto::value::Value;
use proto::{Error, ErrorCode, Result};
use router::{Router, ScanBatch};
use serde_json::json;
use sextant::backend::ClusterBackend;
use sextant::http::Counters;
use sextant::sql::ast::Statement;
use sextant::sql::backend::Backend;
use sextant::sql::define::definition;
use sextant::sql::parse::parse;
use sextant::wire::{PeerDirectory, Peers};
use tokio::time::{Instant, sleep, timeout};

use super::checks::{Acknowledged, check_writes, watch_members};
use super::ddl::{self, History};
use super::hosts::{HostResult, Hosts, PROJECTORS, VBUCKETS, env, members};
use super::net::connect;
use super::oracle::{Entry, INDEXES, SimIndex, documents, entries};
use super::producer::Producer;
use super::truth::Truth;
use super::{CALM, Shared, violation};

/// How long a statement may take before its outcome counts as unknown.
pub(super) const STATEMENT: Duration = Duration::from_secs(15);
/// Documents have ids below this.
const IDS: u64 = 60;
/// After the faults end, this is how long the cluster may take to serve everything again.
const HEAL: Duration = Duration::from_secs(30);

/// The client.
pub struct Workload {
    random: fastrand::Rng,
    seed: u64,
    faults_for: Duration,
    truth: Truth,
    producer: Option<Arc<Producer>>,
    summary: Shared,
    history: Mutex<History>,
    acknowledged: Vec<Acknowledged>,
}

/// An entry as bytes, which are its order, and as the model has it.
type Found = (Vec<u8>, Entry);

type Marks = Arc<Mutex<BTreeMap<(BucketId, Epoch), Arc<Cut>>>>;

/// What a statement needs.
pub(super) struct Session {
    pub backend: Arc<ClusterBackend>,
    pub directory: Arc<dyn Directory>,
    pub router: Arc<Router>,
    /// Where the pages of a scan go in turn with the first one.
    other_router: Arc<Router>,
    pub marks: Marks,
    pub bucket: Arc<proto::index::BucketInfo>,
    last_write: Option<WritePosition>,
}

impl Workload {
    /// A client for one run.
    pub fn new(seed: u64, faults_for: Duration, hosts: &Hosts, summary: Shared) -> Self {
        let random = fastrand::Rng::with_seed(seed ^ 0xc11e);
        let (truth, producer) = (hosts.truth(), hosts.producer.clone());
        let (history, acknowledged) = (Mutex::default(), Vec::new());
        Self { random, seed, faults_for, truth, producer, summary, history, acknowledged }
    }

    /// Runs the client to its end.
    pub async fn run(mut self) -> HostResult {
        let env = env(self.seed ^ 0xc0, Arc::new(SimClock::new(0)), SimFs::new(self.seed));
        let peers = Peers::new(members(3), connect());
        let directory: Arc<dyn Directory> = Arc::new(PeerDirectory(peers));
        let start = |id: u64| {
            let info = NodeInfo {
                id: NodeId(id),
                role: Role::Router,
                address: format!("client:{id}"),
                zone: String::new(),
            };
            let (env, directory) = (env.clone(), Arc::clone(&directory));
            Arc::new(Router::start(router::Config::new(info), env, directory))
        };
        let (router, other_router) = (start(300), start(301));
        let counters = Arc::new(Counters::default());
        let backend =
            ClusterBackend::new(Arc::clone(&router), Arc::clone(&directory), env.clone(), counters);
        let backend = Arc::new(backend);
        let marks = Marks::default();
        let watching_marks =
            watch_marks(Arc::clone(&directory), Arc::clone(&marks), self.summary.clone());
        let _watch = env.spawn("marks", watching_marks);
        let watching =
            watch_members(Arc::clone(&directory), Arc::clone(&router), self.summary.clone());
        let _members = env.spawn("members", watching);
        let bucket = self.create_bucket(&backend, &router).await;
        let mut session =
            Session { backend, directory, router, other_router, marks, bucket, last_write: None };
        for index in &INDEXES[..2] {
            self.ddl(&session, create(index, true)).await;
        }
        let end = Instant::now() + self.faults_for + CALM;
        while Instant::now() < end {
            self.step(&mut session).await;
        }
        self.heal(&mut session).await;
        Ok(())
    }

    fn count(&self, count: impl FnOnce(&mut super::Summary)) {
        count(&mut self.summary.lock().expect("not poisoned"));
    }

    async fn create_bucket(
        &self,
        backend: &ClusterBackend,
        router: &Router,
    ) -> Arc<proto::index::BucketInfo> {
        let is_pushed = self.producer.is_some();
        loop {
            let command = Command::CreateBucket {
                name: "b".into(),
                vbuckets: VBUCKETS,
                source: if is_pushed { SourceKind::Push } else { SourceKind::Embedded },
                projectors: if is_pushed { PROJECTORS.len() as u16 } else { 1 },
                if_not_exists: true,
            };
            if let Ok(Outcome::Bucket(_)) = backend.command(command).await {
                let catalog = router.wait_catalog(|catalog| catalog.bucket("b").is_some()).await;
                return Arc::clone(catalog.bucket("b").expect("it was there"));
            }
            sleep(Duration::from_millis(200)).await;
        }
    }

    async fn step(&mut self, session: &mut Session) {
        match self.random.u32(..22) {
            0..10 => match self.producer.clone() {
                Some(producer) => self.push(&producer, session).await,
                None => self.write(session).await,
            },
            20.. => super::moves::step(&mut self.random, session, &self.summary).await,
            16 if self.producer.is_some() => {
                super::hand_overs::step(&mut self.random, session, &self.summary).await;
            }
            10..17 => {
                let index = &INDEXES[self.random.usize(..INDEXES.len())];
                self.scan(session, index, false).await;
            }
            _ => {
                let first = self.any_ddl();
                // Two statements at once have no order of their own.
                match self.random.bool() {
                    true => self.ddl(session, first).await,
                    false => {
                        let second = self.any_ddl();
                        tokio::join!(self.ddl(session, first), self.ddl(session, second));
                    }
                }
            }
        }
        sleep(Duration::from_millis(self.random.u64(1..60))).await;
    }

    fn document(&mut self) -> serde_json::Value {
        let mut document = serde_json::Map::new();
        let strings = ["", "a", "aa", "b\u{0}c", "é", "z"];
        match self.random.u32(..8) {
            0 => {}
            1 => drop(document.insert("a".into(), json!(null))),
            2 => drop(document.insert("a".into(), json!(self.random.i64(-3..3)))),
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
        serde_json::Value::Object(document)
    }

    async fn write(&mut self, session: &mut Session) {
        let writes: Vec<Write> = (0..self.random.usize(1..5))
            .map(|_| {
                let id = format!("k{}", self.random.u64(..IDS));
                let kind = match self.random.u32(..4) {
                    0 => WriteKind::Delete,
                    _ => WriteKind::Upsert(self.document().to_string().into()),
                };
                Write { id, kind }
            })
            .collect();
        let ids = writes.iter().map(|write| write.id.clone()).collect();
        match timeout(STATEMENT, session.backend.write(&session.bucket, writes)).await {
            Ok(Ok(reply)) => {
                self.count(|summary| {
                    summary.writes += 1;
                    summary.note(&reply);
                });
                self.acknowledged.push((reply.position.clone(), ids));
                match &mut session.last_write {
                    Some(last) => last.merge(&reply.position),
                    None => session.last_write = Some(reply.position),
                }
            }
            Ok(Err(error)) if !error.is_retry() && !self.is_excused(&error) => {
                violation(&self.summary, format!("a write was refused: {error}"));
            }
            _ => self.count(|summary| summary.writes_unknown += 1),
        }
    }

    /// Changes documents at the producer, and pushes what it has.
    async fn push(&mut self, producer: &Producer, session: &mut Session) {
        let changes: Vec<(String, Option<String>)> = (0..self.random.usize(1..5))
            .map(|_| {
                let id = format!("k{}", self.random.u64(..IDS));
                let is_upsert = self.random.u32(..4) > 0;
                (id, is_upsert.then(|| self.document().to_string()))
            })
            .collect();
        let ids: Vec<String> = changes.iter().map(|(id, _)| id.clone()).collect();
        let places = producer.change(changes);
        match producer.push_all(&session.backend, &session.bucket).await {
            Err(error) if !self.is_excused(&error) => {
                violation(&self.summary, format!("a push was refused: {error}"));
            }
            _ => {}
        }
        let bucket = session.bucket.id;
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
            match &mut session.last_write {
                Some(last) => last.merge(&write),
                None => session.last_write = Some(write),
            }
        }
    }

    fn any_ddl(&mut self) -> Command {
        let lenient = self.random.bool();
        match self.random.bool() {
            true => create(&INDEXES[self.random.usize(..INDEXES.len())], lenient),
            false => {
                let name = INDEXES[self.random.usize(1..INDEXES.len())].name.to_owned();
                Command::DropIndex { name, if_exists: lenient }
            }
        }
    }

    async fn ddl(&self, session: &Session, command: Command) {
        let Some((name, asked)) = ddl::asked(&command) else { return };
        let history = || self.history.lock().expect("not poisoned");
        let statement = history().call(name, asked);
        let done = async {
            match statement % 2 {
                0 => session.backend.command(command).await,
                _ => self.twice(session, statement as u64, command).await,
            }
        };
        let Ok(outcome) = timeout(STATEMENT, done).await else { return };
        if let Some(answer) = ddl::answer(&outcome) {
            history().answered(statement, answer);
            self.count(|summary| {
                summary.ddl += 1;
                summary.note((statement, &outcome));
            });
        } else if let Err(error) = outcome
            && !error.is_retry()
            && !self.is_excused(&error)
        {
            violation(&self.summary, format!("{asked:?} was refused: {error}"));
        }
    }

    /// A client that did not get its answer sends its request again: it must get the same answer, and nothing
    /// more may happen.
    async fn twice(&self, session: &Session, sequence: u64, command: Command) -> Result<Outcome> {
        let request = Some(RequestId { client: self.seed ^ 0xdd1, sequence });
        let request = CommandRequest { request, command };
        let coordinator = session.directory.coordinator();
        let first = coordinator.propose(request.clone()).await?;
        match coordinator.propose(request.clone()).await {
            Ok(second) if second != first => {
                let text = format!("{request:?} was answered {first:?}, and then {second:?}");
                violation(&self.summary, text);
            }
            Ok(_) | Err(_) => {}
        }
        match first {
            Outcome::Refused(error) => Err(error),
            outcome => Ok(outcome),
        }
    }

    /// Disks that were broken on purpose may show in errors, and nowhere else.
    fn is_excused(&self, error: &Error) -> bool {
        let summary = self.summary.lock().expect("not poisoned");
        let broken = ["failed_io", "failed_sync", "crash_in_io", "flipped_bit"];
        [ErrorCode::Io, ErrorCode::Corrupt].contains(&error.code)
            && broken.iter().any(|kind| summary.faults.contains_key(*kind))
    }

    /// A scan of all or part of an index, judged. `must` says that it may not be refused.
    async fn scan(&mut self, session: &Session, index: &SimIndex, must: bool) -> bool {
        let Some(info) = session.router.catalog().index(index.name).cloned() else { return !must };
        let reverse = self.random.bool();
        let mut limit = self.random.bool().then(|| self.random.u64(..30));
        let (consistency, at_least) = match (must, self.random.u32(..3)) {
            (false, 0) => (Consistency::Any, None),
            (false, 1) if session.last_write.is_some() => {
                let last = session.last_write.clone().expect("it is there");
                (Consistency::AtPlus(last.positions.clone()), Some(last))
            }
            _ => (Consistency::RequestPlus, session.last_write.clone()),
        };
        // Pages, on two routers in turn; unordered ones have virtual scans.
        let pages = (!must && self.random.u8(..3) == 0).then(|| self.random.u64(1..20));
        let ordered = pages.is_none() || self.random.bool();
        let request = ScanRequest {
            index: info.id,
            ranges: vec![KeyRange::all()],
            filter: None,
            reverse,
            ordered,
            distinct_parts: None,
            limit,
            offset: 0,
            output: Output::Rows { include: false },
            consistency,
            timeout_ms: 5_000,
        };
        if !ordered {
            limit = None;
        }
        let request = ScanRequest { limit, ..request };
        let catalog = session.router.catalog();
        let from = catalog.buckets.get(&info.bucket).and_then(|bucket| bucket.readable_from());
        match timeout(STATEMENT, read(session, request, &info, pages)).await {
            Ok(Ok((epoch, mut found))) => {
                if from.is_some_and(|from| epoch < from) {
                    let what = format!(
                        "a scan of {} read epoch {epoch}, from before a rollback",
                        index.name
                    );
                    violation(&self.summary, what);
                }
                if !ordered {
                    found.sort_by(|(one, _), (other, _)| one.cmp(other));
                    if reverse {
                        found.reverse();
                    }
                }
                let found = found.into_iter().map(|(_, entry)| entry).collect();
                self.judge(session, index, &info, epoch, found, reverse, limit, at_least).await;
                true
            }
            Ok(Err(error))
                if error.code == ErrorCode::InvalidParameter && self.is_lost(session) =>
            {
                self.count(|summary| summary.scans_refused += 1);
                false
            }
            Ok(Err(error))
                if !error.is_retry()
                    && error.code != ErrorCode::Unknown
                    && (must || !self.is_excused(&error)) =>
            {
                violation(&self.summary, format!("a scan of {} failed: {error}", index.name));
                true
            }
            _ => {
                self.count(|summary| summary.scans_refused += 1);
                false
            }
        }
    }

    /// Has a failover taken a part of the last writes? They are what `at_plus` asks for.
    fn is_lost(&self, session: &Session) -> bool {
        session.last_write.as_ref().is_some_and(|last| {
            let lost = |(v, p): &(VbucketId, Position)| {
                self.truth.present_log(last.bucket, *v, *p).is_none()
            };
            last.positions.iter().any(lost)
        })
    }

    #[allow(clippy::too_many_arguments, reason = "what a scan was asked, and what came")]
    async fn judge(
        &self,
        session: &Session,
        index: &SimIndex,
        info: &IndexInfo,
        epoch: Epoch,
        found: Vec<Entry>,
        reverse: bool,
        limit: Option<u64>,
        at_least: Option<WritePosition>,
    ) {
        let Some(cut) = mark_of(session, info.bucket, epoch).await else {
            violation(
                &self.summary,
                format!("a scan read epoch {epoch}, which was never published"),
            );
            return;
        };
        if let Some(write) = at_least {
            let lost = |v, p| self.truth.present_log(info.bucket, v, p).is_none();
            let covers = |v, p| self.truth.is_before(info.bucket, v, p, cut.get(v));
            let covered = write.positions.iter().all(|(v, p)| lost(*v, *p) || covers(*v, *p));
            if !covered {
                let what = format!(
                    "a scan of {} at epoch {epoch} misses an acknowledged write",
                    index.name
                );
                violation(&self.summary, what);
            }
        }
        let mut expected = entries(index, &documents(&self.truth, info.bucket, &cut));
        if reverse {
            expected.reverse();
        }
        expected.truncate(limit.map_or(usize::MAX, |limit| limit as usize));
        self.count(|summary| {
            summary.scans += 1;
            summary.note((index.name, epoch, &found));
            summary.entries += expected.len() as u64;
        });
        if found != expected {
            let at = found.iter().zip(&expected).position(|(f, e)| f != e);
            let at = at.unwrap_or(found.len().min(expected.len()));
            violation(
                &self.summary,
                format!(
                    "{} at epoch {epoch} (reverse {reverse}, limit {limit:?}): {} entries, not {}; \
                     entry {at} is {:?}, not {:?}",
                    index.name,
                    found.len(),
                    expected.len(),
                    found.get(at),
                    expected.get(at)
                ),
            );
        }
    }

    /// The faults have ended: everything must be served again, soon.
    async fn heal(&mut self, session: &mut Session) {
        sleep(super::CALM).await;
        super::moves::stop_draining(session).await;
        let deadline = Instant::now() + HEAL;
        for index in &INDEXES {
            loop {
                self.ddl(session, create(index, true)).await;
                if self.scan(session, index, true).await {
                    break;
                }
                if Instant::now() > deadline {
                    let what =
                        format!("{} is not served {HEAL:?} after the last fault", index.name);
                    violation(&self.summary, what);
                    break;
                }
                sleep(Duration::from_millis(100)).await;
            }
        }
        super::moves::settle(session, &self.summary).await;
        match self.producer.clone() {
            Some(producer) => {
                super::hand_overs::settle(&producer, session, &self.summary).await;
                self.push(&producer, session).await;
            }
            None => self.write(session).await,
        }
        if let Some(what) = self.history.lock().expect("not poisoned").judge() {
            violation(&self.summary, what);
        }
        let marks = session.marks.lock().expect("not poisoned");
        check_writes(&self.acknowledged, &marks, &self.truth, &self.summary);
    }
}

/// The statement that declares an index.
fn create(index: &SimIndex, lenient: bool) -> Command {
    let parsed = parse(index.sql).expect("the simulation's statements are right");
    let Statement::CreateIndex(create) = &parsed[0].statement else { unreachable!() };
    let spec = definition(create);
    Command::CreateIndex { spec, defer_build: false, if_not_exists: lenient }
}

async fn watch_marks(directory: Arc<dyn Directory>, marks: Marks, summary: Shared) {
    loop {
        if let Ok(mut messages) = directory.coordinator().watch().await {
            while let Some(Ok(message)) = messages.next().await {
                if let WatchMessage::Epochs(epochs) = message {
                    let mut marks = marks.lock().expect("not poisoned");
                    for mark in epochs {
                        let of = (mark.bucket, mark.epoch);
                        let known = marks.insert(of, Arc::clone(&mark.cut));
                        if known.as_ref().is_some_and(|known| *known != mark.cut) {
                            let text = format!("epoch {} was used for two cuts", mark.epoch);
                            violation(&summary, text);
                        }
                        // Without rollbacks each epoch follows the last number that was given.
                        let rolled_back = mark.parent.0 + 1 < mark.epoch.0;
                        if known.is_none() && rolled_back {
                            summary.lock().expect("not poisoned").rollbacks += 1;
                        }
                    }
                }
            }
        }
        sleep(Duration::from_millis(50)).await;
    }
}

/// The cut of an epoch; the watch may be a little behind the scan.
async fn mark_of(session: &Session, bucket: BucketId, epoch: Epoch) -> Option<Arc<Cut>> {
    for _ in 0..600 {
        if let Some(cut) = session.marks.lock().expect("not poisoned").get(&(bucket, epoch)) {
            return Some(Arc::clone(cut));
        }
        sleep(Duration::from_millis(50)).await;
    }
    None
}

/// Reads a scan; with `pages` in pages of so many rows, on both routers in turn.
async fn read(
    session: &Session,
    request: ScanRequest,
    info: &IndexInfo,
    pages: Option<u64>,
) -> Result<(Epoch, Vec<Found>)> {
    let (mut found, mut token) = (Vec::new(), None::<String>);
    for page in 0.. {
        let router = if page % 2 == 0 { &session.router } else { &session.other_router };
        let mut scan = router.scan(request.clone(), token.as_deref()).await?;
        if let Some(rows) = pages {
            scan.end_page_after(rows);
        }
        while let Some(batch) = scan.next().await? {
            match batch {
                ScanBatch::Rows(block) => {
                    for row in block.iter() {
                        found.push((row.entry.to_vec(), decode(row, info)?));
                    }
                }
                ScanBatch::Aggregates(_) => {
                    return Err(Error::internal("aggregates in a scan of rows"));
                }
            }
        }
        token = scan.token()?;
        if token.is_none() {
            return Ok((scan.epoch(), found));
        }
    }
    Err(Error::internal("pages end"))
}

fn decode(row: Row<'_>, info: &IndexInfo) -> Result<Entry> {
    let mut rest = row.entry;
    let mut parts = Vec::new();
    for part in &info.spec.keys {
        parts.push(match key::decode_part(&mut rest, part.descending)? {
            Value::Missing => None,
            value => serde_json::from_str(&value.to_json()).ok(),
        });
    }
    Ok((parts, String::from_utf8_lossy(rest).into_owned()))
}
