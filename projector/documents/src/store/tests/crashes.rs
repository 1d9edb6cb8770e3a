//! Crashes during operations: each acknowledged change survives, and an unacknowledged one survives
//! completely or not at all. The model shares no code with the store.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use proto::ErrorCode;
use proto::env::sim::{self, SimFs};
use proto::env::{Env, OpenMode};
use proto::model::assignment::VbucketSet;
use proto::model::bucket::{BucketInfo, SourceKind};
use proto::model::ids::{BucketId, NodeId, Seqno, VbucketId, Vbuuid, vbucket_of};
use proto::rpc::mutation::MutationKind;

use super::{open_whole, small};
use crate::document_store::{Batch, DocumentStore, LogRange};
use crate::mutation::Mutation;
use crate::ownership::Ownership;
use crate::record::BucketRecord;
use crate::store::DiskStore;

pub(super) const BUCKET: BucketId = BucketId(4);
pub(super) const VBUCKETS: u16 = 3;
const HISTORIES: u64 = 150;
const STEPS: usize = 60;

/// A change of a document; `None` deletes it.
pub(super) type Change = (String, Option<String>);

/// The logs of the vbuckets from the first mutation on, and the last purged seqno of each.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Model {
    pub(super) logs: [Vec<Change>; VBUCKETS as usize],
    pub(super) purged: [u64; VBUCKETS as usize],
    /// For each vbucket, whether it has branches; a removed vbucket has none.
    branches: [bool; VBUCKETS as usize],
}

impl Model {
    pub(super) fn documents(&self) -> BTreeMap<String, (u64, String)> {
        let mut documents = BTreeMap::new();
        for log in &self.logs {
            for ((id, document), seqno) in log.iter().zip(1..) {
                match document {
                    Some(document) => documents.insert(id.clone(), (seqno, document.clone())),
                    None => documents.remove(id),
                };
            }
        }
        documents
    }

    pub(super) fn record(&self) -> BucketRecord {
        let info = BucketInfo::new(BUCKET, "b", VBUCKETS, SourceKind::Push, NodeId(1));
        let branch = |has: &bool| if *has { vec![(Vbuuid(7), 0)] } else { Vec::new() };
        BucketRecord {
            info,
            branches: self.branches.iter().map(branch).collect(),
            ownership: Ownership { owned: VbucketSet::all(VBUCKETS), ..Ownership::default() },
            given_up: BTreeMap::new(),
            commits: Default::default(),
        }
    }
}

/// Returns the contents that readers of the store can see.
fn shown(store: &DiskStore, known: &[&Model]) -> Model {
    let (record, ends) = store.buckets().expect("buckets").remove(0);
    let extents = store.extents(BUCKET).expect("extents");
    let mut found = Model::default();
    for (n, extent) in extents.iter().enumerate() {
        assert_eq!(extent.end, ends[n]);
        let purged = extent.purged.0 as usize;
        // Purged mutations are removed; their documents are compared below.
        let of = known.iter().find(|model| model.logs[n].len() >= purged).expect("a known history");
        found.logs[n] = of.logs[n][..purged].to_vec();
        let (vbucket, to) = (VbucketId(n as u16), Seqno(u64::MAX));
        let range = LogRange { bucket: BUCKET, vbucket, after: Seqno(0), to };
        let read = store.read_log(range, usize::MAX).expect("a log");
        for (mutation, seqno) in read.iter().zip(purged as u64 + 1..) {
            assert_eq!(mutation.seqno.0, seqno, "no gap");
            let document = String::from_utf8(mutation.document.to_vec()).expect("text");
            let document = (mutation.kind == MutationKind::Upsert).then_some(document);
            found.logs[n].push((mutation.id.to_string(), document));
        }
        assert_eq!(found.logs[n].len() as u64, extent.end.0, "all mutations are there");
        found.purged[n] = extent.purged.0;
        found.branches[n] = !record.branches[n].is_empty();
    }
    found
}

pub(super) fn documents(store: &DiskStore) -> BTreeMap<String, (u64, String)> {
    let mut walk = store.snapshot(BUCKET).expect("a snapshot");
    let mut documents = BTreeMap::new();
    loop {
        let chunk = walk.next_chunk(200).expect("documents");
        if chunk.is_empty() {
            return documents;
        }
        for stored in chunk {
            let text = String::from_utf8(stored.document.to_vec()).expect("text");
            documents.insert(stored.id, (stored.seqno.0, text));
        }
    }
}

pub(super) struct World {
    pub(super) env: Env,
    pub(super) fs: SimFs,
    pub(super) store: Option<DiskStore>,
    pub(super) model: Model,
    crashes: u32,
    undone: u32,
}

impl World {
    pub(super) fn new(seed: u64) -> Self {
        let (env, _, fs) = sim::world(seed);
        let model = Model { branches: [true; VBUCKETS as usize], ..Model::default() };
        let mut world = Self { env, fs, store: None, model, crashes: 0, undone: 0 };
        world.open();
        let record = world.model.record();
        world.store().apply_catalog(1, &[record], &[]).expect("a bucket");
        world
    }

    pub(super) fn below(&self, end: u64) -> u64 {
        self.env.random.next_u64() % end.max(1)
    }

    pub(super) fn open(&mut self) {
        self.store = None;
        let opened = open_whole(&self.env, Path::new("/data"));
        self.store = Some(opened.expect("the store opens"));
    }

    pub(super) fn store(&self) -> &DiskStore {
        self.store.as_ref().expect("it is open")
    }

    /// Runs an operation that changes the model to `next`, sometimes with a crash during the
    /// operation.
    fn run(&mut self, next: Model, operation: impl FnOnce(&DiskStore) -> proto::Result<()>) {
        let crashes = self.below(3) == 0;
        if crashes {
            self.fs.crash_at(self.fs.operations() + self.below(16));
        }
        let done = operation(self.store());
        if !crashes {
            done.expect("nothing is in its way");
            self.model = next;
            return;
        }
        self.store = None;
        self.fs.crash();
        self.fs.restart();
        self.open();
        self.crashes += 1;
        let found = shown(self.store(), &[&next, &self.model]);
        if done.is_ok() || found == next {
            assert_eq!(found, next, "an answered operation stands");
            self.model = next;
        } else {
            self.undone += 1;
            assert_eq!(found, self.model, "all of it or nothing");
        }
    }

    pub(super) fn commit(&mut self) {
        let (mut next, mut changes) = (self.model.clone(), Batch::default());
        let had = next.branches;
        for _ in 0..1 + self.below(12) {
            let id = format!("d{}", self.below(20));
            let text = format!("{{\"n\":{}}}", "7".repeat(1 + self.below(60) as usize));
            let document = (self.below(5) > 0).then_some(text);
            let vbucket = vbucket_of(&id, VBUCKETS);
            let log = &mut next.logs[usize::from(vbucket.0)];
            let (seqno, of) = (Seqno(log.len() as u64 + 1), Arc::<str>::from(&*id));
            let kind = document.as_ref().map_or(MutationKind::Deletion, |_| MutationKind::Upsert);
            let bytes = Bytes::from(document.clone().unwrap_or_default());
            changes.mutations.push(Arc::new(Mutation::new((vbucket, seqno), of, kind, bytes)));
            log.push((id, document));
            next.branches[usize::from(vbucket.0)] = true;
        }
        changes.record = (next.branches != had).then(|| next.record());
        self.run(next, |store| store.commit(BUCKET, changes));
    }

    fn rewind(&mut self) {
        let n = self.below(VBUCKETS.into()) as usize;
        let (purged, end) = (self.model.purged[n], self.model.logs[n].len() as u64);
        // To the beginning, or anywhere if nothing was purged.
        let to = if purged > 0 { 0 } else { self.below(end + 1) };
        let mut next = self.model.clone();
        next.logs[n].truncate(to as usize);
        next.purged[n] = if to == 0 { 0 } else { purged };
        let record = next.record();
        self.run(next, |store| store.rewind(&record, &[(VbucketId(n as u16), Seqno(to))]));
    }

    pub(super) fn purge(&mut self) {
        let mut next = self.model.clone();
        let mut to = Vec::new();
        for n in 0..usize::from(VBUCKETS) {
            let end = next.logs[n].len() as u64;
            let point = self.below(end + 1);
            to.push((VbucketId(n as u16), Seqno(point)));
            next.purged[n] = next.purged[n].max(point.min(end));
        }
        self.run(next, |store| store.purge(BUCKET, &to));
    }

    fn remove(&mut self) {
        let n = self.below(VBUCKETS.into()) as usize;
        let mut next = self.model.clone();
        next.logs[n].clear();
        (next.purged[n], next.branches[n]) = (0, false);
        let record = next.record();
        self.run(next, |store| store.remove_vbucket(&record, VbucketId(n as u16)));
    }

    pub(super) fn maintain(&mut self) {
        let next = self.model.clone();
        self.run(next, |store| {
            while store.maintain()? {}
            Ok(())
        });
    }

    fn check(&self) {
        assert_eq!(shown(self.store(), &[&self.model]), self.model);
        assert_eq!(documents(self.store()), self.model.documents());
    }
}

#[test]
fn a_crash_leaves_operations_done_or_undone() {
    let (mut crashes, mut undone) = (0, 0);
    for seed in 0..HISTORIES {
        let mut world = World::new(seed);
        for step in 0..STEPS {
            let ran = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                match world.below(12) {
                    0 => world.rewind(),
                    1 => world.purge(),
                    2 => world.remove(),
                    3..=5 => world.maintain(),
                    _ => world.commit(),
                }
                world.check();
            }));
            if let Err(panic) = ran {
                eprintln!("in history {seed}, step {step}");
                std::panic::resume_unwind(panic);
            }
        }
        crashes += world.crashes;
        undone += world.undone;
    }
    assert!(crashes > 1000 && undone > 100, "{crashes} crashes, {undone} operations undone");
}

#[test]
fn a_log_that_has_lost_its_end_is_named_and_not_served() {
    let mut world = World::new(1);
    let dir = Path::new("/data/buckets/00000000/log");
    let file = loop {
        world.commit();
        while world.store().maintain().expect("maintained") {}
        let segments = world.env.fs.list(dir).expect("segments");
        let last = segments.iter().rfind(|path| path.extension().is_some_and(|e| e == "log"));
        let last = last.expect("a segment");
        let file = world.env.fs.open(last, OpenMode::ReadWrite).expect("the segment");
        if file.len().expect("its length") > 2_000 {
            break file;
        }
    };
    world.store = None;
    // As if an older copy of the file had been put back.
    file.set_len(36).expect("cut");
    file.sync().expect("synced");
    let error = open_whole(&world.env, Path::new("/data")).map(|_| ());
    let error = error.expect_err("a loss");
    assert_eq!(error.code, ErrorCode::Corrupt, "{error}");
    assert!(error.message.contains("/data/buckets/00000000/log"), "{error}");
}

/// One file operation fails while a catalog is applied, and the caller applies the catalog again.
#[test]
fn a_catalog_that_failed_is_repeated_and_leaves_nothing_behind() {
    let mut failed = 0;
    for operation in 0..120 {
        let (env, _, fs) = sim::world(operation);
        let model = Model { branches: [true; VBUCKETS as usize], ..Model::default() };
        let (mut first, mut second) = (model.record(), model.record());
        (first.info.id, second.info.id) = (BucketId(1), BucketId(2));
        let open = || DiskStore::open(&env, Path::new("/data"), small()).expect("the store opens");
        let store = open();
        fs.fail_at(fs.operations() + operation);
        for (cas, made, removed) in [(1, &first, None), (2, &second, Some(BucketId(1)))] {
            let removed = removed.as_slice();
            let made = std::slice::from_ref(made);
            if store.apply_catalog(cas, made, removed).is_err() {
                failed += 1;
                store.apply_catalog(cas, made, removed).expect("the second time");
            }
        }
        fs.disarm_faults();
        drop(store);
        let store = open();
        let ids: Vec<_> =
            store.buckets().expect("buckets").iter().map(|(b, _)| b.info.id).collect();
        assert_eq!(ids, [BucketId(2)], "operation {operation}");
        while store.maintain().expect("maintained") {}
        let left = env.fs.list(Path::new("/data/buckets")).expect("directories");
        assert_eq!(left.len(), 1, "operation {operation}: {left:?}");
    }
    assert!(failed > 40, "{failed}");
}

#[test]
fn failed_disk_is_reported_and_blocks_no_other_bucket() {
    let mut world = World::new(9);
    let mut other = world.model.record();
    other.info.id = BucketId(8);
    world.store().apply_catalog(2, &[other], &[]).expect("another bucket");
    world.commit();
    assert!(!world.store().has_failed());
    world.fs.fail_at(world.fs.operations() + 1);
    let record = world.model.record();
    world.store().put_records(&[record]).expect_err("the disk fails");
    assert!(world.store().has_failed());
    let mut model = Model { branches: [true; VBUCKETS as usize], ..Model::default() };
    for n in 0..400 {
        let id: Arc<str> = format!("d{n}").into();
        let vbucket = vbucket_of(&id, VBUCKETS);
        let log = &mut model.logs[usize::from(vbucket.0)];
        log.push((id.to_string(), None));
        let place = (vbucket, Seqno(log.len() as u64));
        let document = Bytes::from_static(b"{\"some\":\"document of the other bucket\"}");
        let mutation = Mutation::new(place, Arc::clone(&id), MutationKind::Upsert, document);
        let changes = Batch { mutations: vec![Arc::new(mutation)], ..Default::default() };
        world.store().commit(BucketId(8), changes).expect("written");
    }
    world.store().maintain().expect_err("the failed bucket is named");
    assert!(world.store().all()[1].1.covered() > 0, "the other one was flushed");
}
