//! Tests of commits that are written ahead of their epoch: when the written rows are used, and that
//! no files remain.

use std::sync::atomic::Ordering;

use proto::env::{Env, sim};
use proto::model::ids::{Epoch, Seqno, TransactionId, TransactionPlace, VbucketId};
use proto::rpc::mutation::{ChangesDigest, CommitMarker, CommitRange};

use crate::batch::EpochBatch;
use crate::engine::storage_engine::StorageEngine;
use crate::late_commit::commits::prepare::prepare;
use crate::late_commit::tests::checking::*;
use crate::late_commit::tests::testing::*;
use crate::late_commit::tests::world::*;
use crate::rows::columns::Grouping;
use crate::slice_store::SliceStore;

const TRANSACTION: u64 = 5;

/// A store with a transaction that has changed some documents, and the changes of each of them.
struct Ahead {
    world: World,
    marker: CommitMarker,
    changes: Documents,
}

impl Ahead {
    async fn new(seed: u64) -> Self {
        Self::in_world(&sim::world(seed).0, seed).await
    }

    async fn in_world(env: &Env, seed: u64) -> Self {
        let mut dice = Dice(seed);
        let mut world = World::filled(env, options(1 << 20, 64 << 20), &mut dice).await;
        let changes: Documents = (0..40).step_by(2).map(|n| (id(n), dice.state())).collect();
        let count = changes.len() as u64;
        let packed = body((1..).zip(&changes).map(|(at, (id, state))| (at, id.as_str(), state)));
        let message = bodies(TRANSACTION, 0, count, packed);
        world.late().add_changes(BUCKET, &message).unwrap();
        let digest = ChangesDigest::default().with_changes(&message);
        let (transaction, place) = (TransactionId(TRANSACTION), TransactionPlace(count));
        let marker = CommitMarker { transaction, place, digest, ranges: Vec::new() };
        world.held.clear();
        Self { world, marker, changes }
    }

    fn prepare(&self) {
        let of = (BUCKET, self.marker.transaction, self.marker.place);
        prepare(&self.world.store.context, self.world.late(), of);
    }

    /// Commits with other changes in the same epoch, checks the visible entries, and returns
    /// whether the rows written ahead were used.
    async fn commit(self, behind: Documents) -> bool {
        let changes = self.changes.clone();
        self.commit_beside(behind.clone(), [changes, behind]).await
    }

    /// Commits in an epoch with other changes that precede the commit.
    async fn commit_behind(self, before: Documents) -> bool {
        let changes = self.changes.clone();
        self.commit_beside(before.clone(), [before, changes]).await
    }

    async fn commit_beside(mut self, beside: Documents, in_order: [Documents; 2]) -> bool {
        self.world.late().keep_committed(BUCKET, &self.marker).unwrap();
        let n = self.world.epochs.len() as u64 + 1;
        let mut documents = self.world.epochs.last().unwrap().clone();
        documents.extend(in_order.into_iter().flatten());
        self.world.epochs.push(documents);
        let packed = body((1..).zip(&beside).map(|(at, (id, state))| (at, id.as_str(), state)));
        let commits = vec![self.marker.clone()];
        self.world.store.apply(EpochBatch { commits, ..epoch(n, packed) }).await.unwrap();
        self.world.late().end_transactions(BUCKET, &[self.marker.transaction]);
        let mut dice = Dice(n);
        self.world.check(&mut dice);
        self.world.store.compact().await.unwrap();
        self.world.check(&mut dice);
        assert_drained(&self.world.store);
        self.world.late().usage.entered_prepared.load(Ordering::Relaxed) == 1
    }
}

fn one(document: u64) -> Documents {
    Documents::from([(id(document), State::from([((1, 1), 1)]))])
}

#[tokio::test]
async fn prepared_rows_are_used() {
    for seed in 0..20 {
        let ahead = Ahead::new(seed).await;
        ahead.prepare();
        assert!(ahead.commit(Documents::new()).await, "seed {seed}");
    }
}

#[tokio::test]
async fn changes_of_other_documents_do_not_matter() {
    let mut ahead = Ahead::new(1).await;
    ahead.prepare();
    ahead.world.epoch(one(1)).await;
    ahead.world.store.flush().await.unwrap();
    ahead.world.epoch(one(3)).await;
    assert!(ahead.commit(one(5)).await);
}

#[tokio::test]
async fn documents_that_were_changed_meanwhile_are_looked_up_once_more() {
    for seed in 0..200 {
        let mut dice = Dice(seed);
        let mut ahead = Ahead::new(seed).await;
        ahead.prepare();
        for _ in 0..1 + dice.roll(3) {
            let changed = (0..1 + dice.roll(20)).map(|_| (id(dice.roll(50)), dice.state()));
            ahead.world.epoch(changed.collect()).await;
            if dice.roll(3) == 0 {
                ahead.world.store.compact().await.unwrap();
            }
        }
        assert!(ahead.commit(Documents::new()).await, "seed {seed}");
    }
}

#[tokio::test]
async fn a_document_that_a_transaction_changed_for_one_index_only_stays_as_it_is_in_another_one() {
    let mut ahead = Ahead::new(9).await;
    let other = id(1);
    let state = State::from([((8, 8), 8)]);
    let place = ahead.marker.place;
    let packed = body_for(&[BY_ID], [(1, other.as_str(), &state)]);
    let message = bodies(TRANSACTION, place.0, place.0 + 1, packed);
    ahead.world.late().add_changes(BUCKET, &message).unwrap();
    ahead.marker.place = message.to;
    ahead.marker.digest = ahead.marker.digest.with_changes(&message);
    ahead.prepare();
    let changed = State::from([((9, 9), 9)]);
    ahead.world.epoch(Documents::from([(other.clone(), changed.clone())])).await;
    ahead.world.late().keep_committed(BUCKET, &ahead.marker).unwrap();
    let n = ahead.world.epochs.len() as u64 + 1;
    let commits = vec![ahead.marker.clone()];
    ahead.world.store.apply(EpochBatch { commits, ..epoch(n, Default::default()) }).await.unwrap();
    assert_eq!(ahead.world.late().usage.entered_prepared.load(Ordering::Relaxed), 1);
    let mut expected = ahead.world.epochs.last().unwrap().clone();
    expected.extend(ahead.changes);
    for (index, of_index) in [(BY_ID, state), (BY_EXPR, changed)] {
        expected.insert(other.clone(), of_index);
        let snapshot = ahead.world.store.snapshot(index, Epoch(n)).unwrap();
        check(&Held { snapshot, index, expected: expected.clone() }, &mut Dice(n));
    }
}

#[tokio::test]
async fn a_mutation_of_the_same_epoch_before_the_commit_does_not_matter() {
    let mut ahead = Ahead::new(3).await;
    let range =
        CommitRange { vbucket: VbucketId(0), after: Seqno(u64::MAX - 1), to: Seqno(u64::MAX) };
    ahead.marker.ranges = vec![range];
    ahead.prepare();
    let replaced = Documents::from([(id(6), State::from([((9, 9), 9)])), (id(7), State::new())]);
    assert!(ahead.commit_behind(replaced).await);
}

#[tokio::test]
async fn a_later_mutation_voids_prepared() {
    let ahead = Ahead::new(3).await;
    ahead.prepare();
    assert!(!ahead.commit(one(6)).await);
}

#[tokio::test]
async fn too_many_changes_void_prepared() {
    let mut ahead = Ahead::new(8).await;
    ahead.prepare();
    ahead.world.epoch(one(2)).await;
    let transaction = ahead.world.late().buckets.get(BUCKET, ahead.marker.transaction).unwrap();
    (0..1 << 14).for_each(|n| transaction.preparation().note_change(id(n).as_bytes()));
    assert!(transaction.preparation().is_invalid(), "the memory of noted documents is bounded");
    drop(transaction);
    assert!(!ahead.commit(Documents::new()).await);
}

#[tokio::test]
async fn another_commit_voids_prepared_rows() {
    let mut ahead = Ahead::new(4).await;
    ahead.prepare();
    let message = bodies(6, 0, 1, body([(1, id(2).as_str(), &State::new())]));
    ahead.world.late().add_changes(BUCKET, &message).unwrap();
    let digest = ChangesDigest::default().with_changes(&message);
    let (transaction, place) = (TransactionId(6), TransactionPlace(1));
    let marker = CommitMarker { transaction, place, digest, ranges: Vec::new() };
    ahead.world.late().keep_committed(BUCKET, &marker).unwrap();
    let mut documents = ahead.world.epochs.last().unwrap().clone();
    documents.insert(id(2), State::new());
    ahead.world.epochs.push(documents);
    let n = ahead.world.epochs.len() as u64;
    let batch = EpochBatch { commits: vec![marker], ..epoch(n, Default::default()) };
    ahead.world.store.apply(batch).await.unwrap();
    ahead.world.late().end_transactions(BUCKET, &[transaction]);
    assert!(!ahead.commit(Documents::new()).await);
}

#[tokio::test]
async fn an_ended_transaction_leaves_no_file() {
    let ahead = Ahead::new(5).await;
    ahead.prepare();
    assert!(!unnamed_files(&ahead.world.store).is_empty(), "something is written");
    ahead.world.late().end_transactions(BUCKET, &[ahead.marker.transaction]);
    assert_drained(&ahead.world.store);
}

#[tokio::test]
async fn an_earlier_place_prepares_nothing() {
    let mut ahead = Ahead::new(6).await;
    let place = ahead.marker.place;
    ahead.marker.place = TransactionPlace(place.0 - 1);
    ahead.prepare();
    assert!(unnamed_files(&ahead.world.store).is_empty(), "nothing is written");
    ahead.marker.place = place;
    assert!(!ahead.commit(Documents::new()).await);
}

#[tokio::test]
async fn an_index_whose_columns_were_regrouped_meanwhile_is_written_anew() {
    let ahead = Ahead::new(7).await;
    ahead.prepare();
    ahead.world.store.regroup(BY_ID, Grouping::Apart).await.unwrap();
    assert!(!ahead.commit(Documents::new()).await);
}

/// The index must not answer for skipped epochs, neither before nor after a restart, which reads
/// the readable epochs from the manifest.
#[tokio::test]
async fn skipped_epochs_cannot_be_read() {
    let (env, ..) = sim::world(1);
    let Ahead { world, marker, .. } = Ahead::in_world(&env, 1).await;
    world.late().keep_committed(BUCKET, &marker).unwrap();
    let before = world.epochs.len() as u64;
    let readable = |store: &StorageEngine, index| {
        [before, before + 1, before + 2].map(|epoch| store.snapshot(index, Epoch(epoch)).is_ok())
    };
    assert!([BY_ID, BY_EXPR].iter().all(|index| readable(&world.store, *index)[0]));
    let nothing = body(std::iter::empty());
    let commits = vec![marker.clone()];
    world.store.apply(EpochBatch { commits, ..epoch(before + 2, nothing) }).await.unwrap();
    for index in [BY_ID, BY_EXPR] {
        assert_eq!(readable(&world.store, index), [false, false, true]);
    }
    world.store.wait_durable(BUCKET, Epoch(before + 2)).await.unwrap();
    drop(world);
    let store = opened(&env, options(1 << 20, 64 << 20));
    store.load_all();
    for index in [BY_ID, BY_EXPR] {
        assert_eq!(readable(&store, index), [false, false, true], "after a restart");
    }
}
