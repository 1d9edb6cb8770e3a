//! The workload of the simulated client: the client creates and drops indexes, writes (`writes.rs`)
//! and scans (`sim::scans`) during faults; afterwards the cluster must recover.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proto::model::bucket::SourceKind;
use proto::model::ids::BucketId;
use proto::model::index::{IndexInfo, IndexState};
use proto::rpc::command::{
    AppliedCommand, Command, CreateBucket, CreateIndex, DropIndex, Outcome, Proposal, RequestId,
};
use proto::{Error, ErrorCode, Result};
use router::Router;
use sextant::sql::ast::Statement;
use sextant::sql::definitions::define::definition;
use sextant::sql::named::{find_index, run_on_bucket, run_on_index};
use sextant::sql::parse::parse;
use tokio::time::{Instant, sleep, timeout};

use super::session::Session;
use super::writes::IDS;
use crate::sim::checks::{Acknowledged, check_writes, is_lossy, watch_members};
use crate::sim::cluster::client::{Client, ClientBackend};
use crate::sim::cluster::hosts::{HostResult, Hosts, PROJECTORS, VBUCKETS};
use crate::sim::data_sets::{self, DataSets};
use crate::sim::judge::copied::Copied;
use crate::sim::judge::ddl::{self, Asked, History};
use crate::sim::judge::marks::{self, Marks};
use crate::sim::judge::oracle::{INDEXES, SimIndex};
use crate::sim::judge::statements::Statements;
use crate::sim::judge::truth::Truth;
use crate::sim::operator::beside::Beside;
use crate::sim::operator::bucket_copies::{BucketCopies, WANTED};
use crate::sim::operator::generations;
use crate::sim::operator::removals::Removals;
use crate::sim::operator::stages::{self, Stages};
use crate::sim::outgrown;
use crate::sim::producer::Producer;
use crate::sim::ranges::{self, Cancelled, Ranged};
use crate::sim::scans::Reader;
use crate::sim::sql_sessions::{self, SqlClient};
use crate::sim::tenant::Tenant;
use crate::sim::transactions;
use crate::sim::transactions::pair::{CommitStages, Pair};
use crate::sim::{CALM, Shared, violation};

/// The time after which the outcome of a statement counts as unknown.
pub(in crate::sim) const STATEMENT: Duration = Duration::from_secs(15);
/// The unit of the time between a request and its repetition, in milliseconds.
const REPEAT_MS: u64 = 800;
/// The number of readers in addition to the client.
const READERS: usize = 3;
/// The time limit after the faults until the cluster must serve everything again.
const HEAL: Duration = Duration::from_secs(30);

/// The state of the workload of one bucket.
pub struct Workload {
    pub(in crate::sim) random: fastrand::Rng,
    pub(in crate::sim) seed: u64,
    stages: Stages,
    faults_for: Duration,
    pub(in crate::sim) truth: Truth,
    pub(super) producer: Option<Arc<Producer>>,
    pub(in crate::sim) summary: Shared,
    history: Mutex<History>,
    pub(in crate::sim) acknowledged: Vec<Acknowledged>,
    /// The statements that were sent to an embedded bucket.
    pub(in crate::sim) statements: Statements,
    /// The indexes of the bucket.
    pub(in crate::sim) indexes: &'static [SimIndex],
    /// The number of document ids.
    pub(super) ids: u64,
    /// The true history of the two buckets that some transactions write, and the stages of their
    /// commits; `None` in seeds without them.
    pub(in crate::sim) pair: Option<(Arc<Copied>, CommitStages)>,
    /// The error of the last refused scan.
    pub(in crate::sim) refusal: Option<Error>,
    disks_broken_at_ms: Arc<AtomicU64>,
    parts_read: Arc<AtomicU64>,
    removals: Arc<Removals>,
    cancelled: Cancelled,
}

impl Workload {
    /// Returns the workload of one run.
    pub fn new(seed: u64, faults_for: Duration, hosts: &Hosts, summary: Shared) -> Self {
        let random = fastrand::Rng::with_seed(seed ^ 0xc11e);
        let (truth, producer) = (hosts.truth(), hosts.producer.clone());
        let (history, acknowledged) = (Mutex::default(), Vec::new());
        let refusal = None;
        let pair = hosts.pair.clone().map(|pair| (pair, Arc::clone(&hosts.commit_stages)));
        let stages = Arc::clone(&hosts.stages);
        let disks_broken_at_ms = Arc::clone(&hosts.disks_broken_at_ms);
        let parts_read = Arc::clone(&hosts.parts_read);
        let removals = Arc::clone(&hosts.removals);
        let cancelled = hosts.cancelled.clone();
        Self {
            random,
            seed,
            stages,
            faults_for,
            truth,
            producer,
            summary,
            history,
            acknowledged,
            statements: Statements::default(),
            indexes: &INDEXES,
            ids: IDS,
            pair,
            refusal,
            disks_broken_at_ms,
            parts_read,
            removals,
            cancelled,
        }
    }

    /// Returns a workload of another bucket, with its own history and random numbers.
    pub(in crate::sim) fn of_bucket(
        &self,
        truth: Truth,
        random: fastrand::Rng,
        (indexes, ids): (&'static [SimIndex], u64),
    ) -> Self {
        Self {
            random,
            seed: self.seed,
            stages: Arc::clone(&self.stages),
            faults_for: self.faults_for,
            truth,
            producer: None,
            summary: Arc::clone(&self.summary),
            history: Mutex::default(),
            acknowledged: Vec::new(),
            statements: Statements::default(),
            indexes,
            ids,
            pair: None,
            refusal: None,
            disks_broken_at_ms: Arc::clone(&self.disks_broken_at_ms),
            parts_read: Arc::clone(&self.parts_read),
            removals: Arc::clone(&self.removals),
            cancelled: self.cancelled.clone(),
        }
    }

    /// Runs the workload to its end.
    pub async fn run(mut self) -> HostResult {
        let client = Client::start(self.seed, 3);
        let (env, directory) = (client.env.clone(), Arc::clone(&client.directory));
        let (router, backend) = (Arc::clone(&client.routers[0]), client.backend.clone());
        if let Some(copied) = self.truth.copied() {
            copied.ask(&router);
        }
        let marks = Marks::default();
        let watching_marks =
            marks::watch(Arc::clone(&directory), Arc::clone(&marks), self.summary.clone());
        let _watch = env.spawn_request("marks", watching_marks);
        let _stages = stages::are_chosen(self.seed).then(|| {
            let watching = stages::watch(Arc::clone(&router), Arc::clone(&self.stages));
            env.spawn_request("stages", watching)
        });
        let watching =
            watch_members(Arc::clone(&directory), Arc::clone(&router), self.summary.clone());
        let _members = env.spawn_request("members", watching);
        let bucket = self.create_bucket(&backend, &router).await;
        let mut session = Session::new(client, marks, bucket);
        self.load(&session).await;
        for index in &INDEXES[..2] {
            self.ddl(&session, (index, Asked::Create { lenient: true })).await;
        }
        let readers: Vec<_> = (0..READERS)
            .map(|_| {
                let reader = Reader { random: self.random.fork(), ..self.reader() };
                env.spawn_request("reader", reader.run(session.clone()))
            })
            .collect();
        let reader = Reader { random: self.random.fork(), ..self.reader() };
        let beside = Beside { reader, producer: self.producer.clone() };
        let beside = env.spawn_request("beside", beside.run(session.clone()));
        let tenant = self.truth.is_embedded().then(|| {
            let reader = Reader { random: self.random.fork(), ..self.reader() };
            env.spawn_request("tenant", Tenant(reader).run(session.clone()))
        });
        let removals = Removals::are_chosen(self.seed).then(|| {
            let (random, removals) = (self.random.fork(), Arc::clone(&self.removals));
            let summary = Arc::clone(&self.summary);
            let removing = removals.run((random, self.seed), session.clone(), summary);
            env.spawn_request("removals", removing)
        });
        let generations = generations::are_chosen(self.seed).then(|| {
            let beginning = generations::run(self.seed, session.clone(), Arc::clone(&self.summary));
            env.spawn_request("generations", beginning)
        });
        let data_set = DataSets::of(self.seed, self.reader());
        let data_sets = data_set
            .clone()
            .map(|data_set| env.spawn_request("data sets", data_set.run(session.clone())));
        let ranged = Ranged::of(self.seed, self.reader(), &self.cancelled);
        let ranges = ranged.map(|ranged| env.spawn_request("ranges", ranged.run(session.clone())));
        let outgrown = (data_sets::are_chosen(self.seed) && self.truth.is_embedded()).then(|| {
            let (random, summary) = (self.random.fork(), Arc::clone(&self.summary));
            env.spawn_request("outgrown", outgrown::run(random, session.clone(), summary))
        });
        let sql = sql_sessions::are_chosen(self.seed).then(|| {
            let client = SqlClient::new(self.seed, &env, backend.cluster(), &self.summary);
            env.spawn_request("sql", client.run())
        });
        let copies = BucketCopies::of(&self.truth, self.seed, &self.summary);
        let copying = copies.clone().map(|copies| copies.spawn(&env, &session));
        let mut pair = Pair::create(&self, &session).await;
        let end = Instant::now() + self.faults_for + CALM;
        let steps = async {
            while Instant::now() < end {
                self.step(&mut session).await;
            }
        };
        let beside_steps = async {
            if let Some(pair) = &mut pair {
                pair.run(end).await;
            }
        };
        futures::join!(steps, beside_steps);
        drop((
            readers,
            beside,
            tenant,
            removals,
            generations,
            copying,
            data_sets,
            ranges,
            outgrown,
            sql,
        ));
        self.heal(&mut session, copies, data_set.clone()).await;
        if let Some(pair) = pair {
            pair.settle().await;
        }
        // The client's transactions and their scans held the versions that they had begun to read.
        if let Some(data_set) = &data_set {
            data_set.old_ones_go(&session).await;
        }
        Ok(())
    }

    pub(in crate::sim) fn count(&self, count: impl FnOnce(&mut crate::sim::Summary)) {
        count(&mut self.summary.lock().expect("not poisoned"));
    }

    async fn create_bucket(
        &self,
        backend: &ClientBackend,
        router: &Router,
    ) -> Arc<proto::model::bucket::BucketInfo> {
        let is_pushed = self.producer.is_some();
        loop {
            let command = Command::CreateBucket(CreateBucket {
                name: "b".into(),
                vbuckets: VBUCKETS,
                source: if is_pushed { SourceKind::Push } else { SourceKind::Embedded },
                projectors: if is_pushed { PROJECTORS.len() as u16 } else { 1 },
                copies: self.truth.copied().is_some().then_some(WANTED),
                if_not_exists: true,
            });
            if let Ok(Outcome::Bucket(_)) = backend.command(command.into()).await {
                let catalog = router.wait_catalog(|catalog| catalog.bucket("b").is_some()).await;
                return Arc::clone(catalog.bucket("b").expect("it was there"));
            }
            sleep(Duration::from_millis(200)).await;
        }
    }

    async fn step(&mut self, session: &mut Session) {
        match self.random.u32(..22) {
            0..6 if transactions::are_chosen(self.seed) && self.truth.is_embedded() => {
                self.transactions(session).await;
            }
            0..10 => drop(self.change(session).await),
            20.. => {
                crate::sim::operator::moves::step(&mut self.random, session, &self.summary).await
            }
            17 => self.read_documents(session).await,
            10..17 => {
                let index = &INDEXES[self.random.usize(..INDEXES.len())];
                self.scan(session, index, false).await;
            }
            _ => {
                let first = self.any_ddl();
                // Concurrent statements have no order.
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

    fn any_ddl(&mut self) -> (&'static SimIndex, Asked) {
        let lenient = self.random.bool();
        match self.random.bool() {
            true => (&INDEXES[self.random.usize(..INDEXES.len())], Asked::Create { lenient }),
            false => (&INDEXES[self.random.usize(1..INDEXES.len())], Asked::Drop { lenient }),
        }
    }

    async fn ddl(&self, session: &Session, (index, asked): (&SimIndex, Asked)) {
        let history = || self.history.lock().expect("not poisoned");
        let statement = history().call(index.name, asked);
        let began = now();
        let done = async {
            let ran = match (statement % 2, asked) {
                (0, Asked::Create { lenient }) => create(session, index, lenient).await,
                (0, Asked::Drop { .. }) => drop_index(session, index.name).await,
                _ => self.repeat_request(session, statement as u64, (index, asked)).await,
            };
            match ran {
                Err(error)
                    if asked == (Asked::Drop { lenient: true })
                        && error.code == ErrorCode::Unknown =>
                {
                    Ok(Outcome::Done)
                }
                ran => ran,
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
            && !self.is_excused(&error, began)
        {
            violation(&self.summary, format!("{asked:?} was refused: {error}"));
        }
    }

    /// Sends a request twice, as a client without an answer does: the second answer must equal the
    /// first, and the request must be executed once.
    async fn repeat_request(
        &self,
        session: &Session,
        sequence: u64,
        (index, asked): (&SimIndex, Asked),
    ) -> Result<Outcome> {
        let request = RequestId { client: self.seed ^ 0xdd1, sequence };
        let proposal = match asked {
            Asked::Create { lenient } => create_command(session.bucket.id, index, lenient).into(),
            Asked::Drop { .. } => {
                let index = find_index(&session.backend, index.name).await?;
                Proposal::from(DropIndex { index: index.id }).expecting_unchanged([&*index])
            }
        };
        let request = proposal.with_request(request);
        let coordinator = session.directory.coordinator();
        let AppliedCommand { outcome: first, catalog_cas } =
            coordinator.propose(request.clone()).await?;
        // The next statement begins with the catalog of this process.
        session.router.wait_catalog(|catalog| catalog.cas >= catalog_cas).await;
        // Leaders may change and all members restart before a client retries.
        let later_ms = if sequence.is_multiple_of(3) { REPEAT_MS * (sequence % 5) } else { 0 };
        sleep(Duration::from_millis(later_ms)).await;
        match coordinator.propose(request.clone()).await {
            Ok(AppliedCommand { outcome: second, .. }) if second != first => {
                let text = format!("{request:?} was answered {first:?}, and then {second:?}");
                violation(&self.summary, text);
            }
            Ok(_) | Err(_) => {}
        }
        match first {
            // A statement would begin again.
            Outcome::Refused(error) if error.code == ErrorCode::Changed => {
                Err(Error::unavailable(error.message))
            }
            Outcome::Refused(error) => Err(error),
            outcome => Ok(outcome),
        }
    }

    /// True if a broken disk can be the reason for an error.
    pub(in crate::sim) fn is_excused(&self, error: &Error, began: Duration) -> bool {
        self.reader().is_excused(error, began)
    }

    /// Returns an additional reader of the bucket.
    pub(in crate::sim) fn reader(&self) -> Reader {
        Reader {
            random: fastrand::Rng::with_seed(0),
            truth: self.truth.clone(),
            summary: Arc::clone(&self.summary),
            disks_broken_at_ms: Arc::clone(&self.disks_broken_at_ms),
            parts_read: Arc::clone(&self.parts_read),
            has_pages: !data_sets::has_no_tokens(self.seed),
        }
    }

    /// Checks after the faults that everything, including new writes, is served again within a time
    /// limit.
    async fn heal(
        &mut self,
        session: &mut Session,
        copies: Option<BucketCopies>,
        data_set: Option<DataSets>,
    ) {
        sleep(crate::sim::CALM).await;
        if let Some(copies) = &copies {
            copies.settle(session).await;
        }
        self.removals.settle(session, &self.summary).await;
        crate::sim::operator::moves::stop_draining(session).await;
        if let Some(producer) = &self.producer {
            producer.go_on(&session.backend, &session.bucket).await;
        }
        self.serve_all(session).await;
        if let Some(data_set) = &data_set {
            data_set.settle(session).await;
        }
        generations::settle(session, &self.summary).await;
        crate::sim::operator::moves::settle(session, &self.summary).await;
        if let Some(producer) = self.producer.clone() {
            crate::sim::operator::hand_overs::settle(&producer, session, &self.summary).await;
        }
        let deadline = Instant::now() + HEAL;
        while self.change(session).await.is_empty() {
            if Instant::now() > deadline {
                violation(
                    &self.summary,
                    format!("no write is taken {HEAL:?} after the last fault"),
                );
                break;
            }
        }
        self.serve_all(session).await;
        self.serve_ranged(session).await;
        if let Some(copies) = copies {
            copies.compare(session).await;
        }
        if let Some(what) = self.history.lock().expect("not poisoned").judge() {
            violation(&self.summary, what);
        }
        self.count(|summary| summary.resumed = session.shard_scans_resumed());
        let falsely_gone = session.falsely_gone(&self.summary.lock().expect("not poisoned"));
        if let Some(what) = falsely_gone {
            violation(&self.summary, what);
        }
        if let Some(what) = self.producer.as_ref().and_then(|producer| producer.split()) {
            violation(&self.summary, what);
        }
        let marks = session.marks.lock().expect("not poisoned");
        let is_lossy = is_lossy(&self.summary);
        check_writes(&self.acknowledged, &marks, &self.truth, is_lossy, &self.summary);
        if let Some(histories) = self.truth.histories(session.bucket.id)
            && let Some(what) = self.statements.judge(&histories, is_lossy)
        {
            violation(&self.summary, what);
        }
    }

    /// Checks that the range-partitioned index contains all writes, if it exists: its slices may
    /// have been split since the last read.
    async fn serve_ranged(&mut self, session: &mut Session) {
        let deadline = Instant::now() + HEAL;
        let serves = |session: &Session| {
            let catalog = session.router.catalog();
            let info = catalog.index(ranges::INDEX.name);
            info.is_some_and(|info| info.state == IndexState::Maintenance)
        };
        while serves(session) && !self.scan(session, &ranges::INDEX, true).await {
            if Instant::now() > deadline {
                let (name, refusal) = (ranges::INDEX.name, &self.refusal);
                let what =
                    format!("{name} is not served {HEAL:?} after the last fault: {refusal:?}");
                return violation(&self.summary, what);
            }
            sleep(Duration::from_millis(100)).await;
        }
    }

    /// Checks that every index exists and contains all writes.
    async fn serve_all(&mut self, session: &mut Session) {
        let deadline = Instant::now() + HEAL;
        for index in &INDEXES {
            loop {
                self.ddl(session, (index, Asked::Create { lenient: true })).await;
                if self.scan(session, index, true).await {
                    break;
                }
                if Instant::now() > deadline {
                    let catalog = session.router.catalog();
                    let bucket = catalog.buckets.get(&session.bucket.id);
                    let what = format!(
                        "{} is not served {HEAL:?} after the last fault: {:?}; {bucket:?}",
                        index.name, self.refusal
                    );
                    return violation(&self.summary, what);
                }
                sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

/// Returns the simulated time.
pub(in crate::sim) fn now() -> Duration {
    turmoil::sim_elapsed().expect("a simulated process")
}

/// Creates an index.
pub(in crate::sim) async fn create(
    session: &Session,
    index: &SimIndex,
    lenient: bool,
) -> Result<Outcome> {
    let parsed = parse(index.sql).expect("the simulation's statements are right");
    let Statement::CreateIndex(create) = &parsed[0].statement else { unreachable!() };
    let command = |bucket| Ok(create_command(bucket, index, lenient));
    run_on_bucket(&session.backend, &create.bucket, command).await
}

/// Drops an index, as a statement does.
pub(in crate::sim) async fn drop_index(session: &Session, name: &str) -> Result<Outcome> {
    let command = |index: &IndexInfo| Ok(DropIndex { index: index.id }.into());
    run_on_index(&session.backend, name, command).await
}

fn create_command(bucket: BucketId, index: &SimIndex, lenient: bool) -> Command {
    let parsed = parse(index.sql).expect("the simulation's statements are right");
    let Statement::CreateIndex(create) = &parsed[0].statement else { unreachable!() };
    let spec = definition(create).expect("a definition");
    Command::CreateIndex(CreateIndex { bucket, spec, defer_build: false, if_not_exists: lenient })
}
