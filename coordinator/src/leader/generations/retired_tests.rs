use proto::model::ids::{Generation, IndexId};
use proto::model::index::IndexSpec;

use proto::rpc::command::{BuildGeneration, DropGeneration, IndexReady, Outcome, RegisterNode};

use super::*;
use crate::leader::memory::tests::with_leases;
use crate::state::tests::{done, node, serving};

const OLD: LocalIndexId = LocalIndexId { index: IndexId(1), generation: Generation(1) };
const ROUTERS: [u64; 2] = [30, 31];

/// A cluster that has switched from generation 1 to 2, a leader's memory, and two routers.
struct World {
    state: StateContext,
    heartbeats: Heartbeats,
    retired: RetiredGenerations,
    now_ms: u64,
    /// The catalog that contains the switch.
    switched: u64,
}

impl World {
    fn new() -> Self {
        let mut state = serving(1);
        for router in ROUTERS {
            done(&mut state, RegisterNode { node: node(router, Role::Router) });
        }
        let spec = IndexSpec::clone(&state.serving(IndexId(1)).unwrap().info.spec);
        let command =
            Command::BuildGeneration(BuildGeneration { index: OLD.index, spec: Box::new(spec) });
        let Outcome::Generation(next) = done(&mut state, command) else { panic!("no generation") };
        let ready =
            Command::IndexReady(IndexReady { index: next.index, generation: next.generation });
        done(&mut state, ready);
        let switched = state.catalog_cas();
        let (heartbeats, retired) = (Heartbeats::new(0), RetiredGenerations::default());
        Self { state, heartbeats, retired, now_ms: LEASE_MS, switched }
    }

    /// Advances time by some seconds. Each second, every router that is not silent reports its
    /// oldest catalog in use. Returns true if the old generation is dropped.
    fn pass(&mut self, seconds: u64, reads_since: [Option<u64>; 2]) -> bool {
        let mut goes = false;
        for _ in 0..seconds {
            self.now_ms += 1_000;
            for (router, since) in ROUTERS.iter().zip(reads_since) {
                if let Some(reads_since) = since {
                    let heartbeat = with_leases(*router, Vec::new(), reads_since);
                    self.heartbeats.add(heartbeat, self.now_ms);
                }
            }
            let mut plan = Plan::default();
            self.retired.plan(&self.state, &self.heartbeats, self.now_ms, &mut plan);
            goes |= plan.commands == [Command::DropGeneration(DropGeneration { generation: OLD })];
        }
        goes
    }
}

#[test]
fn a_generation_goes_when_nothing_at_any_router_has_begun_before_the_switch() {
    let mut world = World::new();
    let (new, old) = (Some(world.switched), Some(world.switched - 1));
    assert!(!world.pass(30, [new, old]), "a scan of the second router reads it");
    assert!(!world.pass(30, [Some(0), new]), "one of the first has begun on it later");
    assert!(world.pass(6, [new, new]));
}

#[test]
fn a_statement_has_some_seconds_until_it_comes_to_its_router() {
    let mut world = World::new();
    let (new, old) = (Some(world.switched + 7), Some(world.switched - 1));
    let grace = KEEP_WHOLE_MS / 1_000;
    assert!(!world.pass(grace, [new, new]));
    assert!(!world.pass(1, [new, old]), "one came in time");
    assert!(!world.pass(grace, [new, new]));
    assert!(world.pass(1, [new, new]));
}

#[test]
fn a_silent_router_is_not_waited_for_and_no_lease_keeps_a_generation_for_ever() {
    let mut world = World::new();
    assert!(world.pass(20, [Some(world.switched), None]), "it has no lease any more");
    let mut world = World::new();
    let old = Some(world.switched - 1);
    let most = (LEASE_AGE_MS_MAX + LEASE_MS) / 1_000;
    assert!(!world.pass(most, [old, old]));
    assert!(world.pass(1, [old, old]));
}

#[test]
fn a_new_leader_waits_until_it_has_heard_the_routers() {
    let mut world = World::new();
    world.heartbeats = Heartbeats::new(world.now_ms);
    assert!(!world.pass(14, [None, None]));
    assert!(world.pass(9, [None, None]), "they are silent");
}
