use proto::model::ids::{BucketId, Generation, IndexId};
use proto::model::index::IndexSpec;
use proto::model::moment::Moment;
use proto::rpc::api::Heartbeat;
use proto::rpc::command::Outcome;

use super::*;
use crate::leader::memory::tests::heartbeat;
use crate::state::tests::{apply, done, node, promotion, serving};

const BUCKET: BucketId = BucketId(1);
const OLD: LocalIndexId = LocalIndexId { index: IndexId(1), generation: Generation(1) };
const ROUTER: u64 = 30;

/// A cluster that has switched from generation 1 to 2, a leader's memory, and one router.
struct World {
    state: StateContext,
    heartbeats: Heartbeats,
    retired: Retired,
    now_ms: u64,
}

impl World {
    fn new() -> Self {
        let mut state = serving(1);
        done(&mut state, Command::RegisterNode(node(ROUTER, Role::Router)));
        let info = state.serving(IndexId(1)).unwrap().info.clone();
        let command = Command::BuildGeneration {
            from: OLD,
            before: Box::new(IndexSpec::clone(&info.spec)),
            spec: Box::new(IndexSpec::clone(&info.spec)),
        };
        let Outcome::Generation(next) = done(&mut state, command) else { panic!("no generation") };
        let ready = Command::IndexReady { index: next.index, generation: next.generation };
        done(&mut state, ready);
        let (heartbeats, retired) = (Heartbeats::new(0), Retired::default());
        Self { state, heartbeats, retired, now_ms: LEASE_MS }
    }

    /// Publishes an epoch.
    fn publish(&mut self, seqno: u64) {
        apply(&mut self.state, Command::PromoteEpochs(vec![promotion(0, 7, seqno)]));
    }

    /// Lets some seconds pass. The router reports its catalog and leases each second. True if the generation may go.
    fn pass(&mut self, seconds: u64, catalog_cas: u64, leases: &[u64]) -> bool {
        self.pass_with(seconds, |_| {
            let leases = leases.iter().map(|epoch| (BUCKET, Epoch(*epoch))).collect();
            Some(Heartbeat { catalog_cas, leases, ..heartbeat(ROUTER) })
        })
    }

    fn pass_with(&mut self, seconds: u64, says: impl Fn(u64) -> Option<Heartbeat>) -> bool {
        let mut goes = false;
        for _ in 0..seconds {
            self.now_ms += 1_000;
            if let Some(heartbeat) = says(self.now_ms) {
                self.heartbeats.add(heartbeat, self.now_ms);
            }
            let mut plan = Plan::default();
            self.retired.plan(&self.state, &self.heartbeats, self.now_ms, &mut plan);
            goes |= plan.commands == [Command::DropGeneration(OLD)];
        }
        goes
    }
}

#[test]
fn a_generation_goes_when_each_router_knows_of_the_next_and_no_lease_is_old() {
    let mut world = World::new();
    let cas = world.state.catalog_cas();
    assert!(!world.pass(20, cas - 1, &[]), "the router may begin scans on it");
    assert!(world.pass(6, cas, &[]));
}

#[test]
fn a_lease_of_an_epoch_from_before_keeps_it_and_one_from_after_does_not() {
    let mut world = World::new();
    let cas = world.state.catalog_cas();
    world.publish(1);
    assert!(!world.pass(1, cas, &[2]), "noted: epoch 2 is the newest");
    world.publish(2);
    assert!(!world.pass(30, cas, &[3, 2]), "a scan reads epoch 2");
    assert!(!world.pass(30, cas, &[1]), "a transaction reads epoch 1");
    assert!(world.pass(6, cas, &[3]), "epoch 3 came after the router knew of the next generation");
}

#[test]
fn the_moment_of_a_transaction_keeps_it() {
    let mut world = World::new();
    let cas = world.state.catalog_cas();
    world.publish(1);
    let before = Moment { at: 0, of: Some((BUCKET, Epoch(2))) };
    assert!(!world.pass(1, cas, &[]), "noted: epoch 2 is the newest");
    world.publish(2);
    let after = Moment { at: 0, of: Some((BUCKET, Epoch(3))) };
    let says = |moment| {
        move |_| Some(Heartbeat { catalog_cas: cas, moments: vec![moment], ..heartbeat(ROUTER) })
    };
    assert!(!world.pass_with(30, says(before)));
    assert!(world.pass_with(6, says(after)));
}

#[test]
fn a_silent_router_is_not_waited_for_and_no_lease_keeps_a_generation_for_ever() {
    let mut world = World::new();
    assert!(world.pass_with(20, |_| None), "it has no lease any more");
    let mut world = World::new();
    let cas = world.state.catalog_cas();
    let most = (LEASE_AGE_MS_MAX + LEASE_MS) / 1_000 + 2;
    assert!(world.pass(most, cas, &[1]));
}

#[test]
fn a_new_leader_waits_for_the_leases() {
    let mut world = World::new();
    let cas = world.state.catalog_cas();
    world.heartbeats = Heartbeats::new(world.now_ms);
    assert!(!world.pass(9, cas, &[]));
    assert!(world.pass(3, cas, &[]));
}
