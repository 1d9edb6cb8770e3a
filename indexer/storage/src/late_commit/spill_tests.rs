//! Spilled changes: the cases of the seed (long transactions across ingests), rollbacks to savepoints, failing disks, restarts.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proto::ErrorCode;
use proto::env::sim::{self, InlineSpawner};
use proto::env::{BoxFuture, Env, Spawner, Task};
use proto::lock::lock;
use proto::model::ids::{Epoch, LocalIndexId, SliceNo, TransactionId, TransactionPlace};
use proto::rpc::scan::KeyRange;

use super::checking::*;
use super::testing::*;
use crate::engine::storage_engine::StorageEngine;
use crate::late_commit::store::LateCommitStore;
use crate::options::StoreOptions;
use crate::read::snapshot::Snapshot;
use crate::rows::columns::Grouping;
use crate::slice_store::SliceStore;

/// Documents of the bucket.
const DOCUMENTS: u64 = 60;

fn id(document: u64) -> String {
    format!("document {document:03} {}", "x".repeat(30))
}

fn options(memory: u64, disk: u64) -> StoreOptions {
    StoreOptions {
        open_transactions_bytes_max: Some(memory),
        open_transactions_disk_bytes_max: Some(disk),
        ..StoreOptions::default()
    }
}

/// The seeds of a test: `SEED=n` runs one alone.
fn seeds(count: u64) -> std::ops::Range<u64> {
    match std::env::var("SEED").ok().map(|text| text.parse().expect("a number")) {
        Some(seed) => seed..seed + 1,
        None => 0..count,
    }
}

/// A store with both indexes, what it must show, and open views.
struct World {
    store: StorageEngine,
    /// Documents by epoch; the first one is epoch 1, without documents.
    epochs: Vec<Documents>,
    /// The changes of each open transaction, with their places.
    open: BTreeMap<u64, Vec<(u64, String, State)>>,
    held: Vec<Held>,
}

impl World {
    async fn new(env: &Env, options: StoreOptions) -> Self {
        let store = built(env, options, Grouping::Together).await;
        Self { store, epochs: vec![Documents::new()], open: BTreeMap::new(), held: Vec::new() }
    }

    /// A world whose documents are in fragments.
    async fn filled(env: &Env, options: StoreOptions, dice: &mut Dice) -> Self {
        let mut world = Self::new(env, options).await;
        let all = (0..DOCUMENTS).map(|document| (id(document), dice.state())).collect();
        world.epoch(all).await;
        world.store.flush().await.unwrap();
        world
    }

    fn late(&self) -> &Arc<LateCommitStore> {
        self.store.late_commit()
    }

    async fn epoch(&mut self, changes: Documents) {
        let mut next = self.epochs.last().unwrap().clone();
        let packed = body((1..).zip(&changes).map(|(n, (id, state))| (n, id.as_str(), state)));
        next.extend(changes);
        self.epochs.push(next);
        self.store.apply(epoch(self.epochs.len() as u64, packed)).await.unwrap();
    }

    /// One message with changes of a transaction, each of some document.
    fn write(&mut self, transaction: u64, changes: Vec<(u64, State)>) {
        let all = self.open.entry(transaction).or_default();
        let from = all.last().map_or(0, |change| change.0);
        let message: Vec<_> =
            (from + 1..).zip(changes).map(|(at, (n, state))| (at, id(n), state)).collect();
        let to = from + message.len() as u64;
        let packed = body(message.iter().map(|(at, id, state)| (at - from, id.as_str(), state)));
        all.extend(message);
        self.late().bodies(BUCKET, &bodies(transaction, from, to, packed)).unwrap();
    }

    fn write_some(&mut self, transaction: u64, count: u64, dice: &mut Dice) {
        let changes = (0..count).map(|_| (dice.roll(DOCUMENTS), dice.state())).collect();
        self.write(transaction, changes);
    }

    fn back_to(&mut self, transaction: u64, to: u64) {
        self.open.get_mut(&transaction).unwrap().retain(|change| change.0 <= to);
        let (id, to) = (TransactionId(transaction), TransactionPlace(to));
        self.late().back_to(BUCKET, id, to).unwrap();
    }

    /// Ends a transaction; returns what it leaves of each document.
    fn end(&mut self, transaction: u64) -> Documents {
        self.late().end(BUCKET, &[TransactionId(transaction)]);
        let changes = self.open.remove(&transaction).unwrap();
        changes.into_iter().map(|(_, id, state)| (id, state)).collect()
    }

    fn snapshot(
        &self,
        index: LocalIndexId,
        epoch: u64,
        transaction: u64,
        place: u64,
    ) -> proto::Result<Arc<dyn Snapshot>> {
        self.store.snapshot_with_own(index, Epoch(epoch), Some(own(transaction, place)))
    }

    /// The view of a transaction at a place.
    fn view(&self, index: LocalIndexId, epoch: u64, transaction: u64, place: u64) -> Held {
        let mut expected = self.epochs[epoch as usize - 1].clone();
        for (_, id, state) in self.open[&transaction].iter().filter(|change| change.0 <= place) {
            expected.insert(id.clone(), state.clone());
        }
        let snapshot = self.snapshot(index, epoch, transaction, place).unwrap();
        Held { snapshot, index, expected }
    }

    /// Takes a view of each transaction, at any epoch and place.
    fn hold(&mut self, dice: &mut Dice) {
        for (transaction, changes) in &self.open {
            let all = changes.len() as u64;
            let at = if dice.roll(2) == 0 { all - 1 } else { dice.roll(all) };
            let place = changes[at as usize].0;
            let epoch = 1 + dice.roll(self.epochs.len() as u64);
            let index = [BY_ID, BY_EXPR][dice.roll(2) as usize];
            let view = self.view(index, epoch, *transaction, place);
            self.held.push(view);
        }
    }

    /// Reads all open views, and each epoch as others see it.
    fn check(&self, dice: &mut Dice) {
        self.held.iter().for_each(|held| check(held, dice));
        for (epoch, documents) in (1..).zip(&self.epochs) {
            for index in [BY_ID, BY_EXPR] {
                let snapshot = self.store.snapshot(index, Epoch(epoch)).unwrap();
                check(&Held { snapshot, index, expected: documents.clone() }, dice);
            }
        }
    }
}

/// The seed's workload: long transactions, and a high rate of other changes that force ingests. Their keys are spread over run, memory,
/// spilled pieces and fragments.
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
        // The same documents again and again: the newest state of each lies behind most places, in the same piece or a later one.
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
                late.bodies(BUCKET, &bodies(1, to, 240, one)).unwrap();
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
    let forget = || late.forget(BUCKET);
    let drop_bucket = || late.drop_bucket(BUCKET);
    let leave = || [BY_ID, BY_EXPR].iter().for_each(|index| late.leave(BUCKET, *index));
    let join_more = || {
        late.join(&info(BY_ID), [SliceNo(0)].into());
        late.join(&info(BY_ID), [SliceNo(0), SliceNo(1)].into());
    };
    let begin_anew = || late.bodies(BUCKET, &bodies(1, 0, 1, body([]))).unwrap();
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
    // What a crash leaves, the next start deletes.
    join(&world.store);
    world.open.clear();
    (0..3).for_each(|_| world.write_some(1, 60, dice));
    assert!(late.disk_bytes() > 0);
    fs.crash();
    drop((world.store, late));
    fs.restart();
    let node = proto::model::ids::NodeId(7);
    let again = StorageEngine::open(&env, node, Path::new("/node"), StoreOptions::default());
    assert_drained(&again.unwrap());
}

/// Lets each file operation fail in turn while a transaction spills, reads what it has spilled, and goes on.
#[tokio::test]
async fn a_failing_disk_costs_the_transaction_and_nothing_else() {
    let mut given_up = 0;
    for operation in 1.. {
        let dice = &mut Dice(7);
        let (env, _, fs) = sim::world(7);
        let mut world = World::filled(&env, options(32 << 10, 64 << 20), dice).await;
        world.write(2, vec![(1, dice.state()), (2, dice.state())]);
        world.write_some(1, 50, dice);
        let before = fs.struck();
        fs.fail_at(fs.operations() + operation);
        (0..2).for_each(|_| world.write_some(1, 50, dice));
        world.back_to(1, 120);
        let has_struck = fs.struck() != before;
        fs.forget_faults();
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
        // Now the small ones write, so that they are the ones that exceed the limit now and then.
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
    world.store.late_commit().end(BUCKET, &[1, 2, 3].map(TransactionId));
    assert_drained(&world.store);
}

/// A spawner that holds blocking work back.
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
        tokio::time::timeout(Duration::from_millis(50), late.room(bytes)).await.is_ok()
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
    late.spiller.room(limit - late.bytes() + 1, Duration::from_millis(50)).await;
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

/// Whoever reads without waiting meets a block on disk, and begins again.
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
