//! The event loop, and the network, which delays, reorders and loses messages.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use coordinator::testing::{CopyCheck, HistoryQuery, RaftMessage};
use proto::model::assignment::VbucketSet;
use proto::model::cut::Cut;
use proto::model::history::SourceHistory;
use proto::model::ids::{BucketId, Epoch, LocalIndexId, MoveId, NodeId};
use proto::rpc::api::{BucketReport, Heartbeat};
use proto::rpc::command::{Outcome, Proposal, RequestId};
use proto::rpc::mutation::StreamMessage;
use proto::rpc::scan::AppliedReport;

use super::client::Client;
use super::damage::Damage;
use super::indexer::Indexer;
use super::judge::Judge;
use super::members::Member;
use super::router::RouterModel;
use super::source::Source;
use crate::raft::MEMBERS;

/// The id of the only bucket.
pub const BUCKET: BucketId = BucketId(1);
/// The node of the source.
pub const SOURCE: NodeId = NodeId(20);
/// The node of the router.
pub const ROUTER: NodeId = NodeId(30);
/// The node ids of the indexers.
pub const INDEXERS: [NodeId; 4] = [NodeId(11), NodeId(12), NodeId(13), NodeId(14)];

/// A follower of the catalog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watcher {
    /// The source, which also receives epochs.
    Source,
    /// The router of the world.
    Router,
    /// An indexer, by its index in [`INDEXERS`].
    Indexer(usize),
}

/// An event of the event loop.
#[derive(Debug)]
pub enum Event {
    /// A tick of a member's clock.
    RaftTick(usize),
    /// The arrival of a message between members.
    Raft(RaftMessage),
    /// The completion of a member's write.
    Written { at: usize, boot: u64, number: u64 },
    /// The next plan of a leader's loop.
    Plan { at: usize, boot: u64 },
    /// A leader's choice of the sources whose history it requests.
    Enquire { at: usize, boot: u64 },
    /// The arrival of a source's history at a leader.
    Enquired { at: usize, boot: u64, asked: HistoryQuery, history: SourceHistory },
    /// The comparison of two copies for a leader.
    CopyCheck { at: usize, boot: u64, check: CopyCheck },
    /// The arrival of a SYNC at the leaders.
    Sync(Cut),
    /// The arrival of a heartbeat at the leaders.
    Heartbeat(Heartbeat),
    /// The arrival of a client's request at a member.
    Request { at: usize, request: Proposal },
    /// The arrival of an outcome at the client.
    Answer { id: RequestId, outcome: Box<Outcome> },
    /// The next request of the client.
    Client,
    /// A write of the source.
    Write,
    /// A report of the source's durable positions.
    SourceSync,
    /// A heartbeat or a report of an indexer or the router.
    Beat(Watcher),
    /// The arrival of the catalog at a follower, from some member.
    Watch(Watcher),
    /// The sending of new messages by the source to an indexer.
    Pump(usize),
    /// The opening of a stream by an indexer.
    Connect(usize),
    /// The arrival of a subscription at the source.
    Subscribe { at: usize, session: u64, from: Option<Cut>, last_epoch: Epoch },
    /// The arrival of messages of a stream.
    Stream { at: usize, session: u64, messages: Vec<StreamMessage> },
    /// The end or the refusal of a stream; `misplaced` if its start is not in the source's history.
    StreamEnd { at: usize, session: u64, misplaced: bool },
    /// The arrival of a snapshot for a build.
    Fetched { at: usize, index: LocalIndexId, number: u64, snapshot: (Cut, Vec<(u16, u32)>) },
    /// The repeated request of a snapshot.
    Fetch { at: usize, index: LocalIndexId, number: u64 },
    /// The completion of a move's copy at its target.
    Copied { at: usize, index: LocalIndexId, id: MoveId },
    /// The arrival of an indexer's report at the router.
    Report(AppliedReport),
    /// The router's discovery that an indexer is unreachable.
    Lost(NodeId),
    /// The completion of an indexer's writes or merges.
    Upkeep(usize),
    /// The start of a scan.
    Scan,
    /// The next step of a scan.
    ScanStep(u64),
    /// The next fault.
    Fault,
    /// The start of a member, by its index.
    StartMember(usize),
    /// The start of an indexer, by its index.
    StartIndexer(usize),
}

struct Scheduled {
    at_ms: u64,
    number: u64,
    /// The event, in a box so that the heap moves only pointers.
    event: Box<Event>,
}

impl PartialEq for Scheduled {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for Scheduled {}

impl PartialOrd for Scheduled {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Scheduled {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at_ms, self.number).cmp(&(other.at_ms, other.number))
    }
}

/// The faults in effect.
#[derive(Debug, Default)]
pub struct Broken {
    /// True after the last fault.
    pub over: bool,
    /// The percentage of lost messages.
    pub loss: u32,
    /// The maximum additional delay of a message, in milliseconds.
    pub slow_ms: u64,
    /// A member that is unreachable, if there is one.
    pub cut: Option<NodeId>,
}

/// The whole simulated cluster.
pub struct World {
    /// The seed of all random choices.
    pub seed: u64,
    /// The true time, in milliseconds.
    pub now_ms: u64,
    /// The generator of all random choices.
    pub random: fastrand::Rng,
    /// The coordinators.
    pub members: Vec<Member>,
    /// The source of the bucket.
    pub source: Source,
    /// The indexers, by index.
    pub indexers: Vec<Indexer>,
    /// The model of the router.
    pub router: RouterModel,
    /// The client, which sends DDL and moves.
    pub client: Client,
    /// The judge of invariants.
    pub judge: Judge,
    /// The faults in effect.
    pub broken: Broken,
    /// The damaged copies.
    pub damage: Damage,
    /// The number of faults by kind.
    pub faults: BTreeMap<&'static str, u64>,
    /// The number of events so far.
    pub events: u64,
    /// A hash of all events, equal in every run of a seed.
    pub trace: u64,
    /// The number of the last proposal.
    pub last_proposal: u64,
    heap: BinaryHeap<Reverse<Scheduled>>,
    last_event: u64,
    reached: BTreeMap<NodeId, Epoch>,
}

impl World {
    /// Returns a cluster in its initial state.
    pub fn new(seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let member = |id: &NodeId| Member::new(*id, random.u64(92..=108));
        let members = MEMBERS.iter().map(member).collect();
        let careless = random.u32(..4) == 0;
        let mut world = Self {
            seed,
            now_ms: 0,
            members,
            source: Source::new(careless),
            indexers: INDEXERS.iter().map(|id| Indexer::new(*id, BUCKET)).collect(),
            router: RouterModel::default(),
            client: Client::new(&mut random),
            random,
            judge: Judge::default(),
            broken: Broken::default(),
            damage: Damage::new(seed),
            faults: BTreeMap::new(),
            events: 0,
            trace: seed,
            last_proposal: 0,
            heap: BinaryHeap::new(),
            last_event: 0,
            reached: BTreeMap::new(),
        };
        world.begin();
        world
    }

    fn begin(&mut self) {
        for at in 0..MEMBERS.len() {
            self.members[at].start(self.seed);
            self.after(at as u64, Event::RaftTick(at));
        }
        for watcher in self.watchers() {
            self.after(1, Event::Watch(watcher));
            self.after(500, Event::Beat(watcher));
        }
        for at in 0..INDEXERS.len() {
            self.after(200, Event::Connect(at));
            self.after(200, Event::Pump(at));
            self.after(700, Event::Upkeep(at));
        }
        for event in [Event::Client, Event::Write, Event::SourceSync, Event::Scan] {
            self.after(100, event);
        }
        self.after(3_000, Event::Fault);
    }

    fn watchers(&self) -> Vec<Watcher> {
        let indexers = (0..INDEXERS.len()).map(Watcher::Indexer);
        [Watcher::Source, Watcher::Router].into_iter().chain(indexers).collect()
    }

    /// Schedules an event after a delay.
    pub fn after(&mut self, ms: u64, event: Event) {
        self.last_event += 1;
        let scheduled =
            Scheduled { at_ms: self.now_ms + ms, number: self.last_event, event: Box::new(event) };
        self.heap.push(Reverse(scheduled));
    }

    /// Sends a message, which arrives soon, late or never.
    pub fn send(&mut self, event: Event) {
        if self.random.u32(..100) < self.broken.loss {
            return;
        }
        let ms = self.delay_ms();
        self.after(ms, event);
    }

    /// Draws the delay of a message, in milliseconds.
    pub fn delay_ms(&mut self) -> u64 {
        let slow_ms = match self.random.u32(..8) {
            0 => self.random.u64(..=self.broken.slow_ms),
            _ => 0,
        };
        self.random.u64(1..10) + slow_ms
    }

    /// True if a member is unreachable.
    pub fn is_cut(&self, node: NodeId) -> bool {
        self.broken.cut == Some(node)
    }

    /// Returns the newest epoch that an indexer has ever reported.
    pub fn reach_of(&self, node: NodeId) -> Epoch {
        self.reached.get(&node).copied().unwrap_or_default()
    }

    /// Runs events until a time, or until the first violation.
    pub fn run_until(&mut self, end_ms: u64) {
        while self.judge.violations.is_empty() {
            if self.heap.peek().is_none_or(|Reverse(next)| next.at_ms > end_ms) {
                self.now_ms = end_ms;
                return;
            }
            let Some(Reverse(Scheduled { at_ms, event, .. })) = self.heap.pop() else { return };
            self.now_ms = at_ms;
            self.events += 1;
            self.trace = self.trace.rotate_left(5) ^ at_ms;
            self.handle(*event);
        }
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::RaftTick(at) => self.raft_tick(at),
            Event::Raft(message) => self.raft_message(message),
            Event::Written { at, boot, number } => self.raft_written(at, boot, number),
            Event::Plan { at, boot } => self.plan(at, boot),
            Event::Enquire { at, boot } => self.enquire(at, boot),
            Event::Enquired { at, boot, asked, history } => {
                self.record_history(at, boot, asked, history)
            }
            Event::CopyCheck { at, boot, check } => self.check(at, boot, &check),
            Event::Sync(cut) => self.sync(&cut),
            Event::Heartbeat(heartbeat) => self.heartbeat(&heartbeat),
            Event::Request { at, request } => self.client_request(at, request),
            Event::Answer { id, outcome } => self.client_answer(id, &outcome),
            Event::Client => self.client_step(),
            Event::Write => self.source_writes(),
            Event::SourceSync => self.source_syncs(),
            Event::Beat(watcher) => self.beat(watcher),
            Event::Watch(watcher) => self.watch(watcher),
            Event::Pump(at) => self.pump(at),
            Event::Connect(at) => self.connect(at),
            Event::Subscribe { at, session, from, last_epoch } => {
                self.subscribe(at, session, from, last_epoch);
            }
            Event::Stream { at, session, messages } => self.stream(at, session, messages),
            Event::StreamEnd { at, session, misplaced } => self.stream_end(at, session, misplaced),
            Event::Fetch { at, index, number } => self.fetch(at, index, number),
            Event::Fetched { at, index, number, snapshot } => {
                self.fetched(at, index, number, snapshot);
            }
            Event::Copied { at, index, id } => self.copied(at, index, id),
            Event::Report(report) => self.router.applied.report(report),
            Event::Lost(node) => self.router.applied.remove_report(node),
            Event::Upkeep(at) => self.upkeep(at),
            Event::Scan => {
                let ms = self.random.u64(50..400);
                self.after(ms, Event::Scan);
                self.begin_scan();
            }
            Event::ScanStep(number) => self.scan_step(number),
            Event::Fault => self.fault(),
            Event::StartMember(at) => self.start_member(at),
            Event::StartIndexer(at) => self.start_indexer(at),
        }
    }

    /// Calls a function with each leader. There may be two, if a leader does not know yet that it
    /// was replaced.
    fn each_leader(&mut self, mut work: impl FnMut(&mut Self, usize)) {
        for (at, member) in MEMBERS.into_iter().enumerate() {
            if !self.is_cut(member) && self.leading(at).is_some() {
                work(self, at);
            }
        }
    }

    fn sync(&mut self, cut: &Cut) {
        self.each_leader(|world, at| {
            let Some((leading, replica, now_ms)) = world.leading(at) else { return };
            let report = BucketReport::new(BUCKET, VbucketSet::all(cut.vbuckets()), cut.clone());
            let told =
                leading.leader.record_sync_report(&replica.view().state, SOURCE, report, now_ms);
            told.expect("the source has as many vbuckets as its bucket");
            world.wake(at, 1);
        });
    }

    fn heartbeat(&mut self, heartbeat: &Heartbeat) {
        for progress in heartbeat.report.indexer().into_iter().flat_map(|told| &told.buckets) {
            let reached = self.reached.entry(heartbeat.node).or_default();
            *reached = progress.applied.max(*reached);
        }
        self.each_leader(|world, at| {
            let true_ms = world.now_ms;
            let Some((leading, _, now_ms)) = world.leading(at) else { return };
            // The newest heartbeat of a router is binding for the leader.
            if let Some(report) = heartbeat.report.router() {
                leading.reported_leases =
                    report.leases.iter().map(|(_, e)| (*e, true_ms)).collect();
            }
            if leading.leader.record_heartbeat(heartbeat.clone(), now_ms) {
                world.wake(at, 1);
            }
        });
    }

    fn enquire(&mut self, at: usize, boot: u64) {
        if self.members[at].boot != boot {
            return;
        }
        let silent = self.source.down_until_ms > self.now_ms || self.is_cut(MEMBERS[at]);
        let Some((leading, replica, now_ms)) = self.leading(at) else { return };
        let found = leading.leader.queries_due(&replica.view().state, now_ms);
        if !found.is_empty() && !silent {
            let asked = leading.leader.begin_query();
            let history = self.source.answer();
            self.send(Event::Enquired { at, boot, asked, history });
        }
    }

    fn record_history(
        &mut self,
        at: usize,
        boot: u64,
        asked: HistoryQuery,
        history: SourceHistory,
    ) {
        if self.members[at].boot != boot {
            return;
        }
        let Some((leading, replica, _)) = self.leading(at) else { return };
        let told = leading.leader.record_history(&replica.view().state, BUCKET, asked, history);
        told.expect("the source has as many vbuckets as its bucket");
        self.wake(at, 1);
    }
}
