//! Commits that are written ahead of their epoch: when that counts, and that it leaves nothing behind.

use std::sync::atomic::Ordering;

use proto::env::sim;
use proto::model::ids::{TransactionId, TransactionPlace};
use proto::rpc::mutation::{BodiesDigest, CommitMarker};

use super::checking::*;
use super::testing::*;
use super::world::*;
use crate::batch::EpochBatch;
use crate::late_commit::prepare::prepare;
use crate::rows::columns::Grouping;
use crate::slice_store::SliceStore;

const TRANSACTION: u64 = 5;

/// A world with a transaction of some documents, and the changes of each of them.
struct Ahead {
    world: World,
    marker: CommitMarker,
    changes: Documents,
}

impl Ahead {
    async fn new(seed: u64) -> Self {
        let (env, _, _) = sim::world(seed);
        let mut dice = Dice(seed);
        let mut world = World::filled(&env, options(1 << 20, 64 << 20), &mut dice).await;
        let changes: Documents = (0..40).step_by(2).map(|n| (id(n), dice.state())).collect();
        let count = changes.len() as u64;
        let packed = body((1..).zip(&changes).map(|(at, (id, state))| (at, id.as_str(), state)));
        let message = bodies(TRANSACTION, 0, count, packed);
        world.late().bodies(BUCKET, &message).unwrap();
        let digest = BodiesDigest::default().with_bodies(&message);
        let (transaction, place) = (TransactionId(TRANSACTION), TransactionPlace(count));
        let marker = CommitMarker { transaction, place, digest, ranges: Vec::new() };
        world.held.clear();
        Self { world, marker, changes }
    }

    fn prepare(&self) {
        let of = (BUCKET, self.marker.transaction, self.marker.place);
        prepare(&self.world.store.context, self.world.late(), of);
    }

    /// Commits with other changes in the same epoch, checks what the store shows, and returns whether what was written ahead has counted.
    async fn commit(mut self, beside: Documents) -> bool {
        self.world.late().keep_committed(BUCKET, &self.marker).unwrap();
        let n = self.world.epochs.len() as u64 + 1;
        let mut documents = self.world.epochs.last().unwrap().clone();
        documents.extend(self.changes);
        documents.extend(beside.clone());
        self.world.epochs.push(documents);
        let packed = body((1..).zip(&beside).map(|(at, (id, state))| (at, id.as_str(), state)));
        let commits = vec![self.marker.clone()];
        self.world.store.apply(EpochBatch { commits, ..epoch(n, packed) }).await.unwrap();
        self.world.late().end(BUCKET, &[self.marker.transaction]);
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
async fn a_commit_enters_from_what_was_written_ahead() {
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
async fn a_document_that_was_changed_meanwhile_makes_the_commit_written_anew() {
    for (document, state) in [(2, State::new()), (4, State::from([((9, 9), 9)]))] {
        let mut ahead = Ahead::new(2).await;
        ahead.prepare();
        ahead.world.epoch(Documents::from([(id(document), state)])).await;
        assert!(!ahead.commit(Documents::new()).await);
    }
}

#[tokio::test]
async fn a_document_that_the_same_epoch_changes_makes_the_commit_written_anew() {
    let ahead = Ahead::new(3).await;
    ahead.prepare();
    assert!(!ahead.commit(one(6)).await);
}

#[tokio::test]
async fn another_commit_makes_it_written_anew() {
    let mut ahead = Ahead::new(4).await;
    ahead.prepare();
    let message = bodies(6, 0, 1, body([(1, id(2).as_str(), &State::new())]));
    ahead.world.late().bodies(BUCKET, &message).unwrap();
    let digest = BodiesDigest::default().with_bodies(&message);
    let (transaction, place) = (TransactionId(6), TransactionPlace(1));
    let marker = CommitMarker { transaction, place, digest, ranges: Vec::new() };
    ahead.world.late().keep_committed(BUCKET, &marker).unwrap();
    let mut documents = ahead.world.epochs.last().unwrap().clone();
    documents.insert(id(2), State::new());
    ahead.world.epochs.push(documents);
    let n = ahead.world.epochs.len() as u64;
    let batch = EpochBatch { commits: vec![marker], ..epoch(n, Default::default()) };
    ahead.world.store.apply(batch).await.unwrap();
    ahead.world.late().end(BUCKET, &[transaction]);
    assert!(!ahead.commit(Documents::new()).await);
}

#[tokio::test]
async fn a_transaction_that_ends_otherwise_leaves_no_file() {
    let ahead = Ahead::new(5).await;
    ahead.prepare();
    assert!(!unnamed_files(&ahead.world.store).is_empty(), "something is written");
    ahead.world.late().end(BUCKET, &[ahead.marker.transaction]);
    assert_drained(&ahead.world.store);
}

#[tokio::test]
async fn a_place_that_is_not_the_last_one_prepares_nothing() {
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
    ahead.commit(Documents::new()).await;
}
