//! Tests of the store and its own views against a naive model: documents by id, and a list of
//! changes for each transaction.
//!
//! The transactions are kept in memory, or a tiny limit makes them spill, or a small disk limit
//! also makes the store give up some of them. Spills run inline, or interleaved with all other
//! work. Each run draws fresh seeds; `PROPTEST_RNG_SEED` sets one, and `PROPTEST_CASES` the number
//! of histories.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use proto::ErrorCode;
use proto::env::Env;
use proto::env::sim::{self, Turns};
use proto::model::ids::{Epoch, LocalIndexId, TransactionId, TransactionPlace};

use super::checking::*;
use super::testing::*;
use crate::engine::storage_engine::StorageEngine;
use crate::options::StoreOptions;
use crate::read::snapshot::Snapshot;
use crate::rows::columns::Grouping;
use crate::slice_store::SliceStore;

#[derive(Default)]
struct Changes {
    place: u64,
    /// The greatest place that was assigned so far.
    newest: u64,
    all: Vec<(u64, String, State)>,
}

struct Model {
    store: StorageEngine,
    /// Documents by epoch; the first element is epoch 1.
    epochs: Vec<Documents>,
    transactions: BTreeMap<u64, Changes>,
    held: Vec<Held>,
}

impl Model {
    async fn step(&mut self, kind: u8, dice: &mut Dice) {
        let transaction = 1 + dice.roll(3);
        match kind % 8 {
            0 => self.epoch(dice).await,
            1..=3 => self.write(transaction, dice),
            4 => self.go_back(transaction, dice),
            5 if dice.roll(4) == 0 => self.end(transaction),
            5 if dice.roll(3) == 0 => self.store.flush().await.unwrap(),
            5 if dice.roll(3) == 0 => self.store.compact().await.unwrap(),
            5 => self.begin_stream(),
            _ => self.hold(transaction, dice),
        }
        self.look(transaction, dice);
    }

    async fn epoch(&mut self, dice: &mut Dice) {
        let mut next = self.epochs.last().unwrap().clone();
        let changes: Vec<_> = (0..=dice.roll(5)).map(|_| (dice.id(), dice.state())).collect();
        let packed = body((1..).zip(&changes).map(|(n, (id, state))| (n, id.as_str(), state)));
        next.extend(changes);
        self.epochs.push(next);
        self.store.apply(epoch(self.epochs.len() as u64, packed)).await.unwrap();
    }

    /// Writes changes of a transaction, in one or several messages. Some places between two changes
    /// may be unused.
    fn write(&mut self, transaction: u64, dice: &mut Dice) {
        for _ in 0..=dice.roll(3) {
            let changes = self.transactions.entry(transaction).or_default();
            let from = changes.place;
            let mut message = Vec::new();
            for _ in 0..=dice.roll(4) {
                changes.newest += 1 + dice.roll(2);
                message.push((changes.newest, dice.id(), dice.state()));
            }
            changes.place = changes.newest;
            changes.all.extend(message.iter().cloned());
            self.send(transaction, from, self.transactions[&transaction].place, &message);
        }
    }

    fn send(&self, transaction: u64, from: u64, to: u64, changes: &[(u64, String, State)]) {
        let packed = body(changes.iter().map(|(at, id, state)| (at - from, id.as_str(), state)));
        self.store
            .late_commit()
            .add_changes(BUCKET, &bodies(transaction, from, to, packed))
            .unwrap();
    }

    fn go_back(&mut self, transaction: u64, dice: &mut Dice) {
        let Some(changes) = self.transactions.get_mut(&transaction) else { return };
        let to = dice.roll(changes.place + 1);
        // A savepoint is at the place of a change that is still there.
        let to =
            changes.all.iter().map(|change| change.0).filter(|at| *at <= to).max().unwrap_or(0);
        changes.all.retain(|change| change.0 <= to);
        changes.place = to;
        let (id, to) = (TransactionId(transaction), TransactionPlace(to));
        self.store.late_commit().roll_back(BUCKET, id, to).unwrap();
    }

    fn end(&mut self, transaction: u64) {
        if self.transactions.remove(&transaction).is_some() {
            self.store.late_commit().end_transactions(BUCKET, &[TransactionId(transaction)]);
            let error = self.snapshot(BY_ID, 1, transaction, 1).err().unwrap();
            assert_eq!(error.code, ErrorCode::SnapshotTooOld);
        }
    }

    /// Begins a stream that sends each transaction in one message.
    fn begin_stream(&self) {
        join(&self.store);
        for (transaction, changes) in &self.transactions {
            self.send(*transaction, 0, changes.place, &changes.all);
        }
    }

    fn snapshot(
        &self,
        index: LocalIndexId,
        epoch: u64,
        transaction: u64,
        place: u64,
    ) -> proto::Result<Arc<dyn Snapshot>> {
        self.store.snapshot_of_transaction(index, Epoch(epoch), Some(own(transaction, place)))
    }

    /// Returns a view of some index, epoch and place, with its expected rows. Ends a transaction
    /// that was given up.
    fn view(&mut self, transaction: u64, dice: &mut Dice) -> Option<Held> {
        let index = [BY_ID, BY_EXPR][dice.roll(2) as usize];
        let epoch = 1 + dice.roll(self.epochs.len() as u64);
        let mut expected = self.epochs[epoch as usize - 1].clone();
        let changes = self.transactions.get(&transaction);
        let all = changes.map_or(&[][..], |changes| &changes.all);
        let most = all.last().map_or(0, |change| change.0);
        // Any place up to an existing change; the newest one most often.
        let place = if dice.roll(2) == 0 { most } else { dice.roll(most + 1) };
        let at = all.iter().map(|change| change.0).filter(|at| *at <= place).max().unwrap_or(0);
        for (_, id, state) in all.iter().filter(|change| change.0 <= at) {
            expected.insert(id.clone(), state.clone());
        }
        match self.snapshot(index, epoch, transaction, at) {
            Ok(snapshot) => Some(Held { snapshot, index, expected }),
            Err(error) => {
                assert_eq!(error.code, ErrorCode::OverLimit, "{error}");
                assert!(self.store.late_commit().given_up() > 0);
                self.end(transaction);
                None
            }
        }
    }

    fn hold(&mut self, transaction: u64, dice: &mut Dice) {
        let view = self.view(transaction, dice);
        self.held.extend(view);
    }

    fn look(&mut self, transaction: u64, dice: &mut Dice) {
        self.view(transaction, dice).inspect(|view| check(view, dice));
        if let Some(held) = self.held.get(dice.roll(4) as usize) {
            check(held, dice);
        }
    }

    /// Closes all views, ends all transactions, and waits until spills and deletions have ended too.
    async fn finish(mut self, turns: Option<&Turns>) {
        // Views that were taken before a rollback, an end or a new stream show what they showed.
        for held in &self.held {
            check(held, &mut Dice(held.expected.len() as u64));
        }
        self.held.clear();
        let open: Vec<u64> = self.transactions.keys().copied().collect();
        open.into_iter().for_each(|transaction| self.end(transaction));
        while turns.is_some_and(Turns::is_busy) {
            tokio::task::yield_now().await;
        }
        turns.inspect(|turns| turns.resume_panic());
        assert_drained(&self.store);
    }
}

/// The limits of memory and disk for the transactions of a history.
#[derive(Clone, Copy, Debug)]
enum Room {
    Memory,
    LittleMemory,
    LittleMemoryAndDisk,
}

fn options(room: Room) -> StoreOptions {
    let (memory, disk) = match room {
        Room::Memory => (None, Some(0)),
        Room::LittleMemory => (Some(40 << 10), Some(64 << 20)),
        Room::LittleMemoryAndDisk => (Some(24 << 10), Some(24 << 10)),
    };
    StoreOptions {
        open_transactions_bytes_max: memory,
        open_transactions_disk_bytes_max: disk,
        ..StoreOptions::default()
    }
}

async fn run(
    env: Env,
    grouping: Grouping,
    room: Room,
    turns: Option<Turns>,
    steps: Vec<(u8, u64)>,
) {
    let store = built(&env, options(room), grouping).await;
    let late = Arc::clone(store.late_commit());
    let (epochs, transactions) = (vec![Documents::new()], BTreeMap::new());
    let mut model = Model { store, epochs, transactions, held: Vec::new() };
    for (kind, seed) in steps {
        model.step(kind, &mut Dice(seed)).await;
    }
    model.finish(turns.as_ref()).await;
    let is_spilled = late.pieces_written() > 0;
    assert!(!is_spilled || !matches!(room, Room::Memory));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(192), ..ProptestConfig::default() })]
    #[test]
    fn own_views_show_what_the_model_says(
        steps in proptest::collection::vec((any::<u8>(), any::<u64>()), 1..60),
        apart: bool,
        room in prop_oneof![Just(Room::Memory), Just(Room::LittleMemory), Just(Room::LittleMemoryAndDisk)],
        turns in proptest::option::of(any::<u64>()),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (env, _, _) = sim::world(3);
            let turns = turns.map(Turns::new);
            let spawner = turns.as_ref().map_or(Arc::clone(&env.spawner), Turns::spawner);
            let grouping = if apart { Grouping::Apart } else { Grouping::Together };
            run(Env { spawner, ..env }, grouping, room, turns, steps).await;
        });
    }
}
