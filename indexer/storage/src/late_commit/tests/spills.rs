//! Tests of spilled changes: long transactions across flushes and merges, rollbacks to savepoints,
//! restarts.

use std::path::Path;
use std::sync::Arc;

use proto::ErrorCode;
use proto::env::sim;
use proto::model::ids::{Epoch, NodeId, SliceNo};
use proto::rpc::scan::KeyRange;

use super::checking::*;
use super::testing::*;
use super::world::*;
use crate::engine::storage_engine::StorageEngine;
use crate::options::StoreOptions;
use crate::slice_store::SliceStore;

/// Long transactions run together with many other changes, which force flushes. Their keys are
/// spread over runs, memtables, spilled pieces and fragments.
#[tokio::test]
async fn long_transactions_live_across_ingests_until_one_commits_and_one_aborts() {
    for seed in seeds(8) {
        let dice = &mut Dice(seed);
        let (env, _, _) = sim::world(seed);
        let mut world = World::filled(&env, options(128 << 10, 64 << 20), dice).await;
        for round in 0..12 {
            world.write_some(1, 60, dice);
            world.write_some(2, 60, dice);
            let changes = (0..15).map(|_| (id(dice.roll(DOCUMENTS)), dice.state())).collect();
            world.epoch(changes).await;
            match round % 4 {
                0 | 2 => world.store.flush().await.unwrap(),
                3 => world.store.compact().await.unwrap(),
                _ => {}
            }
            world.hold(dice);
            world.check(dice);
        }
        let late = Arc::clone(world.late());
        assert!(late.pieces_written() >= 8 && late.disk_bytes() > 0, "{}", late.pieces_written());
        assert!(late.bytes() <= 128 << 10 && late.given_up() == 0);
        // The changes of the commit come again, with an epoch. The other transaction still has its own.
        let left = world.end(1);
        world.epoch(left).await;
        world.hold(dice);
        world.check(dice);
        world.store.flush().await.unwrap();
        world.end(2);
        world.store.compact().await.unwrap();
        world.check(dice);
        assert!(late.disk_bytes() > 0, "the open views still read their files");
        world.held.clear();
        assert_drained(&world.store);
        world.check(dice);
    }
}

#[tokio::test]
async fn others_see_the_newer_value_of_a_key_that_waits_and_the_transaction_its_own() {
    let dice = &mut Dice(3);
    let (env, _, _) = sim::world(3);
    let mut world = World::filled(&env, options(32 << 10, 64 << 20), dice).await;
    let (mine, newer) = (State::from([((1, 1), 1)]), State::from([((1, 1), 2), ((3, 0), 1)]));
    let filling = (1..50).map(|n| (n, State::from([((2, 2), 0)])));
    world.write(1, [(0, mine)].into_iter().chain(filling).collect());
    assert!(world.late().disk_bytes() > 0 && world.late().bytes() < 8 << 10, "all is on disk");
    world.epoch(Documents::from([(id(0), newer)])).await;
    world.store.flush().await.unwrap();
    for index in [BY_ID, BY_EXPR] {
        for epoch in 1..=3 {
            // Before and after the changed document, and everything.
            for place in [1, 50] {
                let view = world.view(index, epoch, 1, place);
                (0..40).for_each(|seed| check(&view, &mut Dice(seed)));
                world.held.push(view);
            }
        }
    }
    world.check(dice);
    let left = world.end(1);
    world.epoch(left).await;
    world.store.compact().await.unwrap();
    (0..20).for_each(|seed| world.check(&mut Dice(seed)));
    world.held.clear();
    assert_drained(&world.store);
}

#[tokio::test]
async fn a_savepoint_cuts_pieces_and_writes_nothing() {
    for seed in seeds(8) {
        let dice = &mut Dice(seed);
        let (env, _, fs) = sim::world(seed);
        let mut world = World::filled(&env, options(32 << 10, 64 << 20), dice).await;
        // Some documents are changed repeatedly: the newest state of each is later than most places, in the same piece or a later one.
        for _ in 0..6 {
            world.write(1, (0..40).map(|n| (n % 20, dice.state())).collect());
            world.hold(dice);
        }
        let late = Arc::clone(world.late());
        assert!(late.disk_bytes() > 0 && late.pieces_written() > 4);
        for to in [230, 205, 121, 43, 21, 20, 1] {
            let (written, pieces) = (fs.written_bytes(), late.pieces_written());
            world.back_to(1, to);
            assert_eq!((fs.written_bytes(), late.pieces_written()), (written, pieces));
            world.hold(dice);
            let gone = world.snapshot(BY_ID, 1, 1, to + 1).err().map(|error| error.code);
            assert_eq!(gone, Some(ErrorCode::SnapshotTooOld));
            for place in [to, 1 + dice.roll(to)] {
                check(&world.view(BY_EXPR, 2, 1, place), dice);
                check(&world.view(BY_ID, 2, 1, place), dice);
            }
            world.check(dice);
            if to == 121 {
                // Places are never given twice.
                world.open.get_mut(&1).unwrap().push((240, id(59), State::new()));
                let one = body([(240 - to, id(59).as_str(), &State::new())]);
                late.add_changes(BUCKET, &bodies(1, to, 240, one)).unwrap();
                world.hold(dice);
                world.check(dice);
                world.back_to(1, to);
            }
        }
        world.held.clear();
        let (disk, files) = (late.disk_bytes(), unnamed_files(&world.store).len());
        assert!(files <= 4, "the pieces behind the savepoint are gone, of {files} files");
        world.back_to(1, 0);
        assert!(disk > 0 && late.disk_bytes() == 0, "nothing is left of it");
        world.end(1);
        assert_drained(&world.store);
    }
}

#[tokio::test]
async fn abandoned_transactions_leave_no_file() {
    let dice = &mut Dice(5);
    let (env, _, fs) = sim::world(5);
    let mut world = World::filled(&env, options(32 << 10, 64 << 20), dice).await;
    let late = Arc::clone(world.late());
    let forget = || late.drop_transactions(BUCKET);
    let drop_bucket = || late.drop_bucket(BUCKET);
    let leave =
        || [BY_ID, BY_EXPR].iter().for_each(|index| late.stop_carrying_index(BUCKET, *index));
    let join_more = || {
        late.carry_index(&info(BY_ID), [SliceNo(0)].into());
        late.carry_index(&info(BY_ID), [SliceNo(0), SliceNo(1)].into());
    };
    let begin_anew = || late.add_changes(BUCKET, &bodies(1, 0, 1, body([]))).unwrap();
    let abandon: [&dyn Fn(); 5] = [&forget, &drop_bucket, &leave, &join_more, &begin_anew];
    for abandon in abandon {
        join(&world.store);
        world.open.clear();
        (0..3).for_each(|_| world.write_some(1, 60, dice));
        world.hold(dice);
        assert!(late.disk_bytes() > 0 && !unnamed_files(&world.store).is_empty());
        abandon();
        world.check(dice);
        world.held.clear();
        assert_eq!((late.disk_bytes(), unnamed_files(&world.store).len()), (0, 0));
    }
    // The next start deletes the files that a crash leaves.
    join(&world.store);
    world.open.clear();
    (0..3).for_each(|_| world.write_some(1, 60, dice));
    assert!(late.disk_bytes() > 0);
    fs.crash();
    drop((world.store, late));
    fs.restart();
    let node = NodeId(7);
    let again = StorageEngine::open(&env, node, Path::new("/node"), StoreOptions::default());
    assert_drained(&again.unwrap());
}

/// A read that must not wait fails at a block that is on disk only, and is restarted.
#[tokio::test]
async fn a_read_that_must_not_wait_does_not_read_pieces_from_disk() {
    let dice = &mut Dice(13);
    let (env, _, _) = sim::world(13);
    let mut world = World::filled(&env, options(32 << 10, 64 << 20), dice).await;
    (0..3).for_each(|_| world.write_some(1, 60, dice));
    let view = world.view(BY_ID, 2, 1, 180);
    let slices: Vec<SliceNo> = (0..SLICES).map(SliceNo).collect();
    let quick = view.snapshot.without_waiting();
    let first = quick.rows(&slices, &KeyRange::all(), false, true);
    let first = first.and_then(|mut rows| rows.count(u64::MAX));
    assert_eq!(first.err().map(|error| error.code), Some(ErrorCode::NotInMemory));
    let others = world.store.snapshot(BY_ID, Epoch(2)).unwrap();
    assert!(view.snapshot.walk_bytes(&slices, false) > others.walk_bytes(&slices, false));
    check(&view, dice);
}
