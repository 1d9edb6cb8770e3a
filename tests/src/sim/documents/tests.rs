//! Tests of the tapped store and its mirror.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use projector::DiskStore;
use projector::testing::{Batch, BucketRecord, DocumentStore, Mutation, Ownership, StoredDocument};
use proto::env::Env;
use proto::env::sim::{self, SimFs};
use proto::model::assignment::VbucketSet;
use proto::model::bucket::{BucketInfo, SourceKind};
use proto::model::cut::Position;
use proto::model::ids::{BucketId, NodeId, Seqno, VbucketId, Vbuuid};
use proto::rpc::mutation::MutationKind;

use super::contents::Change;
use super::mirror::{Mirror, StoreChange};
use super::{TappedStore, options};

const BUCKET: BucketId = BucketId(1);
const VBUCKET: VbucketId = VbucketId(0);
const DIR: &str = "/data";

struct World {
    env: Env,
    fs: SimFs,
    mirror: Mirror,
    seed: u64,
}

impl World {
    /// Returns a world with a bucket and two mutations.
    fn new(seed: u64) -> (Self, TappedStore) {
        let (env, _, fs) = sim::world(seed);
        let world = Self { env, fs, mirror: Mirror::default(), seed };
        let store = world.open();
        let info = BucketInfo::new(BUCKET, "b", 1, SourceKind::Embedded, NodeId(1));
        let ownership = Ownership { owned: VbucketSet::all(1), ..Ownership::default() };
        let (branches, given_up) = (vec![vec![(Vbuuid(7), 0)]], BTreeMap::new());
        let record =
            BucketRecord { info, branches, ownership, given_up, commits: Default::default() };
        store.apply_catalog(1, &[record], &[]).expect("a bucket");
        store.commit(BUCKET, batch(1..3)).expect("two mutations");
        (world, store)
    }

    fn open(&self) -> TappedStore {
        let (options, mirror) = (options(self.seed), self.mirror.clone());
        let store = TappedStore::open(&self.env, Path::new(DIR), options, mirror);
        let store = store.expect("the store opens");
        store.reconcile(false).expect("it is readable");
        store
    }

    fn restart(&self, store: TappedStore) -> TappedStore {
        self.fs.crash();
        drop(store);
        self.fs.restart();
        self.open()
    }

    fn end(&self) -> usize {
        self.mirror.histories(BUCKET)[0].1[0].len()
    }
}

fn batch(seqnos: std::ops::Range<u64>) -> Batch {
    let mutation = |seqno: u64| {
        let (place, id) = ((VBUCKET, Seqno(seqno)), format!("d{}", seqno % 3).into());
        let document = Bytes::from(format!("{{\"n\":{seqno}}}"));
        Arc::new(Mutation::new(place, id, MutationKind::Upsert, document))
    };
    Batch { mutations: seqnos.map(mutation).collect(), ..Default::default() }
}

fn position(seqno: u64) -> Position {
    Position { vbuuid: Vbuuid(7), seqno: Seqno(seqno) }
}

#[test]
fn a_store_that_has_everything_is_accepted() {
    let (world, store) = World::new(1);
    let store = world.restart(store);
    store.purge(BUCKET, &[(VBUCKET, Seqno(1))]).expect("purged");
    store.commit(BUCKET, batch(3..9)).expect("committed");
    drop(world.restart(store));
    assert_eq!(world.mirror.take_violations(), Vec::<String>::new());
    assert_eq!(world.end(), 8);
}

#[test]
fn a_lost_mutation_is_named() {
    let (world, store) = World::new(2);
    let older = world.fs.copy();
    store.commit(BUCKET, batch(3..5)).expect("committed");
    world.fs.crash();
    drop(store);
    world.fs.restore_disk(&older);
    world.fs.restart();
    drop(world.open());
    let found = world.mirror.take_violations();
    let expected = "the store lost an acknowledged mutation of vbucket 0, seqno 3";
    assert!(found.len() == 1 && found[0].contains(expected), "{found:?}");
}

#[test]
fn mutations_and_documents_that_nobody_wrote_are_named() {
    let (world, store) = World::new(3);
    drop(store);
    let plain = DiskStore::open(&world.env, Path::new(DIR), options(world.seed)).expect("opened");
    plain.commit(BUCKET, batch(3..4)).expect("committed");
    drop(plain);
    drop(world.open());
    let found = world.mirror.take_violations();
    assert!(found.len() == 1 && found[0].contains("which it must not have"), "{found:?}");

    let (world, store) = World::new(4);
    let document = Bytes::from_static(b"{}");
    let of_mirror = StoredDocument { id: "d1".into(), seqno: Seqno(1), document };
    let change = StoreChange::Bucket(BUCKET, Change::Documents(vec![of_mirror]));
    let numbers = world.mirror.begin(vec![change]);
    world.mirror.succeeded(numbers[0]);
    drop(world.restart(store));
    let found = world.mirror.take_violations();
    assert!(found.len() == 1 && found[0].contains("document d1 is"), "{found:?}");
}

#[test]
fn a_commit_in_doubt_is_there_or_not() {
    let (mut kept, mut lost) = (0, 0);
    for seed in 0..60 {
        let (world, store) = World::new(seed);
        world.fs.crash_at(world.fs.operations() + 1 + seed % 3);
        let is_done = store.commit(BUCKET, batch(3..5)).is_ok();
        assert_eq!(world.mirror.known().is_some(), is_done, "seed {seed}: in doubt or not");
        drop(world.restart(store));
        assert_eq!(world.mirror.take_violations(), Vec::<String>::new(), "seed {seed}");
        assert!(world.end() == 4 || world.end() == 2 && !is_done, "seed {seed}");
        kept += u32::from(!is_done && world.end() == 4);
        lost += u32::from(world.end() == 2);
    }
    assert!(kept > 5 && lost > 5, "{kept} kept, {lost} lost");
}

#[test]
fn a_purge_of_mutations_whose_commit_has_not_returned_confirms_them() {
    let (world, _store) = World::new(6);
    let mutations = batch(3..5).mutations;
    let commit = Change::Commit { mutations, record: None, commits: Vec::new() };
    let purge = Change::Purge(vec![(VBUCKET, Seqno(4))]);
    let begun = [commit, purge].map(|change| StoreChange::Bucket(BUCKET, change)).to_vec();
    let numbers = world.mirror.begin(begun);
    world.mirror.succeeded(numbers[1]);
    assert_eq!(world.end(), 4);
    assert!(world.mirror.known().is_some(), "nothing is in doubt");
    world.mirror.succeeded(numbers[0]);
    assert_eq!(world.end(), 4);
    assert_eq!(world.mirror.take_violations(), Vec::<String>::new());
}

#[test]
fn an_older_copy_is_another_history() {
    let (world, store) = World::new(5);
    let (copy, known) = (world.fs.copy(), world.mirror.known().expect("no doubt"));
    store.commit(BUCKET, batch(3..6)).expect("committed");
    world.fs.crash();
    drop(store);
    world.fs.restore_disk(&copy);
    assert_eq!(world.mirror.lost_since(&known), [(BUCKET, VBUCKET, Seqno(2))]);
    world.mirror.go_back(&known);
    assert_eq!(world.mirror.lost_since(&known), []);
    world.fs.restart();
    drop(world.open());
    assert_eq!(world.mirror.take_violations(), Vec::<String>::new());
    assert_eq!(world.mirror.histories(BUCKET).len(), 2);
    assert_eq!(world.mirror.log_at(BUCKET, VBUCKET, position(5)).map(|log| log.len()), Some(5));
    assert!(world.mirror.present_log(BUCKET, VBUCKET, position(5)).is_none());
    assert!(world.mirror.present_log(BUCKET, VBUCKET, position(2)).is_some());
}
