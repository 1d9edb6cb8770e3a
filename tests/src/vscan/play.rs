//! The run of a case against the real services: a coordinator, a projector and an indexer for each
//! shard, over the simulated network, and two routers that serve the pages of a scan alternately.
//!
//! The points of a case are those of the published algorithm, whose batches have other sizes. A
//! request's page is therefore cut into smaller ones at the points inside it, each of which
//! continues from the last token. An event whose point cannot be reached exactly takes place at the
//! next possible point.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use proto::rpc::scan::ScanRequest;
use router::Token;
use tokio::time::timeout;

use super::case::{Case, Entry, Event, Op, Outcome, Point};
use super::cluster::{Cluster, node_of};
use crate::sim::cluster::hosts::Hosts;

/// The time limit of each step of a case.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// The maximum number of pages, above which a scan counts as endless.
const PAGES_MAX: usize = 10_000;

/// The reason why a case could not be run.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Runs a case and returns its outcome.
pub fn play(case: &Case, seed: u64) -> Outcome {
    let shards: Vec<u64> = case.shards().into_iter().collect();
    let indexers: Vec<u64> = shards.iter().map(|shard| node_of(*shard).0).collect();
    // Otherwise no scan would ever need a virtual scan.
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
        let mut cluster = Cluster::start(&self.case, self.seed).await?;
        cluster.load(&self.case.entries).await?;
        let request = cluster.request(&self.case);
        let mut first = None;
        for (n, topology) in self.case.topologies.iter().enumerate() {
            for (pid, shard) in &topology.home {
                cluster.migrate(*pid, *shard).await?;
            }
            if n == self.case.base && n + 1 < self.case.topologies.len() {
                // The topology at this moment becomes the scan's base topology.
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
                // The client continues from its previous token.
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

    /// Executes one request; returns its rows, and true if its answer is lost.
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
                // The remaining events of this request take place now.
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

/// Returns the number of finished parts of the scan that a token records.
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
    /// Returns the events whose points have been reached.
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

    /// Returns the number of rows that may be read before the next point.
    fn rows_to_next(&self, request: usize, call: usize, rows: u64) -> u64 {
        let ahead = self.events.iter().flatten().filter(|event| event.at.0 == request);
        let to = |event: &Event| match &event.at.3 {
            Point::Rows(k) if event.at.1 == call && *k > rows => k - rows,
            // The end of a call is known only afterwards.
            _ => 1,
        };
        ahead.map(to).min().unwrap_or(u64::MAX)
    }
}
