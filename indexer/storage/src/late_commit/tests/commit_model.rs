//! Commits by markers, compared with a model that applies their changes like other mutations:
//! random histories of epochs with and without commits, transactions that spill and roll back,
//! documents that an epoch changes in both ways, flushes, compactions, open scans, failing disks,
//! and crashes at any operation. `PROPTEST_CASES` sets the number of histories.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;
use proto::ErrorCode;
use proto::env::Env;
use proto::env::sim::{self, SimFs};
use proto::model::ids::{
    Epoch, NodeId, Seqno, SliceNo, TransactionId, TransactionPlace, VbucketId,
};
use proto::rpc::mutation::{ChangesDigest, CommitMarker, CommitRange};

use super::checking::*;
use super::testing::*;
use crate::batch::EpochBatch;
use crate::engine::storage_engine::StorageEngine;
use crate::late_commit::commits::prepare::prepare;
use crate::options::StoreOptions;
use crate::rows::columns::Grouping;
use crate::slice_store::SliceStore;

type Changes = Vec<(String, State)>;

#[derive(Default)]
struct Open {
    place: u64,
    /// The greatest place that was assigned so far.
    newest: u64,
    digest: ChangesDigest,
    /// The changes that were not rolled back, with their places.
    all: Vec<(u64, String, State)>,
}

struct Model {
    env: Env,
    fs: SimFs,
    options: StoreOptions,
    store: Option<StorageEngine>,
    /// Documents by epoch; the first element is epoch 1.
    epochs: Vec<Documents>,
    /// The changes of each epoch in their order, from the second epoch on.
    changes: Vec<Changes>,
    open: BTreeMap<u64, Open>,
    held: Vec<Held>,
    /// True if a write of a file has failed since the start: files that a manifest on disk may name
    /// then remain until the next start.
    has_failed: bool,
}

/// One layer of an epoch: mutations, or a commit.
enum Layer {
    Plain(Changes),
    Commit(u64, Open),
}

impl Model {
    fn store(&self) -> &StorageEngine {
        self.store.as_ref().expect("a store")
    }

    async fn step(&mut self, kind: u8, dice: &mut Dice) {
        let transaction = 1 + dice.roll(3);
        match kind % 9 {
            8 => self.prepare(transaction),
            0 => {
                let changes = plain(dice);
                self.note(changes.clone());
                self.apply_again(self.epochs.len() as u64).await;
            }
            1..=2 => self.write(transaction, dice),
            3 => self.go_back(transaction, dice),
            4 if dice.roll(2) == 0 => self.store().flush().await.unwrap(),
            4 if dice.roll(2) == 0 => self.store().compact().await.unwrap(),
            4 => self.hold(dice),
            _ => self.commit(dice).await,
        }
        self.look(dice);
    }

    /// Adds an epoch with these changes to the model.
    fn note(&mut self, changes: Changes) {
        let mut next = self.epochs.last().unwrap().clone();
        next.extend(changes.iter().cloned());
        self.epochs.push(next);
        self.changes.push(changes);
    }

    /// Applies an epoch as mutations.
    async fn apply_again(&self, n: u64) {
        let changes = &self.changes[n as usize - 2];
        let packed = body((1..).zip(changes).map(|(at, (id, state))| (at, id.as_str(), state)));
        self.store().apply(epoch(n, packed)).await.unwrap();
    }

    fn write(&mut self, transaction: u64, dice: &mut Dice) {
        for _ in 0..=dice.roll(3) {
            let open = self.open.entry(transaction).or_default();
            let from = open.place;
            for _ in 0..=dice.roll(4) {
                open.newest += 1 + dice.roll(2);
                open.all.push((open.newest, dice.id(), dice.state()));
            }
            open.place = open.newest;
            self.send(transaction, from);
        }
    }

    /// Sends the changes of a transaction after the place `from`.
    fn send(&mut self, transaction: u64, from: u64) {
        let open = self.open.get_mut(&transaction).unwrap();
        let new = open.all.iter().filter(|change| change.0 > from);
        let packed = body(new.map(|(at, id, state)| (at - from, id.as_str(), state)));
        let message = bodies(transaction, from, open.place, packed);
        open.digest = open.digest.with_changes(&message);
        self.store().late_commit().add_changes(BUCKET, &message).unwrap();
    }

    fn go_back(&mut self, transaction: u64, dice: &mut Dice) {
        let Some(open) = self.open.get_mut(&transaction) else { return };
        let to = dice.roll(open.place + 1);
        let to = open.all.iter().map(|change| change.0).filter(|at| *at <= to).max().unwrap_or(0);
        open.all.retain(|change| change.0 <= to);
        open.place = to;
        open.digest = open.digest.with_rollback(TransactionPlace(to));
        let (id, to) = (TransactionId(transaction), TransactionPlace(to));
        self.store().late_commit().roll_back(BUCKET, id, to).unwrap();
    }

    /// Writes a transaction ahead of its commit, which does not change the model.
    fn prepare(&self, transaction: u64) {
        let Some(open) = self.open.get(&transaction) else { return };
        let last = TransactionPlace(open.place);
        let store = self.store();
        prepare(&store.context, store.late_commit(), (BUCKET, TransactionId(transaction), last));
    }

    /// Applies an epoch with one or two commits among other changes.
    async fn commit(&mut self, dice: &mut Dice) {
        let mut layers = vec![Layer::Plain(plain(dice))];
        for _ in 0..=dice.roll(2) {
            let Some((id, open)) = self.open.pop_first() else { break };
            layers.push(Layer::Commit(id, open));
            layers.push(Layer::Plain(if dice.roll(2) == 0 { plain(dice) } else { Vec::new() }));
        }
        let n = self.epochs.len() as u64 + 1;
        let (batch, changes) = batch_of(n, layers);
        let before = self.epochs.last().unwrap().clone();
        self.note(changes);
        let late = Arc::clone(self.store().late_commit());
        let kept = batch.commits.iter().try_for_each(|marker| {
            late.keep_committed(BUCKET, marker)?;
            if dice.roll(2) == 0 {
                late.end_transactions(BUCKET, &[marker.transaction]);
            }
            Ok::<_, proto::Error>(())
        });
        if let Err(error) = kept {
            // The transaction was aborted.
            assert_eq!(error.code, ErrorCode::DropData, "{error}");
            self.fall_back(n).await;
            return;
        }
        match dice.roll(6) {
            0 => self.fs.crash_at(self.fs.operations() + 1 + dice.roll(70)),
            1 => self.fs.fail_at(self.fs.operations() + 1 + dice.roll(70)),
            _ => {}
        }
        let ended: Vec<_> = batch.commits.iter().map(|marker| marker.transaction).collect();
        let struck = self.fs.occurred_faults().failed;
        for CommitMarker { transaction, place, .. } in
            batch.commits.iter().take(dice.roll(2) as usize)
        {
            prepare(&self.store().context, &late, (BUCKET, *transaction, *place));
        }
        let applied = self.store().apply(batch).await;
        // The fault may have hit a compaction after the commit.
        self.has_failed |= self.fs.occurred_faults().failed > struck;
        if self.fs.is_crashed() {
            self.reopen(dice.roll(2) == 0).await;
        } else if let Err(error) = applied {
            self.fs.disarm_faults();
            // Indexes that have the epoch already do not show it.
            for index in [BY_ID, BY_EXPR] {
                let snapshot = self.store().snapshot(index, Epoch(n - 1)).unwrap();
                check(&Held { snapshot, index, expected: before.clone() }, dice);
                assert!(self.store().snapshot(index, Epoch(n)).is_err(), "{error}");
            }
            self.fall_back(n).await;
        } else {
            self.fs.disarm_faults();
            late.end_transactions(BUCKET, &ended);
        }
    }

    /// Another stream sends the epoch as mutations. If the log has failed, the process restarts first.
    async fn fall_back(&mut self, n: u64) {
        self.begin_stream();
        let changes = &self.changes[n as usize - 2];
        let packed = body((1..).zip(changes).map(|(at, (id, state))| (at, id.as_str(), state)));
        if self.store().apply(epoch(n, packed)).await.is_err() {
            self.reopen(false).await;
        }
    }

    /// Begins a stream that sends each open transaction again.
    fn begin_stream(&mut self) {
        join(self.store());
        let open: Vec<u64> = self.open.keys().copied().collect();
        open.into_iter().for_each(|transaction| self.send(transaction, 0));
    }

    /// Crashes, unless the process has crashed already, and starts again. With `has_lost`, the
    /// source has lost the epochs that the store has lost, and no data of these epochs may remain.
    async fn reopen(&mut self, has_lost: bool) {
        let durable = self.store().counters(BUCKET).durable;
        self.held.clear();
        if !self.fs.is_crashed() {
            self.fs.crash();
        }
        self.store = None;
        self.fs.restart();
        self.fs.disarm_faults();
        let options = self.options.clone();
        let store = StorageEngine::open(&self.env, NodeId(7), Path::new("/node"), options).unwrap();
        store.load_all();
        let applied = store.applied().iter().map(|mark| mark.epoch).max().unwrap_or_default();
        assert!(applied >= durable, "{applied} {durable}");
        self.store = Some(store);
        self.has_failed = false;
        if has_lost {
            self.epochs.truncate(applied.0 as usize);
            self.changes.truncate(applied.0 as usize - 1);
        }
        for n in applied.0 + 1..=self.epochs.len() as u64 {
            self.apply_again(n).await;
        }
        self.begin_stream();
        if self.open.is_empty() {
            assert_eq!(unnamed_files(self.store()).len(), 0);
        }
    }

    fn hold(&mut self, dice: &mut Dice) {
        let epoch = 1 + dice.roll(self.epochs.len() as u64);
        let index = [BY_ID, BY_EXPR][dice.roll(2) as usize];
        let snapshot = self.store().snapshot(index, Epoch(epoch)).unwrap();
        self.held.push(Held { snapshot, index, expected: self.epochs[epoch as usize - 1].clone() });
    }

    fn look(&mut self, dice: &mut Dice) {
        if let Some(held) = self.held.get(dice.roll(4) as usize) {
            check(held, dice);
        }
        let newest = self.epochs.len() as u64;
        for n in [newest, 1 + dice.roll(newest)] {
            for index in [BY_ID, BY_EXPR] {
                let snapshot = self.store().snapshot(index, Epoch(n)).unwrap();
                let expected = self.epochs[n as usize - 1].clone();
                check(&Held { snapshot, index, expected }, dice);
            }
        }
        self.check_counts();
    }

    fn check_counts(&self) {
        let mut expected = BTreeMap::new();
        for index in [BY_ID, BY_EXPR] {
            expected.extend((0..SLICES).map(|slice| ((index, SliceNo(slice)), 0)));
            for (id, state) in self.epochs.last().unwrap() {
                for (slice, ..) in rows_of(index, id, state) {
                    *expected.entry((index, slice)).or_default() += 1;
                }
            }
        }
        let progress = self.store().progress();
        let found =
            progress.iter().map(|of| ((of.slice.local_index(), of.slice.slice), of.entries));
        assert_eq!(found.collect::<BTreeMap<_, _>>(), expected);
    }

    fn finish(mut self) {
        for held in &self.held {
            check(held, &mut Dice(held.expected.len() as u64));
        }
        self.held.clear();
        let open: Vec<_> = self.open.keys().map(|id| TransactionId(*id)).collect();
        self.store().late_commit().end_transactions(BUCKET, &open);
        let late = self.store().late_commit();
        assert_eq!(
            (late.open(), late.bytes(), late.disk_bytes()),
            (0, 0, 0),
            "everything is freed"
        );
        if !self.has_failed {
            assert_drained(self.store());
        }
    }
}

fn plain(dice: &mut Dice) -> Changes {
    (0..=dice.roll(4)).map(|_| (dice.id(), dice.state())).collect()
}

/// Returns an epoch of these layers, and its changes in order.
fn batch_of(n: u64, layers: Vec<Layer>) -> (EpochBatch, Changes) {
    let base = n * 100 - 100;
    let (mut seqno, mut changes, mut mutations) = (0, Changes::new(), Vec::new());
    let mut commits = Vec::new();
    for layer in layers {
        match layer {
            Layer::Plain(plain) => {
                for change in plain {
                    seqno += 1;
                    mutations.push((seqno, change.clone()));
                    changes.push(change);
                }
            }
            Layer::Commit(id, open) => {
                let last: Documents =
                    open.all.into_iter().map(|(_, id, state)| (id, state)).collect();
                let after = seqno;
                seqno += last.len() as u64;
                changes.extend(last);
                let (after, to) = (Seqno(base + after), Seqno(base + seqno));
                let range = CommitRange { vbucket: VbucketId(0), after, to };
                let ranges = if after < to { vec![range] } else { Vec::new() };
                let (transaction, place) = (TransactionId(id), TransactionPlace(open.place));
                commits.push(CommitMarker { transaction, place, digest: open.digest, ranges });
            }
        }
    }
    let packed = body(mutations.iter().map(|(at, (id, state))| (*at, id.as_str(), state)));
    (EpochBatch { commits, ..epoch(n, packed) }, changes)
}

fn options(is_little: bool) -> StoreOptions {
    StoreOptions {
        open_transactions_bytes_max: is_little.then_some(40 << 10),
        open_transactions_disk_bytes_max: Some(64 << 20),
        ..StoreOptions::default()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(256), ..ProptestConfig::default() })]
    #[test]
    fn commits_by_markers_leave_what_the_same_mutations_leave(
        steps in proptest::collection::vec((any::<u8>(), any::<u64>()), 1..60),
        apart: bool,
        is_little: bool,
        seed in 0..1000u64,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (env, _, fs) = sim::world(seed);
            let grouping = if apart { Grouping::Apart } else { Grouping::Together };
            let options = options(is_little);
            let store = Some(built(&env, options.clone(), grouping).await);
            let (epochs, changes) = (vec![Documents::new()], Vec::new());
            let (open, held, has_failed) = (BTreeMap::new(), Vec::new(), false);
            let mut model =
                Model { env, fs, options, store, epochs, changes, open, held, has_failed };
            for (kind, seed) in steps {
                model.step(kind, &mut Dice(seed)).await;
            }
            model.finish();
        });
    }
}
