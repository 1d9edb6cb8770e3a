//! Limits of spilled changes: failing and full disks, the limit of the disk, waits for a spill.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use proto::ErrorCode;
use proto::env::sim::{self, InlineSpawner};
use proto::env::{BoxFuture, Env, Spawner, Task};
use proto::lock::lock;
use proto::model::ids::TransactionId;

use super::checking::*;
use super::testing::*;
use super::world::*;
use crate::slice_store::SliceStore;

/// Each file operation fails in turn while a transaction spills, reads its spilled data, and
/// continues.
#[tokio::test]
async fn a_failing_disk_costs_the_transaction_and_nothing_else() {
    let mut given_up = 0;
    for operation in 1.. {
        let dice = &mut Dice(7);
        let (env, _, fs) = sim::world(7);
        let mut world = World::filled(&env, options(32 << 10, 64 << 20), dice).await;
        world.write(2, vec![(1, dice.state()), (2, dice.state())]);
        world.write_some(1, 50, dice);
        let before = fs.occurred_faults();
        fs.fail_at(fs.operations() + operation);
        (0..2).for_each(|_| world.write_some(1, 50, dice));
        world.back_to(1, 120);
        let has_struck = fs.occurred_faults() != before;
        fs.disarm_faults();
        match world.snapshot(BY_ID, 2, 1, 120) {
            Ok(_) => check(&world.view(BY_ID, 2, 1, 120), dice),
            Err(error) => {
                assert_eq!(error.code, ErrorCode::OverLimit, "{error}");
                assert!(error.message.contains("to its disk"), "{error}");
                assert!(error.hint.as_ref().is_some_and(|hint| hint.contains("log")), "{error:?}");
                assert_eq!(world.late().given_up(), 1);
                given_up += 1;
            }
        }
        world.write_some(1, 5, dice);
        check(&world.view(BY_EXPR, 2, 2, 2), dice);
        let left = world.end(1);
        world.epoch(left).await;
        world.store.flush().await.unwrap();
        world.end(2);
        world.check(dice);
        assert_drained(&world.store);
        if !has_struck {
            break;
        }
    }
    assert!(given_up > 4, "{given_up} operations have failed");
}

#[tokio::test]
async fn a_full_disk_costs_the_transaction_and_nothing_else() {
    let dice = &mut Dice(7);
    let (env, _, fs) = sim::world(7);
    let mut world = World::filled(&env, options(32 << 10, 64 << 20), dice).await;
    fs.set_capacity(fs.written_bytes());
    (0..3).for_each(|_| world.write_some(1, 50, dice));
    world.write(2, vec![(1, dice.state()), (2, dice.state())]);
    let error = world.snapshot(BY_ID, 2, 1, 150).err().unwrap();
    assert_eq!(error.code, ErrorCode::OverLimit, "{error}");
    check(&world.view(BY_ID, 2, 2, 2), dice);
    fs.set_capacity(u64::MAX);
    world.end(1);
    world.end(2);
    assert_drained(&world.store);
}

#[tokio::test]
async fn above_the_limit_of_the_disk_the_largest_transaction_is_given_up() {
    let dice = &mut Dice(9);
    let (env, _, _) = sim::world(9);
    let limit = 60 << 10;
    let mut world = World::filled(&env, options(32 << 10, limit), dice).await;
    world.write_some(2, 50, dice);
    world.write_some(3, 20, dice);
    let mut place = 0;
    while world.late().given_up() == 0 {
        // Now the small transactions write, so that they exceed the limit at times.
        let (transaction, count) = [(1, 60), (2, 5), (3, 5)][place % 3];
        world.write_some(transaction, count, dice);
        place += 1;
        assert!(place < 100);
    }
    let late = world.late();
    assert!(late.disk_bytes() <= limit);
    let most = |world: &World, transaction: u64| world.open[&transaction].last().unwrap().0;
    let error = world.snapshot(BY_ID, 2, 1, most(&world, 1)).err().unwrap();
    assert_eq!(error.code, ErrorCode::OverLimit, "{error}");
    let hint = error.hint.clone().unwrap_or_default();
    assert!(
        error.message.contains("61440 bytes on disk") && hint.contains("memory_mb"),
        "{error:?}"
    );
    for transaction in [2, 3] {
        check(&world.view(BY_ID, 2, transaction, most(&world, transaction)), dice);
    }
    world.store.late_commit().end_transactions(BUCKET, &[1, 2, 3].map(TransactionId));
    assert_drained(&world.store);
}

/// A spawner that delays blocking work.
#[derive(Default)]
struct Holding {
    is_on: Mutex<bool>,
    works: Mutex<Vec<Box<dyn FnOnce() + Send>>>,
}

impl Holding {
    fn let_go(&self) {
        *lock(&self.is_on) = false;
        let works = std::mem::take(&mut *lock(&self.works));
        works.into_iter().for_each(|work| work());
    }
}

impl Spawner for Holding {
    fn spawn(&self, name: &'static str, future: BoxFuture<()>) -> Task {
        InlineSpawner.spawn(name, future)
    }

    fn spawn_blocking(&self, work: Box<dyn FnOnce() + Send>) {
        match *lock(&self.is_on) {
            true => lock(&self.works).push(work),
            false => work(),
        }
    }
}

#[tokio::test]
async fn a_stream_waits_for_a_spill_at_the_limit_only_and_not_for_ever() {
    let dice = &mut Dice(11);
    let (env, _, _) = sim::world(11);
    let holding = Arc::new(Holding::default());
    let env = Env { spawner: holding.clone(), ..env };
    let limit = 64 << 10;
    let mut world = World::filled(&env, options(limit, 64 << 20), dice).await;
    let late = Arc::clone(world.late());
    *lock(&holding.is_on) = true;
    let has_room = async |bytes| {
        tokio::time::timeout(Duration::from_millis(50), late.wait_for_memory(bytes)).await.is_ok()
    };
    while late.bytes() < limit / 2 {
        assert!(has_room(10 << 10).await, "a spill waits for its thread, and the stream goes on");
        world.write_some(1, 10, dice);
        world.write_some(2, 6, dice);
    }
    assert_eq!(lock(&holding.works).len(), 1, "one spill at a time");
    assert!(!has_room(limit - late.bytes() + 1).await, "at the limit it waits");
    let (waited, ()) = tokio::join!(has_room(limit - 3_000), async {
        tokio::task::yield_now().await;
        holding.let_go();
    });
    assert!(waited && late.disk_bytes() > 0, "the spill has made room");
    assert_eq!(late.given_up(), 0);
    world.hold(dice);
    world.check(dice);
    // A spill that does not end: after a while the largest transaction makes room.
    *lock(&holding.is_on) = true;
    while late.bytes() < limit / 4 * 3 {
        world.write_some(1, 20, dice);
    }
    late.spiller.wait_for_memory(limit - late.bytes() + 1, Duration::from_millis(50)).await;
    let mut given_up = 0;
    while given_up == 0 {
        world.write_some(2, 10, dice);
        given_up = late.given_up();
    }
    let most = world.open[&1].last().unwrap().0;
    let error = world.snapshot(BY_ID, 2, 1, most).err().unwrap();
    assert_eq!(error.code, ErrorCode::OverLimit);
    holding.let_go();
    world.check(dice);
    world.held.clear();
    world.end(1);
    world.end(2);
    assert_drained(&world.store);
}
