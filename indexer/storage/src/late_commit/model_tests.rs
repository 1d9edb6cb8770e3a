//! The store and its own views against a naive model: documents by id, and a list of changes for each transaction.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use proptest::prelude::*;
use proto::ErrorCode;
use proto::env::sim;
use proto::model::ids::{Epoch, LocalIndexId, SliceNo, TransactionId, TransactionPlace};
use proto::rpc::rows::RowBlockBuilder;
use proto::rpc::scan::KeyRange;

use super::testing::*;
use crate::engine::storage_engine::StorageEngine;
use crate::options::StoreOptions;
use crate::read::rows::{Bounds, Rows};
use crate::read::snapshot::Snapshot;
use crate::rows::columns::Grouping;
use crate::slice_store::SliceStore;

type Documents = BTreeMap<String, State>;
type Row = (Vec<u8>, Vec<u8>);

/// A stream of small numbers from one large one.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }

    fn id(&mut self) -> String {
        // Ids of which one begins another.
        "d".repeat(1 + self.roll(9) as usize)
    }

    fn state(&mut self) -> State {
        let entries = self.roll(4);
        (0..entries)
            .map(|_| ((self.roll(4) as u8, self.roll(3) as u8), self.roll(2) as u8))
            .collect()
    }

    fn slices(&mut self) -> Vec<SliceNo> {
        let chosen = 1 + self.roll(7);
        (0..SLICES).filter(|slice| chosen >> slice & 1 == 1).map(SliceNo).collect()
    }

    fn range(&mut self) -> KeyRange {
        let mut bound = |open: u64| {
            (self.roll(open) > 0)
                .then(|| Bytes::from(entry_key(self.roll(4) as u8, self.roll(3) as u8)))
        };
        let (low, high) = (bound(2).unwrap_or_default(), bound(2));
        let high = high.filter(|high| *high > low);
        KeyRange { low, high }
    }
}

#[derive(Default)]
struct Changes {
    place: u64,
    /// The greatest place that was ever given.
    newest: u64,
    all: Vec<(u64, String, State)>,
}

/// The rows that a snapshot must show, whenever it is read.
struct Held {
    snapshot: Arc<dyn Snapshot>,
    index: LocalIndexId,
    expected: Documents,
}

struct Model {
    store: StorageEngine,
    /// Documents by epoch; the first one is epoch 1.
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

    /// One message or several. Places between two changes may be missing.
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
        self.store.late_commit().bodies(BUCKET, &bodies(transaction, from, to, packed)).unwrap();
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
        self.store.late_commit().back_to(BUCKET, id, to).unwrap();
    }

    fn end(&mut self, transaction: u64) {
        if self.transactions.remove(&transaction).is_some() {
            self.store.late_commit().end(BUCKET, &[TransactionId(transaction)]);
            let error = self.snapshot(BY_ID, 1, transaction, 1).err().unwrap();
            assert_eq!(error.code, ErrorCode::SnapshotTooOld);
        }
    }

    /// A stream begins, and brings each transaction in one message.
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
        self.store.snapshot_with_own(index, Epoch(epoch), Some(own(transaction, place)))
    }

    /// A view of some index, epoch and place, and what it must show.
    fn view(&self, transaction: u64, dice: &mut Dice) -> Held {
        let index = [BY_ID, BY_EXPR][dice.roll(2) as usize];
        let epoch = 1 + dice.roll(self.epochs.len() as u64);
        let mut expected = self.epochs[epoch as usize - 1].clone();
        let changes = self.transactions.get(&transaction);
        let all = changes.map_or(&[][..], |changes| &changes.all);
        let most = all.last().map_or(0, |change| change.0);
        // Any place up to a change that is there; the newest one most often.
        let place = if dice.roll(2) == 0 { most } else { dice.roll(most + 1) };
        let at = all.iter().map(|change| change.0).filter(|at| *at <= place).max().unwrap_or(0);
        for (_, id, state) in all.iter().filter(|change| change.0 <= at) {
            expected.insert(id.clone(), state.clone());
        }
        let snapshot = self.snapshot(index, epoch, transaction, at).unwrap();
        Held { snapshot, index, expected }
    }

    fn hold(&mut self, transaction: u64, dice: &mut Dice) {
        let view = self.view(transaction, dice);
        self.held.push(view);
    }

    fn look(&self, transaction: u64, dice: &mut Dice) {
        check(&self.view(transaction, dice), dice);
        if let Some(held) = self.held.get(dice.roll(4) as usize) {
            check(held, dice);
        }
    }
}

/// Reads a view in several ways.
fn check(view: &Held, dice: &mut Dice) {
    let (slices, range) = (dice.slices(), dice.range());
    let (reverse, include) = (dice.roll(2) == 0, dice.roll(2) == 0);
    let mut expected: Vec<Row> = Vec::new();
    for (id, state) in &view.expected {
        let rows = rows_of(view.index, id, state).into_iter();
        let wanted =
            rows.filter(|(slice, entry, _)| slices.contains(slice) && range.contains(entry));
        expected.extend(wanted.map(|row| (row.1, if include { row.2 } else { Vec::new() })));
    }
    expected.sort();
    if reverse {
        expected.reverse();
    }
    let snapshot = &view.snapshot;
    let found = parked(&**snapshot, &slices, &range, reverse, include, dice);
    assert_eq!(found, expected, "in pieces, {slices:?} {range:?} reverse {reverse}");
    for snapshot in [Arc::clone(snapshot), snapshot.without_waiting()] {
        let found = snapshot.rows(&slices, &range, reverse, include).and_then(all);
        let is_absent = |error: &proto::Error| error.code == ErrorCode::NotInMemory;
        if !found.as_ref().is_err_and(is_absent) {
            assert_eq!(found.unwrap(), expected, "row by row");
        }
    }
    let mut rows = snapshot.rows(&slices, &range, reverse, false).unwrap();
    let mut counted = 0;
    loop {
        let walked = rows.count(1 + dice.roll(9)).unwrap();
        counted += walked.rows;
        if walked.is_end {
            break;
        }
    }
    assert_eq!(counted, expected.len() as u64, "counted");
}

/// The rows of a walk, one by one.
fn all(mut rows: Box<dyn Rows>) -> proto::Result<Vec<Row>> {
    let mut found = Vec::new();
    while rows.next()? {
        found.push((rows.entry().to_vec(), rows.include().to_vec()));
    }
    assert!(!rows.put_ahead(&mut Vec::new()), "nothing is behind the last");
    Ok(found)
}

/// Packs the rows of a walk that is parked, or goes on, after each piece.
fn parked(
    snapshot: &dyn Snapshot,
    slices: &[SliceNo],
    range: &KeyRange,
    reverse: bool,
    include: bool,
    dice: &mut Dice,
) -> Vec<Row> {
    let (mut found, mut range) = (Vec::<Row>::new(), range.clone());
    let mut rows = snapshot.rows(slices, &range, reverse, include).unwrap();
    loop {
        let mut block = RowBlockBuilder::with_capacity(64);
        let looks = 2 * slices.len() as u64 + 1 + dice.roll(5);
        let bounds = Bounds { bytes: 1 << 20, rows: 1 + dice.roll(6), looks };
        let walked = rows.pack(&mut block, bounds).unwrap();
        let block = block.finish();
        let packed = block.iter().map(|row| (row.entry.to_vec(), row.include.to_vec()));
        found.extend(packed);
        let mut next = Vec::new();
        assert!(!walked.is_end || !rows.put_ahead(&mut Vec::new()));
        if walked.is_end || !rows.put_ahead(&mut next) {
            return found;
        }
        if dice.roll(2) == 0 {
            continue;
        }
        // As a parked scan does: it begins again with the next entry, unless it has shown it.
        let is_shown = found.last().is_some_and(|last| last.0 == next);
        match (reverse, is_shown) {
            (true, true) => range.high = Some(next.into()),
            (true, false) => range.high = Some([&next[..], &[0]].concat().into()),
            (false, true) => range.low = [&next[..], &[0]].concat().into(),
            (false, false) => range.low = next.into(),
        }
        rows = snapshot.rows(slices, &range, reverse, include).unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]
    #[test]
    fn own_views_show_what_the_model_says(
        steps in proptest::collection::vec((any::<u8>(), any::<u64>()), 1..60),
        apart: bool,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (env, _, _) = sim::world(3);
            let grouping = if apart { Grouping::Apart } else { Grouping::Together };
            let store = built(&env, StoreOptions::default(), grouping).await;
            let (epochs, transactions) = (vec![Documents::new()], BTreeMap::new());
            let mut model = Model { store, epochs, transactions, held: Vec::new() };
            for (kind, seed) in steps {
                model.step(kind, &mut Dice(seed)).await;
            }
            // Views that were taken before a rollback, an end or a new stream show what they showed.
            for held in &model.held {
                check(held, &mut Dice(held.expected.len() as u64));
            }
            model.held.clear();
            let open: Vec<u64> = model.transactions.keys().copied().collect();
            open.into_iter().for_each(|transaction| model.end(transaction));
            assert_eq!(model.store.late_commit().bytes(), 0, "everything is freed");
        });
    }
}
