//! Tests that the leader carries versions through their lives.

use proto::model::cut::Cut;
use proto::model::data_set::DataSet;
use proto::model::ids::{Epoch, IndexId, LocalIndexId, SliceNo};
use proto::model::index::IndexInfo;
use proto::rpc::api::{BucketProgress, Heartbeat, IndexerReport, LoadReport, ProjectorReport};
use proto::rpc::command::{
    BuildGeneration, BuildVersion, DropGeneration, DropVersion, IndexReady, Outcome,
    PartitionsLost, RegisterNode, SwitchVersion,
};

use proto::ErrorCode;

use super::*;
use crate::leader::generations::ready_indexes;
use crate::leader::memory::tests::{slice_progress, with_leases};
use crate::state::tests::{create_index, done, node, spec};
use crate::state::versions::tests::{advertise, complete, load, with_data_set};

const SET: BucketId = BucketId(1);
const ROUTER: u64 = 30;
const STEP_MS: u64 = 1_000;

/// A cluster with a data set, a leader's memory, and the time.
struct World {
    state: StateContext,
    heartbeats: Heartbeats,
    promotions: Promotions,
    versions: Versions,
    now_ms: u64,
    /// The generations whose slices are readable, and the epoch that the indexers have applied.
    readable: Vec<LocalIndexId>,
    applied: u64,
    /// The oldest catalog that the router reports as in use; `None` if the router is silent.
    reads_since: Option<u64>,
    /// The version's bucket of which the router reports a lease.
    leased: Option<BucketId>,
    silent: Vec<u64>,
    /// The reports of projectors about a load: the number of rows, and an error.
    loads: BTreeMap<u64, (u64, Option<&'static str>)>,
}

impl World {
    fn new() -> Self {
        let mut state = with_data_set();
        done(&mut state, RegisterNode { node: node(ROUTER, Role::Router) });
        Self {
            state,
            heartbeats: Heartbeats::new(0),
            promotions: Promotions::new(20),
            versions: Versions::default(),
            now_ms: LEASE_MS,
            readable: Vec::new(),
            applied: 2,
            reads_since: Some(u64::MAX),
            leased: None,
            silent: Vec::new(),
            loads: BTreeMap::new(),
        }
    }

    fn heard(&self, node: u64) -> Heartbeat {
        if node < 20 {
            let load = self.loads.get(&node).zip(self.set().loading());
            let load = load.map(|((steps, trouble), (_, version))| LoadReport {
                bucket: version.bucket,
                steps: *steps,
                trouble: trouble.map(str::to_owned),
            });
            let loads = load.into_iter().collect();
            let report = ProjectorReport { loads, ..ProjectorReport::default() };
            return Heartbeat::new(NodeId(node), 0, report);
        }
        let loaded = self.state.data_sets().flat_map(|(_, set)| set.versions.values());
        let buckets = loaded
            .map(|version| BucketProgress {
                bucket: version.bucket,
                high_watermark: Cut::zero(version.partitions.len() as u16),
                applied: Epoch(self.applied),
                durable: Epoch(self.applied),
                queue_bytes: 0,
                queue_bytes_max: 1,
            })
            .collect();
        let of_node = |info: &IndexInfo| {
            let hosted = (0..info.topology.placement.len() as u16).map(SliceNo);
            let hosted = hosted.filter(|slice| info.topology.hosts(NodeId(node), *slice));
            let id = info.local_id();
            hosted
                .map(move |slice| slice_progress(id.slice(slice), Some(Epoch(2))))
                .collect::<Vec<_>>()
        };
        let built = self.state.indexes().filter(|r| self.readable.contains(&r.info.local_id()));
        let slices = built.flat_map(|record| of_node(&record.info)).collect();
        let report = IndexerReport { buckets, slices, ..IndexerReport::default() };
        Heartbeat::new(NodeId(node), 0, report)
    }

    /// Advances time by a second, in which all nodes that are not silent report. Returns the
    /// leader's proposals for versions.
    fn pass(&mut self) -> Vec<Command> {
        self.now_ms += STEP_MS;
        for node in [10, 11, 12, 20, 21].into_iter().filter(|node| !self.silent.contains(node)) {
            let heard = self.heard(node);
            self.heartbeats.add(heard, self.now_ms);
        }
        if let Some(reads_since) = self.reads_since {
            let leases = self.leased.into_iter().map(|bucket| (bucket, Epoch(2))).collect();
            let heard = with_leases(ROUTER, leases, reads_since);
            self.heartbeats.add(heard, self.now_ms);
        }
        let mut stability = Default::default();
        let Self { state, heartbeats, promotions, versions, now_ms, .. } = self;
        promotions.plan(state, heartbeats, &mut stability, *now_ms, &mut Plan::default());
        let mut plan = Plan::default();
        versions.plan(state, heartbeats, promotions, *now_ms, &mut plan);
        plan.commands
    }

    fn run(&mut self, commands: Vec<Command>) -> Vec<Outcome> {
        commands.into_iter().map(|command| done(&mut self.state, command)).collect()
    }

    /// Returns the bucket of a version that all projectors but 11 have loaded, and whose
    /// generations can be read.
    fn complete_but_for_one(&mut self) -> BucketId {
        done(&mut self.state, load("v1"));
        let bucket = self.set().loading().unwrap().1.bucket;
        for node in [10, 12] {
            let command = advertise(&self.state, bucket, node);
            done(&mut self.state, command);
        }
        let commands = self.pass();
        let outcomes = self.run(commands);
        let [Outcome::Generation(next)] = outcomes[..] else { panic!("{outcomes:?}") };
        self.readable.push(next);
        bucket
    }

    /// Returns true if the leader switches to the version within some seconds.
    fn switches(&mut self, seconds: u64) -> bool {
        let is_switch = |command: &Command| matches!(command, Command::SwitchVersion(_));
        (0..seconds).any(|_| self.pass().iter().any(is_switch))
    }

    /// Returns the reasons why versions wait.
    fn waits(&self) -> String {
        let waits = self.versions.wait_reasons(&self.state, &self.heartbeats, self.now_ms);
        waits.into_iter().map(|(_, why)| why).collect::<Vec<_>>().join("; ")
    }

    /// Loads a version to its end.
    fn load(&mut self, name: &str) {
        complete(&mut self.state, name);
        for _ in 0..6 {
            let commands = self.pass();
            for outcome in self.run(commands) {
                if let Outcome::Generation(id) = outcome {
                    self.readable.push(id);
                }
            }
        }
        let set = self.set();
        assert_eq!(set.current().unwrap().1.name, name);
    }

    /// Simulates a lease on the current version.
    fn read(&mut self) {
        self.leased = self.set().current().map(|(_, version)| version.bucket);
        self.pass();
        self.leased = None;
    }

    fn set(&self) -> &DataSet {
        self.state.data_sets().next().unwrap().1
    }

    /// Returns true if the leader drops a version within some seconds.
    fn drops(&mut self, seconds: u64, version: u64) -> bool {
        let drop = Command::DropVersion(DropVersion { data_set: SET, version });
        (0..seconds).any(|_| self.pass().contains(&drop))
    }
}

#[test]
fn a_complete_version_is_built_and_then_switched_to() {
    let mut world = World::new();
    let bucket = complete(&mut world.state, "v1");
    let commands = world.pass();
    let from = world.state.serving(IndexId(1)).unwrap().info.local_id();
    assert_eq!(commands, [Command::BuildVersion(BuildVersion { from, bucket })]);
    let outcomes = world.run(commands);
    let [Outcome::Generation(next)] = outcomes[..] else { panic!("{outcomes:?}") };
    assert!(world.pass().is_empty(), "no slice can be read");
    world.readable.push(next);
    world.applied = 1;
    assert!((0..5).all(|_| world.pass().is_empty()), "the epoch of the version is not applied");
    world.applied = 2;
    let switch = Command::SwitchVersion(SwitchVersion { data_set: SET, version: 1 });
    assert_eq!(world.pass(), [switch]);
}

#[test]
fn a_kept_version_goes_when_nobody_has_asked_for_it_during_the_idle_time() {
    let mut world = World::new();
    world.load("v1");
    world.read();
    world.load("v2");
    let idle_s = world.set().idle_ms / 1_000;
    world.reads_since = Some(world.state.catalog_cas() - 1);
    assert!(!world.drops(idle_s, 1), "something at the router began before the switch");
    world.reads_since = Some(u64::MAX);
    assert!(!world.drops(idle_s - 1, 1));
    assert!(world.drops(2, 1));
}

#[test]
fn a_lease_holds_a_kept_version() {
    let mut world = World::new();
    world.load("v1");
    world.read();
    let bucket = world.set().current().unwrap().1.bucket;
    world.load("v2");
    let idle_s = world.set().idle_ms / 1_000;
    world.leased = Some(bucket);
    assert!(!world.drops(idle_s + 100, 1));
    world.leased = None;
    assert!(!world.drops(idle_s - 10, 1), "its idle time begins at the end of the lease");
    assert!(world.drops(20, 1));
}

#[test]
fn what_began_before_the_switch_holds_a_version_for_a_bounded_time() {
    let mut world = World::new();
    world.load("v1");
    world.read();
    world.load("v2");
    let idle_s = world.set().idle_ms / 1_000;
    world.reads_since = Some(world.state.catalog_cas() - 1);
    assert!(world.drops((LEASE_AGE_MS_MAX + LEASE_MS) / 1_000 + idle_s + 10, 1));
}

#[test]
fn a_version_that_nobody_has_read_goes_when_the_next_one_is_current() {
    let mut world = World::new();
    for name in ["v1", "v2", "v3", "v4", "v5", "v6"] {
        world.load(name);
    }
    assert!(world.set().versions.len() <= 3, "those before have gone: {:?}", world.set().versions);
    world.reads_since = Some(0);
    world.load("v7");
    assert!(!world.drops(60, 6), "something at the router began before the switch");
    world.reads_since = Some(u64::MAX);
    assert!(world.drops(7, 6));
    // A new leader does not know the readers of the version that it finds.
    world.versions = Versions::default();
    world.load("v8");
    assert!(!world.drops(world.set().idle_ms / 1_000 - 8, 7));
}

#[test]
fn each_request_for_a_kept_version_begins_its_idle_time_anew() {
    let mut world = World::new();
    world.load("v1");
    world.read();
    world.load("v2");
    let idle_s = world.set().idle_ms / 1_000;
    for _ in 0..3 {
        // Some seconds after the switch were spent on loading.
        assert!(!world.drops(idle_s - 8, 1));
        world.reads_since = Some(0);
        assert!(!world.drops(1, 1));
        world.reads_since = Some(u64::MAX);
    }
    world.versions = Versions::default();
    assert!(!world.drops(idle_s - 1, 1), "a new leader begins anew");
    world.reads_since = None;
    assert!(world.drops(2, 1), "a router that is silent has no requests");
}

#[test]
fn the_partitions_of_a_silent_projector_are_given_to_other_holders() {
    let mut world = World::new();
    world.load("v1");
    let bucket = world.set().current().unwrap().1.bucket;
    let owned = |world: &World, node| {
        world.state.bucket(bucket).unwrap().info.assignment.owned_by(NodeId(node)).len()
    };
    assert!(owned(&world, 10) > 0 && world.pass().is_empty());
    world.silent = vec![10];
    let commands: Vec<_> = (0..SILENT_MS_MAX / STEP_MS + 1).flat_map(|_| world.pass()).collect();
    assert!(matches!(commands[..], [Command::ChangePartitionOwners(_), ..]), "{commands:?}");
    world.run(commands);
    assert_eq!(owned(&world, 10), 0);
    world.silent = Vec::new();
    let is_back: Vec<_> = (0..10).flat_map(|_| world.pass()).collect();
    assert!(is_back.is_empty(), "owners that are alive keep their partitions: {is_back:?}");
    world.silent = vec![10, 11, 12];
    let all_silent: Vec<_> = (0..10).flat_map(|_| world.pass()).collect();
    assert!(all_silent.is_empty(), "{all_silent:?}");
}

#[test]
fn a_version_becomes_current_when_the_live_projectors_have_their_partitions() {
    let mut world = World::new();
    let bucket = world.complete_but_for_one();
    world.loads.insert(11, (0, None));
    for steps in 1..100 {
        world.loads.insert(11, (steps, None));
        assert!(!world.switches(1), "projector 11 reads its {steps}th row");
    }
    assert!(world.waits().contains("projector 11 lacks partitions"), "{}", world.waits());
    assert!(world.waits().contains("99 rows"), "{}", world.waits());
    let command = advertise(&world.state, bucket, 11);
    done(&mut world.state, command);
    assert!(world.switches(1));
    assert_eq!(world.waits(), "");
}

#[test]
fn a_projector_that_is_silent_or_in_trouble_or_does_not_get_on_holds_no_switch_for_long() {
    let mut world = World::new();
    world.complete_but_for_one();
    world.loads.insert(11, (5, Some("no space left on device")));
    assert!(world.switches(3));
    assert!(world.waits().contains("it reports: no space left on device"), "{}", world.waits());

    let mut world = World::new();
    world.complete_but_for_one();
    world.silent = vec![11];
    assert!(!world.switches(3), "it may only be slow");
    assert!(world.switches(SILENT_MS_MAX / STEP_MS));
    assert!(world.waits().contains("projector 11") && world.waits().contains("silent for"));

    let mut world = World::new();
    world.complete_but_for_one();
    world.loads.insert(11, (5, None));
    assert!(!world.switches(50));
    assert!(world.switches(20), "it has not read a row for a minute");
}

#[test]
fn a_version_that_is_not_complete_says_for_which_projectors_it_waits() {
    let mut world = World::new();
    done(&mut world.state, load("v1"));
    world.silent = vec![12];
    world.loads.insert(10, (7, Some("no space left on device")));
    (0..10).for_each(|_| drop(world.pass()));
    let waits = world.waits();
    for part in [
        "projector 10 lacks partitions 0, 1, 3: it reports: no space left on device",
        "projector 11 lacks partitions 0, 2, 3: it has not begun",
        "projector 12 lacks partitions 1, 2: it has been silent for",
    ] {
        assert!(waits.contains(part), "{waits}");
    }
}

#[test]
fn a_refused_build_is_proposed_ever_more_rarely_and_the_reason_is_told() {
    let mut world = World::new();
    complete(&mut world.state, "v1");
    let refusal = Error::new(ErrorCode::OverLimit, "there are 2048 indexes");
    let mut proposals = 0;
    for _ in 0..100 {
        for command in world.pass() {
            assert!(matches!(command, Command::BuildVersion(_)), "{command:?}");
            world.versions.record_refusal(&command, &refusal);
            proposals += 1;
        }
    }
    assert!((5..10).contains(&proposals), "{proposals} proposals in 100 seconds");
    assert_eq!(world.waits(), "index \"i\" is not built yet: there are 2048 indexes");
    let from = world.state.serving(IndexId(1)).unwrap().info.local_id();
    let bucket = world.set().loading().unwrap().1.bucket;
    done(&mut world.state, BuildVersion { from, bucket });
    world.pass();
    assert_eq!(world.waits(), "");
}

#[test]
fn another_build_of_an_index_is_named_as_the_reason_why_a_version_waits() {
    let mut world = World::new();
    complete(&mut world.state, "v1");
    let info = world.state.serving(IndexId(1)).unwrap().info.clone();
    let mut spec = Box::new((*info.spec).clone());
    spec.slices += 1;
    done(&mut world.state, BuildGeneration { index: info.id, spec });
    assert!(world.pass().is_empty());
    assert!(world.waits().contains("CANCEL BUILD i"), "{}", world.waits());
}

#[test]
fn a_first_build_over_a_version_that_lost_a_partition_holds_no_newer_version() {
    let mut world = World::new();
    world.load("v1");
    done(&mut world.state, create_index(spec("k")));
    let lost = world.set().current().unwrap().1.bucket;
    for node in [10, 11, 12].map(NodeId) {
        let partitions = vec![VbucketId(0)];
        done(&mut world.state, PartitionsLost { bucket: lost, node, partitions });
    }
    let bucket = complete(&mut world.state, "v2");
    let commands = world.pass();
    let begins = |command: &Command| matches!(command, Command::BuildVersion(BuildVersion { bucket: of, .. }) if *of == bucket);
    assert!(commands.len() == 2 && commands.iter().all(begins), "{commands:?}");
    for outcome in world.run(commands) {
        let Outcome::Generation(next) = outcome else { panic!("{outcome:?}") };
        world.readable.push(next);
    }
    assert!(world.switches(3));
    let World { state, heartbeats, promotions, now_ms, .. } = &world;
    let ready = ready_indexes(state, heartbeats, promotions, *now_ms);
    assert_eq!(ready, [], "the switch makes them serve");
    done(&mut world.state, SwitchVersion { data_set: SET, version: 2 });
    let shown = world.state.serving(IndexId(3)).expect("it serves").info.clone();
    assert_eq!(shown.bucket, bucket);
}

#[test]
fn another_build_over_a_version_that_lost_a_partition_is_begun_anew_over_the_newer_version() {
    let mut world = World::new();
    world.load("v1");
    let info = world.state.serving(IndexId(1)).unwrap().info.clone();
    let mut spec = Box::new((*info.spec).clone());
    spec.slices += 1;
    done(&mut world.state, BuildGeneration { index: info.id, spec });
    complete(&mut world.state, "v2");
    assert!(world.pass().is_empty(), "the build has an end");
    for node in [10, 11, 12].map(NodeId) {
        let partitions = vec![VbucketId(0)];
        done(&mut world.state, PartitionsLost { bucket: info.bucket, node, partitions });
    }
    let commands = world.pass();
    assert!(matches!(commands[..], [Command::BuildVersion(_)]), "{commands:?}");
    for outcome in world.run(commands) {
        let Outcome::Generation(next) = outcome else { panic!("{outcome:?}") };
        world.readable.push(next);
    }
    assert!(world.switches(3));
}

#[test]
fn the_generation_from_before_the_first_version_holds_no_later_one() {
    let mut world = World::new();
    world.reads_since = Some(0);
    ["v1", "v2", "v3", "v4"].into_iter().for_each(|name| world.load(name));
    assert_eq!(world.state.indexes().filter(|r| r.info.id == IndexId(1)).count(), 5);
}

#[test]
fn a_version_tells_at_once_that_it_waits_for_generations_that_are_still_read() {
    let mut world = World::new();
    world.reads_since = Some(0);
    ["v1", "v2", "v3"].into_iter().for_each(|name| world.load(name));
    let empty =
        world.state.indexes().find(|r| r.info.bucket == SET && r.info.state == IndexState::Retired);
    let empty = empty.unwrap().info.local_id();
    done(&mut world.state, DropGeneration { generation: empty });
    let info = world.state.serving(IndexId(1)).unwrap().info.clone();
    let spec = Box::new((*info.spec).clone());
    let build = Command::BuildGeneration(BuildGeneration { index: info.id, spec });
    let Outcome::Generation(next) = done(&mut world.state, build) else { panic!("no generation") };
    done(&mut world.state, IndexReady { index: next.index, generation: next.generation });
    complete(&mut world.state, "v4");
    let waits = world.waits();
    assert!(waits.contains("index \"i\" is not built yet: it has 4 generations"), "{waits}");
    assert!(
        waits.contains("scans, transactions or tokens") && waits.contains("minutes"),
        "{waits}"
    );
    assert!(world.pass().is_empty());
    done(&mut world.state, DropGeneration { generation: info.local_id() });
    assert!(matches!(world.pass()[..], [Command::BuildVersion(_)]));
}
