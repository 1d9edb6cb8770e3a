//! Differential histories: each operation is applied to the store on disk and to the store in
//! memory, and must have equal results. Then both must have equal contents. The store on disk
//! crashes and is opened again at any moment, also during a copy, a flush or a merge.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use proto::env::sim::{self, SimFs};
use proto::env::{Env, Random};
use proto::model::assignment::VbucketSet;
use proto::model::bucket::{BucketInfo, SourceKind};
use proto::model::ids::{BucketId, NodeId, Seqno, VbucketId, Vbuuid, vbucket_of};
use proto::rpc::mutation::MutationKind;
use proto::{ErrorCode, Result};

use super::open_whole;
use crate::MemoryStore;
use crate::document_store::*;
use crate::mutation::Mutation;
use crate::ownership::Ownership;
use crate::record::BucketRecord;
use crate::store::DiskStore;

const VBUCKETS: u16 = 3;
/// The number of different documents of a bucket.
const IDS: u64 = 24;
/// The number of histories; then their length.
const HISTORIES: u64 = 80;
const STEPS: usize = 120;

/// A document with the seqno of its last change.
type Shown = (String, u64, Bytes);

/// An entry of a log.
type Entry = (u64, String, bool, Bytes);

/// Counters of the operations, with which the test checks that it covers them.
#[derive(Debug, Default)]
struct Effects {
    commits: u32,
    reopened: u32,
    rewound: u32,
    purged: u32,
    copied: u32,
    dropped: u32,
    refused: u32,
    held: u32,
    maintained: u32,
}

/// The store on disk and the store in memory, with equal contents.
struct Both {
    env: Env,
    fs: SimFs,
    disk: Option<DiskStore>,
    memory: MemoryStore,
    random: Arc<dyn Random>,
    records: BTreeMap<BucketId, BucketRecord>,
    /// Buckets that were dropped.
    gone: Vec<BucketRecord>,
    cas: u64,
    next_bucket: u64,
    next_branch: u64,
    /// Open snapshots, which are compared later.
    held: Option<[Box<dyn DocumentSnapshot>; 2]>,
    effects: Effects,
    /// The steps so far, for a report.
    trace: Vec<String>,
}

fn code<T>(result: Result<T>) -> std::result::Result<T, ErrorCode> {
    result.map_err(|error| error.code)
}

fn all(snapshot: &mut dyn DocumentSnapshot, bytes: usize) -> Result<Vec<Shown>> {
    let mut found = Vec::new();
    loop {
        let chunk = snapshot.next_chunk(bytes)?;
        if chunk.is_empty() {
            return Ok(found);
        }
        found.extend(chunk.into_iter().map(|s| (s.id, s.seqno.0, s.document)));
    }
}

fn log(store: &dyn DocumentStore, mut range: LogRange, bytes: usize) -> Result<Vec<Entry>> {
    let mut found = Vec::new();
    loop {
        let piece = store.read_log(range, bytes)?;
        let Some(last) = piece.last() else { return Ok(found) };
        range.after = last.seqno;
        found.extend(piece.iter().map(|m| {
            (m.seqno.0, m.id.to_string(), m.kind == MutationKind::Deletion, m.document.clone())
        }));
    }
}

/// Returns the seqno of a document's last change, unless the change is a deletion that a store may
/// have forgotten.
fn known_change(store: &dyn DocumentStore, bucket: BucketId, id: &str) -> Result<Option<Seqno>> {
    let purged = store.extents(bucket)?[usize::from(vbucket_of(id, VBUCKETS).0)].purged;
    let (changed, is_there) = (store.changed_at(bucket, id)?, store.contains(bucket, id)?);
    Ok(changed.filter(|seqno| is_there || *seqno > purged))
}

impl Both {
    fn new(seed: u64) -> Self {
        let (env, _, fs) = sim::world(seed);
        let mut both = Self {
            random: Arc::clone(&env.random),
            env,
            fs,
            disk: None,
            memory: MemoryStore::default(),
            records: BTreeMap::new(),
            gone: Vec::new(),
            cas: 0,
            next_bucket: 1,
            next_branch: 1,
            held: None,
            effects: Effects::default(),
            trace: Vec::new(),
        };
        both.reopen();
        both
    }

    fn below(&self, end: u64) -> u64 {
        self.random.next_u64() % end.max(1)
    }

    /// Reopens the store on disk, mostly after a crash: all acknowledged changes must exist.
    fn reopen(&mut self) {
        (self.held, self.disk) = (None, None);
        let has_crashed = self.below(4) > 0;
        self.trace.push(if has_crashed { "crashed".into() } else { "reopened".into() });
        if has_crashed {
            self.fs.crash();
            self.fs.restart();
        }
        let opened = open_whole(&self.env, Path::new("/data"));
        self.disk = Some(opened.expect("the store opens"));
        self.effects.reopened += 1;
    }

    /// Runs flushes, merges and releases, sometimes until a crash interrupts them.
    fn maintain(&mut self) {
        let Some(disk) = &self.disk else { return };
        let crashes = self.below(3) == 0;
        if crashes {
            self.fs.crash_at(self.fs.operations() + self.below(30));
        }
        let mut maintained = disk.maintain();
        while maintained == Ok(true) {
            self.effects.maintained += 1;
            maintained = disk.maintain();
        }
        self.trace.push(format!("maintained: {maintained:?}"));
        if crashes {
            self.fs.crash();
            self.fs.restart();
            self.reopen();
        } else {
            maintained.expect("maintained");
        }
    }

    fn stores(&self) -> [&dyn DocumentStore; 2] {
        [self.disk.as_ref().expect("it is open"), &self.memory]
    }

    /// Applies an operation to both stores, which must return equal results; returns the result.
    fn both<T: PartialEq + std::fmt::Debug>(
        &mut self,
        what: &str,
        operation: impl Fn(&dyn DocumentStore) -> Result<T>,
    ) -> std::result::Result<T, ErrorCode> {
        let [disk, memory] = self.stores().map(|store| code(operation(store)));
        assert_eq!(disk, memory, "{what}: on disk, and in memory, after {:?}", self.trace);
        self.effects.refused += u32::from(disk.is_err());
        disk
    }

    fn any_bucket(&self) -> Option<BucketRecord> {
        let at = self.below(self.records.len() as u64) as usize;
        self.records.values().nth(at).cloned()
    }

    fn any_vbucket(&self) -> VbucketId {
        VbucketId(self.below(u64::from(VBUCKETS)) as u16)
    }

    fn end(&self, bucket: BucketId, vbucket: VbucketId) -> LogExtent {
        self.memory.extents(bucket).expect("the bucket")[usize::from(vbucket.0)]
    }

    fn any_text(&self) -> Bytes {
        // Some documents are large enough to fill a block alone.
        let len = if self.below(12) == 0 { 9_000 } else { self.below(40) };
        Bytes::from(vec![b'0' + (self.below(10) as u8); len as usize])
    }

    /// Returns random changes of a bucket, with the seqnos that the writer would assign.
    fn changes(&mut self, bucket: BucketId) -> Batch {
        let mut ends: Vec<u64> =
            (0..VBUCKETS).map(|v| self.end(bucket, VbucketId(v)).end.0).collect();
        let mut changes = Batch::default();
        for _ in 0..self.below(12) {
            let id = format!("d{}", self.below(IDS));
            let vbucket = vbucket_of(&id, VBUCKETS);
            let end = &mut ends[usize::from(vbucket.0)];
            *end += 1;
            let (kind, document) = match self.below(4) {
                0 => (MutationKind::Deletion, Bytes::new()),
                _ => (MutationKind::Upsert, self.any_text()),
            };
            let (id, place) = (Arc::<str>::from(id), (vbucket, Seqno(*end)));
            changes.mutations.push(Arc::new(Mutation::new(place, id, kind, document)));
        }
        if self.below(5) == 0 {
            let record = self.records.get_mut(&bucket).expect("the bucket");
            record.branches[0].insert(0, (Vbuuid(self.next_branch), ends[0]));
            self.next_branch += 1;
            changes.record = Some(record.clone());
        }
        changes
    }

    fn step(&mut self) {
        match self.below(24) {
            0 | 1 if self.records.len() < 3 => self.make_a_bucket(),
            2 => self.drop_a_bucket(),
            3 | 4 => self.reopen(),
            5 | 6 => self.rewind(),
            7 | 8 => self.purge(),
            9 => self.copy(),
            10 => self.put_records(),
            11 => self.hold(),
            12 => self.call_a_dropped_bucket(),
            13..=15 => self.maintain(),
            _ => self.commit(),
        }
    }

    fn make_a_bucket(&mut self) {
        let id = BucketId(self.next_bucket);
        self.next_bucket += 1;
        let info = BucketInfo::new(id, "b", VBUCKETS, SourceKind::Embedded, NodeId(1));
        let branches = vec![vec![(Vbuuid(1), 0)]; usize::from(VBUCKETS)];
        let ownership = Ownership { owned: VbucketSet::all(VBUCKETS), ..Ownership::default() };
        let record = BucketRecord {
            info,
            branches,
            ownership,
            given_up: BTreeMap::new(),
            commits: Default::default(),
        };
        self.cas += 1;
        self.trace.push(format!("bucket {id} made"));
        let cas = self.cas;
        let made = [record.clone()];
        self.both("a new bucket", |store| store.apply_catalog(cas, &made, &[])).expect("made");
        self.records.insert(id, record);
    }

    fn drop_a_bucket(&mut self) {
        let Some(record) = self.any_bucket().filter(|_| self.below(3) == 0) else { return };
        self.cas += 1;
        let (cas, id) = (self.cas, record.info.id);
        self.trace.push(format!("bucket {id} dropped"));
        self.held = None;
        self.both("a dropped bucket", |store| store.apply_catalog(cas, &[], &[id])).expect("gone");
        self.records.remove(&id);
        self.gone.push(record);
        self.effects.dropped += 1;
    }

    fn commit(&mut self) {
        let ids: Vec<BucketId> = self.records.keys().copied().collect();
        for bucket in ids {
            if self.below(3) > 0 {
                let batch = self.changes(bucket);
                self.trace.push(format!("commit {} {}", bucket.0, batch.mutations.len()));
                self.both("a batch", |store| store.commit(bucket, batch.clone()))
                    .expect("committed");
            }
        }
        self.effects.commits += 1;
    }

    fn rewind(&mut self) {
        let Some(record) = self.any_bucket() else { return };
        let mut to = Vec::new();
        for vbucket in (0..VBUCKETS).map(VbucketId) {
            let end = self.end(record.info.id, vbucket).end.0;
            match self.below(4) {
                0 => to.push((vbucket, Seqno(0))),
                1 | 2 => to.push((vbucket, Seqno(self.below(end + 3)))),
                _ => {}
            }
        }
        self.trace.push(format!("rewind of {} to {to:?}", record.info.id));
        let done = self.both("a rewind", |store| store.rewind(&record, &to));
        self.effects.rewound += u32::from(done.is_ok() && !to.is_empty());
    }

    fn purge(&mut self) {
        let Some(record) = self.any_bucket() else { return };
        let id = record.info.id;
        let to: Vec<(VbucketId, Seqno)> = (0..VBUCKETS)
            .map(|v| (VbucketId(v), Seqno(self.below(self.end(id, VbucketId(v)).end.0 + 3))))
            .collect();
        self.trace.push(format!("purge of {id} to {to:?}"));
        self.both("a purge", |store| store.purge(id, &to)).expect("purged");
        self.effects.purged += 1;
    }

    /// Removes a vbucket, and copies another state of it.
    fn copy(&mut self) {
        let (Some(record), vbucket) = (self.any_bucket(), self.any_vbucket()) else { return };
        let id = record.info.id;
        let purged = Seqno(1 + self.below(20));
        self.trace.push(format!("copy of {id}, vbucket {vbucket}"));
        if self.end(id, vbucket).end.0 > 0 {
            let begun = self.both("a copy over data", |s| s.begin_purged(&record, vbucket, purged));
            begun.expect_err("there is something");
        }
        let mut without = record.clone();
        without.branches[usize::from(vbucket.0)].clear();
        self.records.insert(id, without.clone());
        self.both("a removal", |store| store.remove_vbucket(&without, vbucket)).expect("removed");
        self.interrupt();
        if self.below(4) == 0 {
            return;
        }
        self.both("a copy", |store| store.begin_purged(&without, vbucket, purged)).expect("begun");
        let mut documents = Vec::new();
        for n in 0..IDS {
            let (id, seqno) = (format!("d{n}"), Seqno(1 + self.below(purged.0)));
            if vbucket_of(&id, VBUCKETS) == vbucket && self.below(2) == 0 {
                documents.push(StoredDocument { id, seqno, document: self.any_text() });
            }
        }
        for piece in documents.chunks(2) {
            self.both("copied documents", |store| store.put_documents(id, piece)).expect("put");
            self.interrupt();
        }
        self.effects.copied += 1;
    }

    /// With some probability, reopens the store on disk during an operation of several steps.
    fn interrupt(&mut self) {
        if self.below(8) == 0 {
            self.reopen();
        }
        self.compare();
    }

    fn put_records(&mut self) {
        let Some(mut record) = self.any_bucket() else { return };
        record.branches[1].insert(0, (Vbuuid(self.next_branch), 0));
        self.next_branch += 1;
        self.both("records", |store| store.put_records(std::slice::from_ref(&record)))
            .expect("put");
        self.records.insert(record.info.id, record);
    }

    /// Calls of a task that has not received the drop of its bucket change nothing.
    fn call_a_dropped_bucket(&mut self) {
        let Some(record) = self.gone.last().cloned() else { return };
        let (id, vbucket) = (record.info.id, VbucketId(0));
        let called = [
            self.both("a late batch", |store| store.commit(id, Batch::default())),
            self.both("a late purge", |store| store.purge(id, &[(vbucket, Seqno(1))])),
            self.both("a late rewind", |store| store.rewind(&record, &[(vbucket, Seqno(0))])),
            self.both("a late copy", |store| store.begin_purged(&record, vbucket, Seqno(1))),
            self.both("late documents", |store| store.put_documents(id, &[])),
        ];
        assert!(called.iter().all(|result| *result == Err(ErrorCode::Unknown)), "{called:?}");
        let put = |store: &dyn DocumentStore| store.put_records(std::slice::from_ref(&record));
        self.both("late records", put).expect("ignored");
    }

    fn hold(&mut self) {
        let Some(record) = self.any_bucket() else { return };
        let after = format!("d{}", self.below(IDS));
        let after = Some(&*after).filter(|_| self.below(2) == 0);
        let taken = self.stores().map(|store| store.snapshot_after(record.info.id, after));
        self.held = Some(taken.map(|snapshot| snapshot.expect("a snapshot")));
    }

    /// Checks that both stores have equal contents.
    fn compare(&mut self) {
        self.both("the buckets", |store| store.buckets()).expect("buckets");
        self.both("the catalog's cas", |store| store.catalog_cas()).expect("a cas");
        let ids: Vec<BucketId> = self.records.keys().copied().collect();
        for id in ids {
            let bytes = 1 + self.below(300) as usize;
            self.both("the documents", |store| all(&mut *store.snapshot(id)?, bytes))
                .expect("documents");
            self.both("the extents", |store| store.extents(id)).expect("extents");
            let some: Vec<String> =
                (0..self.below(8)).map(|_| format!("d{}", self.below(IDS))).collect();
            let bytes_max = self.below(20_000) as usize;
            // `OverLimit` is a result too.
            let _same = self.both("some documents", |store| store.get(id, &some, bytes_max));
            for one in &some {
                self.both("a document", |store| store.contains(id, one)).expect("an answer");
                self.both("a change", |store| known_change(store, id, one)).expect("an answer");
            }
            let cut = self.any_kept_cut(id);
            let _same = self
                .both("documents as of a cut", |store| store.get_at(id, &some, &cut, bytes_max));
            for one in &some {
                let one = std::slice::from_ref(one);
                self.both("a document as of a cut", |s| s.get_at(id, one, &cut, usize::MAX))
                    .expect("an answer");
            }
            for vbucket in (0..VBUCKETS).map(VbucketId) {
                let end = self.end(id, vbucket).end.0;
                let (after, to) = (Seqno(self.below(end + 2)), Seqno(self.below(end + 4)));
                for (after, to) in [(Seqno(0), Seqno(u64::MAX)), (after, to)] {
                    let range = LogRange { bucket: id, vbucket, after, to };
                    self.both("a log", |store| log(store, range, bytes)).expect("a log");
                }
                self.both("bytes of a log", |store| store.log_bytes_to(id, vbucket, to))
                    .expect("bytes");
            }
        }
    }

    /// Returns a random cut at which no log is purged.
    fn any_kept_cut(&self, bucket: BucketId) -> Vec<Seqno> {
        let seqno = |v| {
            let LogExtent { purged, end, .. } = self.end(bucket, VbucketId(v));
            Seqno(purged.0 + self.below(end.0 - purged.0 + 2))
        };
        (0..VBUCKETS).map(seqno).collect()
    }

    /// Reads the open snapshots, which must have the contents of their moment.
    fn compare_held(&mut self) {
        let Some([mut disk, mut memory]) = self.held.take() else { return };
        let (disk, memory) = (all(&mut *disk, 50), all(&mut *memory, 50));
        assert_eq!(code(disk), code(memory), "a held snapshot");
        self.effects.held += 1;
    }
}

#[test]
fn both_stores_return_equal_results() {
    let mut counted = Effects::default();
    for seed in 0..HISTORIES {
        let mut both = Both::new(seed);
        for step in 0..STEPS {
            let ran = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                both.step();
                both.compare();
                if both.below(6) == 0 {
                    both.compare_held();
                }
            }));
            if let Err(panic) = ran {
                eprintln!("in history {seed}, step {step}");
                std::panic::resume_unwind(panic);
            }
        }
        both.reopen();
        both.compare();
        let Effects {
            commits,
            reopened,
            rewound,
            purged,
            copied,
            dropped,
            refused,
            held,
            maintained,
        } = both.effects;
        counted.maintained += maintained;
        counted.commits += commits;
        counted.reopened += reopened;
        counted.rewound += rewound;
        counted.purged += purged;
        counted.copied += copied;
        counted.dropped += dropped;
        counted.refused += refused;
        counted.held += held;
    }
    let Effects { commits, reopened, rewound, purged, copied, dropped, refused, held, maintained } =
        counted;
    let enough = [
        (commits, 800),
        (maintained, 100),
        (reopened, 200),
        (rewound, 60),
        (purged, 100),
        (copied, 50),
        (dropped, 20),
        (refused, 100),
        (held, 30),
    ];
    assert!(enough.iter().all(|(count, least)| count >= least), "{enough:?}");
}
