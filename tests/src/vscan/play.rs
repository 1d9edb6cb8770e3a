//! Plays a case against the real services: a coordinator, a projector and an indexer for each shard, over the
//! simulated network, and two routers, to which the pages of a scan go in turn.
//!
//! The case's points are those of the published algorithm; here batches fall differently. A request's page is
//! cut into smaller ones at the points inside it, each of which goes on from the token of the one before; a
//! point that cannot be reached as it is given fires at the next one possible.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proto::api::{Directory, Write, WriteKind};
use proto::command::{Command, Outcome as CommandOutcome};
use proto::env::sim::{SimClock, SimFs};
use proto::ids::{IndexId, NodeId, SliceNo};
use proto::index::{IndexInfo, NodeInfo, Role, SourceKind};
use proto::key;
use proto::moves::PlannedMove;
use proto::scan::{Consistency, KeyRange, Output, ScanRequest};
use proto::token::Token;
use proto::topology::{IndexTopology, PartitionKey, TopologyProvider};
use proto::value::Value;
use router::{Router, ScanBatch};
use serde_json::json;
use sextant::backend::ClusterBackend;
use sextant::http::Counters;
use sextant::sql::ast::Statement;
use sextant::sql::backend::Backend;
use sextant::sql::define::definition;
use sextant::sql::parse::parse;
use sextant::wire::{PeerDirectory, Peers};
use tokio::time::{sleep, timeout};

use super::case::{Case, Entry, Event, Op, Outcome, Point};
use crate::sim::hosts::{Hosts, env, members};
use crate::sim::net::connect;

/// Anything may take this long before the case has failed.
const PATIENCE: Duration = Duration::from_secs(60);
/// Pages at most: a scan that goes on for ever is a failure.
const PAGES_MAX: usize = 10_000;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Plays a case.
pub fn play(case: &Case, seed: u64) -> Outcome {
    let shards: Vec<u64> = case.shards().into_iter().collect();
    let indexers: Vec<u64> = shards.iter().map(|shard| node_of(*shard).0).collect();
    // Or no virtual scan would ever be needed.
    let hosts = Hosts::with(seed, 1, &[100], &indexers).without_moved_sources();
    let mut sim = turmoil::Builder::new()
        .rng_seed(seed)
        .simulation_duration(Duration::from_secs(3_600))
        .tick_duration(Duration::from_millis(1))
        .min_message_latency(Duration::from_micros(100))
        .max_message_latency(Duration::from_millis(2))
        .tcp_capacity(4096)
        .build();
    for host in hosts.all.values() {
        let host = host.clone();
        sim.host(host.name.clone(), move || host.clone().run());
    }
    let outcome = Arc::new(Mutex::new(Outcome { name: case.name.clone(), ..Outcome::default() }));
    let player = Player { case: case.clone(), seed, outcome: Arc::clone(&outcome) };
    sim.client("client", player.run());
    if let Err(error) = sim.run() {
        outcome.lock().expect("not poisoned").error.get_or_insert(error.to_string());
    }
    let played = outcome.lock().expect("not poisoned");
    played.clone()
}

struct Player {
    case: Case,
    seed: u64,
    outcome: Arc<Mutex<Outcome>>,
}

/// The cluster as the client has it.
struct Cluster {
    routers: [Arc<Router>; 2],
    backend: Arc<ClusterBackend>,
    index: Arc<IndexInfo>,
    /// The value of the partition field for each slice.
    fields: Vec<i64>,
    partitions: Vec<u16>,
    /// Where each partition was before its last move.
    previous: BTreeMap<u16, u64>,
}

fn node_of(shard: u64) -> NodeId {
    NodeId(200 + shard)
}

impl Player {
    async fn run(self) -> turmoil::Result {
        let played = timeout(PATIENCE * 10, self.play()).await;
        let error = match played {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(error.to_string()),
            Err(_) => Some("the case did not come to its end".into()),
        };
        self.outcome.lock().expect("not poisoned").error = error;
        Ok(())
    }

    async fn play(&self) -> Result<(), Failure> {
        let mut cluster = self.cluster().await?;
        cluster.load(&self.case.entries).await?;
        let request = cluster.request(&self.case);
        let mut first = None;
        for (n, topology) in self.case.topologies.iter().enumerate() {
            for (pid, shard) in &topology.home {
                cluster.migrate(*pid, *shard).await?;
            }
            if n == self.case.base && n + 1 < self.case.topologies.len() {
                // The scan takes this one as its base.
                first = cluster.page(&request, None, 0, 0).await?.token;
            }
        }
        let mut scan = Scan {
            events: self.case.events.clone().into_iter().map(Some).collect(),
            token: first,
            pages: 0,
        };
        self.requests(&mut cluster, &request, &mut scan).await
    }

    async fn cluster(&self) -> Result<Cluster, Failure> {
        let env = env(self.seed ^ 0xc0, Arc::new(SimClock::new(0)), SimFs::new(self.seed));
        let peers = Peers::new(members(1), connect());
        let directory: Arc<dyn Directory> = Arc::new(PeerDirectory(peers));
        let router = |id: u64| {
            let info = NodeInfo {
                id: NodeId(id),
                role: Role::Router,
                address: format!("client:{id}"),
                zone: String::new(),
            };
            let (env, directory) = (env.clone(), Arc::clone(&directory));
            Arc::new(Router::start(router::Config::new(info), env, directory))
        };
        let routers = [router(300), router(301)];
        let counters = Arc::new(Counters::default());
        let (main, env) = (Arc::clone(&routers[0]), env.clone());
        let backend = Arc::new(ClusterBackend::new(main, directory, env, counters));
        let nodes = self.case.shards().len();
        let indexers = |catalog: &proto::index::Catalog| {
            catalog.nodes.values().filter(|node| node.role == Role::Indexer).count() == nodes
        };
        timeout(PATIENCE, routers[0].wait_catalog(indexers)).await?;
        let partitions = self.case.partitions();
        let index = create(&backend, partitions.len()).await?;
        let fields = fields(&index.topology);
        let previous = BTreeMap::new();
        Ok(Cluster { routers, backend, index, fields, partitions, previous })
    }

    async fn requests(
        &self,
        cluster: &mut Cluster,
        request: &ScanRequest,
        scan: &mut Scan,
    ) -> Result<(), Failure> {
        for number in 0.. {
            let limits = &self.case.limits;
            let limit = limits.get(number).or(limits.last()).copied().unwrap_or(u64::MAX).max(1);
            let (before, had) = (scan.token.clone(), scan.pages > 0 || scan.token.is_some());
            let (rows, lost) = self.request(cluster, request, scan, number, limit).await?;
            if lost {
                // The client begins again where it was.
                scan.token = before.filter(|_| had);
                continue;
            }
            self.outcome.lock().expect("not poisoned").rows.extend(rows);
            if scan.token.is_none() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// One request: its rows, and whether its answer is lost.
    async fn request(
        &self,
        cluster: &mut Cluster,
        request: &ScanRequest,
        scan: &mut Scan,
        number: usize,
        limit: u64,
    ) -> Result<(Vec<Entry>, bool), Failure> {
        let (mut rows, mut lost) = (Vec::new(), false);
        let (mut call, mut in_call) = (0, 0u64);
        loop {
            let done = rows.len() as u64 >= limit;
            for event in scan.due(number, call, in_call, done) {
                lost |= matches!(event.op, Op::Lose);
                cluster.happen(&event).await?;
                self.outcome.lock().expect("not poisoned").events_fired += 1;
            }
            if done {
                return Ok((rows, lost));
            }
            let most = scan.rows_to_next(number, call, in_call).min(limit - rows.len() as u64);
            scan.pages += 1;
            if scan.pages > PAGES_MAX {
                return Err("the scan does not come to its end".into());
            }
            let token = scan.token.take();
            let parts = token.as_deref().map_or(Ok(0), parts_done)?;
            let page = cluster.page(request, token.as_deref(), most, scan.pages).await?;
            in_call += page.rows.len() as u64;
            rows.extend(page.rows);
            scan.token = page.token;
            let Some(token) = &scan.token else {
                // What was to happen later in this request happens now.
                for event in scan.due(number, usize::MAX, u64::MAX, true) {
                    lost |= matches!(event.op, Op::Lose);
                    cluster.happen(&event).await?;
                    self.outcome.lock().expect("not poisoned").events_fired += 1;
                }
                return Ok((rows, lost));
            };
            let passed = parts_done(token)?.saturating_sub(parts);
            if passed > 0 {
                (call, in_call) = (call + passed, 0);
            }
        }
    }
}

/// How many parts of a scan a token says are finished.
fn parts_done(token: &str) -> Result<usize, Failure> {
    let token = Token::decode(token)?;
    let finished = token.virtual_scans.iter().filter(|entry| entry.done).count();
    Ok(usize::from(token.shards_done) + finished)
}

/// A scan in progress.
struct Scan {
    events: Vec<Option<Event>>,
    token: Option<String>,
    pages: usize,
}

impl Scan {
    /// The events whose points are reached.
    fn due(&mut self, request: usize, call: usize, rows: u64, done: bool) -> Vec<Event> {
        let reached = |event: &Event| {
            let (of, in_call, _, point) = &event.at;
            if *of != request {
                return *of < request;
            }
            done || *in_call < call
                || *in_call == call
                    && match point {
                        Point::Rows(k) => *k <= rows,
                        Point::Named(name) => name == "start",
                    }
        };
        let due = self.events.iter_mut().filter(|event| event.as_ref().is_some_and(reached));
        due.filter_map(Option::take).collect()
    }

    /// How many rows may be read before a point can be reached.
    fn rows_to_next(&self, request: usize, call: usize, rows: u64) -> u64 {
        let ahead = self.events.iter().flatten().filter(|event| event.at.0 == request);
        let to = |event: &Event| match &event.at.3 {
            Point::Rows(k) if event.at.1 == call && *k > rows => k - rows,
            // Where a call ends is seen only afterwards.
            _ => 1,
        };
        ahead.map(to).min().unwrap_or(u64::MAX)
    }
}

/// A page of a scan.
struct Page {
    rows: Vec<Entry>,
    token: Option<String>,
}

async fn create(backend: &ClusterBackend, slices: usize) -> Result<Arc<IndexInfo>, Failure> {
    let bucket = Command::CreateBucket {
        name: "b".into(),
        vbuckets: 4,
        source: SourceKind::Embedded,
        projectors: 1,
        if_not_exists: true,
    };
    while backend.command(bucket.clone()).await.is_err() {
        sleep(Duration::from_millis(20)).await;
    }
    let sql = format!("CREATE INDEX i ON b (k, pk) PARTITION BY HASH (p) WITH (slices = {slices})");
    let parsed = parse(&sql).map_err(|error| error.error)?.remove(0).statement;
    let Statement::CreateIndex(create) = parsed else { return Err("not an index".into()) };
    let command =
        Command::CreateIndex { spec: definition(&create), defer_build: false, if_not_exists: true };
    let CommandOutcome::Index(index) = backend.command(command).await? else {
        return Err("no index".into());
    };
    timeout(PATIENCE, backend.wait_ready(index)).await??;
    let catalog = backend.catalog();
    Ok(Arc::clone(catalog.indexes.get(&index).ok_or("the index is gone")?))
}

/// For each slice a number whose hash lies in it.
fn fields(topology: &IndexTopology) -> Vec<i64> {
    let mut fields = BTreeMap::new();
    for field in 0.. {
        let mut encoded = Vec::new();
        key::encode_part(&Value::int(field), false, &mut encoded);
        fields.entry(topology.partition(PartitionKey::Encoded(&encoded))).or_insert(field);
        if fields.len() == usize::from(topology.slices()) {
            break;
        }
    }
    fields.into_values().collect()
}

impl Cluster {
    fn slice_of(&self, pid: u16) -> SliceNo {
        let at = self.partitions.iter().position(|known| *known == pid);
        SliceNo(at.expect("a partition of the case") as u16)
    }

    fn document(&self, entry: &Entry) -> (String, bytes::Bytes) {
        let (k, pk, pid) = *entry;
        let p = self.fields[usize::from(self.slice_of(pid).0)];
        (format!("{k}/{pk}/{pid}"), json!({ "k": k, "pk": pk, "p": p }).to_string().into())
    }

    async fn load(&self, entries: &[Entry]) -> Result<(), Failure> {
        let write = |entry: &Entry| {
            let (id, document) = self.document(entry);
            Write { id, kind: WriteKind::Upsert(document) }
        };
        let writes: Vec<Write> = entries.iter().map(write).collect();
        self.write(writes).await?;
        // The scan may begin when all of it is applied.
        let all = ScanRequest { consistency: Consistency::RequestPlus, ..self.any_request() };
        let mut scan = self.routers[0].scan(all, None).await?;
        while scan.next().await?.is_some() {}
        Ok(())
    }

    async fn write(&self, writes: Vec<Write>) -> Result<(), Failure> {
        let bucket = self.backend.bucket("b").await?;
        while self.backend.write(&bucket, writes.clone()).await.is_err() {
            sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }

    fn any_request(&self) -> ScanRequest {
        ScanRequest {
            index: self.index.id,
            ranges: vec![KeyRange::all()],
            filter: None,
            reverse: false,
            ordered: false,
            distinct_parts: None,
            limit: None,
            offset: 0,
            output: Output::Rows { include: false },
            consistency: Consistency::Any,
            timeout_ms: PATIENCE.as_millis() as u64,
        }
    }

    fn request(&self, case: &Case) -> ScanRequest {
        let bound = |key: i64| {
            let mut encoded = Vec::new();
            key::encode_part(&Value::int(key), false, &mut encoded);
            encoded
        };
        let high = key::successor(&bound(case.range.1)).map(bytes::Bytes::from);
        let range = KeyRange { low: bound(case.range.0).into(), high };
        ScanRequest { ranges: vec![range], ordered: case.is_sorted(), ..self.any_request() }
    }

    /// So many rows from where a token stands; a token of no rows is asked for before any are read.
    async fn page(
        &self,
        request: &ScanRequest,
        token: Option<&str>,
        rows: u64,
        number: usize,
    ) -> Result<Page, Failure> {
        let router = &self.routers[number % 2];
        let mut scan = router.scan(request.clone(), token).await?;
        scan.end_page_after(rows);
        let mut page = Vec::new();
        while let Some(batch) = scan.next().await? {
            let ScanBatch::Rows(block) = batch else { return Err("not rows".into()) };
            for row in block.iter() {
                page.push(entry_of(row.entry)?);
            }
        }
        Ok(Page { rows: page, token: scan.token()? })
    }

    async fn happen(&mut self, event: &Event) -> Result<(), Failure> {
        match &event.op {
            Op::Migrate { pid, to, .. } => self.migrate(*pid, *to).await,
            Op::Restore { pid } => {
                let back = *self.previous.get(pid).ok_or("it has not moved")?;
                self.migrate(*pid, back).await
            }
            Op::Copy { pid, to } => self.copy(*pid, *to).await,
            Op::AddShard { .. } | Op::Lose => Ok(()),
            Op::RemoveShard { sid } => {
                let command = Command::RemoveNode { node: node_of(*sid) };
                self.backend.command(command).await?;
                Ok(())
            }
            Op::Insert { entry } => {
                let (id, document) = self.document(entry);
                self.write(vec![Write { id, kind: WriteKind::Upsert(document) }]).await
            }
            Op::Delete { entry } => {
                let (id, _) = self.document(entry);
                self.write(vec![Write { id, kind: WriteKind::Delete }]).await
            }
            Op::Lag { sid, n } => {
                let host = format!("indexer-{}", node_of(*sid));
                turmoil::partition("client", host.clone());
                let pause = Duration::from_millis(20 * n.clamp(&1, &50));
                let lag = async move {
                    sleep(pause).await;
                    turmoil::repair("client", host);
                };
                self.backend.env().spawn("lag", lag).detach();
                Ok(())
            }
        }
    }

    fn homes(&self, slice: SliceNo) -> Vec<NodeId> {
        let catalog = self.backend.catalog();
        let index = catalog.indexes.get(&self.index.id);
        index.map_or_else(Vec::new, |index| index.topology.replicas(slice).to_vec())
    }

    /// Moves a slice, and waits until it is at its new home alone and no move of it is left.
    async fn migrate(&mut self, pid: u16, shard: u64) -> Result<(), Failure> {
        let (slice, to) = (self.slice_of(pid), node_of(shard));
        let before = self.homes(slice);
        if before == [to] {
            return Ok(());
        }
        let from = *before.iter().find(|node| **node != to).ok_or("no home")?;
        self.previous.insert(pid, from.0 - 200);
        let to_too = (!before.contains(&to)).then_some(to);
        self.start(slice, Some(from), to_too).await?;
        self.settle(slice, move |homes| homes == [to]).await
    }

    async fn copy(&mut self, pid: u16, shard: u64) -> Result<(), Failure> {
        let (slice, to) = (self.slice_of(pid), node_of(shard));
        if self.homes(slice).contains(&to) {
            return Ok(());
        }
        self.start(slice, None, Some(to)).await?;
        self.settle(slice, move |homes| homes.contains(&to)).await
    }

    async fn start(
        &self,
        slice: SliceNo,
        from: Option<NodeId>,
        to: Option<NodeId>,
    ) -> Result<(), Failure> {
        let mv = PlannedMove {
            index: self.index.id,
            generation: self.index.generation,
            slice,
            from,
            to,
            reason: "the case".into(),
        };
        self.backend.command(Command::StartMoves(vec![mv])).await?;
        Ok(())
    }

    async fn settle(
        &self,
        slice: SliceNo,
        there: impl Fn(&[NodeId]) -> bool,
    ) -> Result<(), Failure> {
        let id: IndexId = self.index.id;
        let settled = |catalog: &proto::index::Catalog| {
            catalog.indexes.get(&id).is_some_and(|index| {
                there(index.topology.replicas(slice))
                    && index.moves.iter().all(|mv| mv.slice != slice)
            })
        };
        let nodes: BTreeSet<NodeId> = self.homes(slice).into_iter().collect();
        let waited = timeout(PATIENCE, self.routers[0].wait_catalog(settled)).await;
        waited.map(drop).map_err(|_| {
            format!("slice {slice} does not come to its place, it is on {nodes:?}").into()
        })
    }
}

fn entry_of(entry: &[u8]) -> Result<Entry, Failure> {
    let mut rest = entry;
    key::decode_part(&mut rest, false)?;
    key::decode_part(&mut rest, false)?;
    let id = std::str::from_utf8(rest)?;
    let mut numbers = id.split('/');
    let mut next = || numbers.next().ok_or("an id of another kind");
    Ok((next()?.parse()?, next()?.parse()?, next()?.parse()?))
}
