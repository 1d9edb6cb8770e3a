//! Tests of the comparison of copies with snapshots of a changed source: the corrections make both
//! equal, and nothing else is corrected.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use proto::env::Env;
use proto::model::cut::{EpochMark, Position};
use proto::model::ids::{
    BucketId, Epoch, Generation, IndexId, LocalIndexId, NodeId, Seqno, VbucketId, Vbuuid,
};
use proto::model::index::{IndexInfo, IndexSpec, PartitionBy};
use proto::rpc::scan::KeyRange;

use super::*;
use crate::batch::{EpochBatch, VbucketMutations};
use crate::engine::storage_engine::StorageEngine;
use crate::options::StoreOptions;
use crate::rows::columns::Grouping;
use crate::slice_store::SliceStore;

pub(crate) const INDEX: LocalIndexId =
    LocalIndexId { index: IndexId(1), generation: Generation(0) };
pub(crate) const NODE: NodeId = NodeId(7);
const BUCKET: BucketId = BucketId(1);

/// The entries of a document: slice, key (a number), included byte.
pub(crate) type EntryCount = BTreeSet<(u16, u8, u8)>;

#[derive(Clone, Debug, Default)]
pub(crate) struct Source {
    seqno: u64,
    documents: BTreeMap<String, (u64, EntryCount)>,
}

pub(crate) type Changes = Vec<(u8, EntryCount)>;

/// Slice, entry, included values.
pub(crate) type Row = (u16, Vec<u8>, Vec<u8>);

pub(crate) fn changes() -> impl Strategy<Value = Changes> {
    // Two of three entries have the same slice and included values, because typical changes change
    // little.
    let entry = (0..2u16, 0..6u8, 0..2u8);
    let entries = proptest::collection::btree_set(entry, 0..4).prop_map(|mut entries| {
        let mut keys = BTreeSet::new();
        entries.retain(|(slice, key, _)| keys.insert((*slice, *key)));
        entries
    });
    proptest::collection::vec((0..20u8, entries), 0..12)
}

fn id(n: u8) -> String {
    // Some ids are prefixes of others.
    "d".repeat(usize::from(n % 3) + 1) + &(n / 3).to_string()
}

fn key_of(number: u8) -> Vec<u8> {
    let mut key = Vec::new();
    proto::value::key::encode_part(&proto::value::Value::int(number.into()), false, &mut key);
    key
}

fn put(writer: &mut KeyVersionsWriter, seqno: u64, id: &str, entries: &EntryCount) {
    writer.mutation(seqno, MutationKind::Upsert, id, 1);
    writer.index(INDEX, entries.len());
    for (slice, key, include) in entries {
        writer.entry(SliceNo(*slice), &key_of(*key), &vec![*include; usize::from(*include)]);
    }
}

impl Source {
    /// Applies changes to the source; returns their key-versions.
    pub(crate) fn change(&mut self, changes: &Changes) -> Bytes {
        let mut writer = KeyVersionsWriter::default();
        for (n, entries) in changes {
            self.seqno += 1;
            put(&mut writer, self.seqno, &id(*n), entries);
            match entries.is_empty() {
                true => self.documents.remove(&id(*n)),
                false => self.documents.insert(id(*n), (self.seqno, entries.clone())),
            };
        }
        writer.finish()
    }

    /// A snapshot, a few documents at a time.
    pub(crate) fn snapshot(&self) -> Vec<Bytes> {
        let all: Vec<_> = self.documents.iter().collect();
        let pack = |some: &[(&String, &(u64, EntryCount))]| {
            let mut writer = KeyVersionsWriter::default();
            some.iter().for_each(|(id, (seqno, entries))| put(&mut writer, *seqno, id, entries));
            writer.finish()
        };
        all.chunks(3).map(pack).collect()
    }

    pub(crate) fn mark(&self, epoch: u64) -> EpochMark {
        let position = Position { vbuuid: Vbuuid(9), seqno: Seqno(self.seqno) };
        EpochMark {
            bucket: BUCKET,
            epoch: Epoch(epoch),
            parent: Epoch(epoch - 1),
            cut: Arc::new(Cut::zero(1).with(&[(VbucketId(0), position)])),
            horizon: Epoch(0),
            points: Arc::default(),
        }
    }

    pub(crate) fn batch(&self, epoch: u64, body: Bytes) -> EpochBatch {
        let piece = VbucketMutations { body, base: Seqno(0), after: Seqno(0), to: Seqno(u64::MAX) };
        EpochBatch { mark: self.mark(epoch), pieces: vec![piece], commits: Vec::new() }
    }

    /// All entries of some slices.
    pub(crate) fn rows(&self, slices: &[u16]) -> Vec<Row> {
        let of = |(id, (_, entries)): (&String, &(u64, EntryCount))| {
            let row = |(slice, key, include): &(u16, u8, u8)| {
                let entry = [&key_of(*key)[..], id.as_bytes()].concat();
                (*slice, entry, vec![*include; usize::from(*include)])
            };
            entries.iter().map(row).collect::<Vec<_>>()
        };
        let mut rows: Vec<_> = self.documents.iter().flat_map(of).collect();
        rows.retain(|(slice, ..)| slices.contains(slice));
        rows.sort();
        rows
    }
}

pub(crate) fn rows(store: &StorageEngine, epoch: u64, slices: &[u16]) -> Vec<Row> {
    let snapshot = store.snapshot(INDEX, Epoch(epoch)).expect("a snapshot");
    let mut found = Vec::new();
    for slice in slices {
        let mut rows = snapshot.rows(&[SliceNo(*slice)], &KeyRange::all(), false, true).unwrap();
        while rows.next().unwrap() {
            found.push((*slice, rows.entry().to_vec(), rows.include().to_vec()));
        }
    }
    found
}

pub(crate) async fn built(
    dir: &tempfile::TempDir,
    source: &mut Source,
    first: &Changes,
) -> StorageEngine {
    let store = StorageEngine::open(&Env::real(), NODE, dir.path(), StoreOptions::default());
    let store = store.expect("the store opens");
    let partition = PartitionBy::Exprs(Vec::new());
    let spec = IndexSpec { slices: 2, partition, ..IndexSpec::new("i", "b") };
    let info = Arc::new(IndexInfo::new(INDEX.index, BUCKET, spec, vec![vec![NODE]; 2]));
    store.begin_build(info, Grouping::Together).await.unwrap();
    store.begin_backfill(INDEX).await.unwrap();
    source.change(first);
    for body in source.snapshot() {
        store.backfill(INDEX, body).await.unwrap();
    }
    store.apply(source.batch(1, Bytes::new())).await.unwrap();
    store.finish_build(INDEX, &source.mark(1)).await.unwrap();
    store
}

async fn corrections(store: &StorageEngine, source: &Source) -> Bytes {
    let cut = Cut::clone(&source.mark(1).cut);
    let mut comparison = store.compare(INDEX, cut).await.expect("it begins");
    for body in source.snapshot() {
        comparison.compare_documents(&body).expect("in order");
    }
    comparison.finish(u64::MAX).expect("an end")
}

fn ids(body: &[u8]) -> Vec<String> {
    KeyVersionsReader::new(body).map(|versions| versions.unwrap().id.to_owned()).collect()
}

/// Changes that are applied as epochs, then changes that are missing in the stream.
#[derive(Clone, Debug)]
struct Case {
    first: Changes,
    epochs: Vec<(Changes, u8)>,
    missed: Changes,
    /// True if slice 0 is dropped from the node before the comparison.
    one_slice: bool,
}

fn cases() -> impl Strategy<Value = Case> {
    let epochs = proptest::collection::vec((changes(), 0..4u8), 0..6);
    let case = (changes(), epochs, changes(), any::<bool>());
    case.prop_map(|(first, epochs, missed, one_slice)| Case { first, epochs, missed, one_slice })
}

async fn corrected(case: Case) {
    let dir = tempfile::tempdir().unwrap();
    let mut source = Source::default();
    let store = built(&dir, &mut source, &case.first).await;
    let mut epoch = 1;
    for (changes, then) in &case.epochs {
        epoch += 1;
        let body = source.change(changes);
        store.apply(source.batch(epoch, body)).await.unwrap();
        match then {
            0 => store.flush().await.unwrap(),
            1 => store.compact().await.unwrap(),
            _ => {}
        }
    }
    let mut slices = vec![0, 1];
    if case.one_slice {
        let slice = INDEX.slice(SliceNo(0));
        store.drop_slice(slice).await.unwrap();
        slices.remove(0);
    }
    let before = source.clone();
    source.change(&case.missed);
    let corrections = corrections(&store, &source).await;
    let has = |source: &Source, id: &String| {
        let entries = source.documents.get(id).map(|(_, entries)| entries.iter());
        let here = entries.into_iter().flatten().filter(|entry| slices.contains(&entry.0));
        here.copied().collect::<Vec<_>>()
    };
    let all: BTreeSet<_> = before.documents.keys().chain(source.documents.keys()).collect();
    let differ = all.into_iter().filter(|id| has(&before, id) != has(&source, id));
    assert_eq!(ids(&corrections), differ.cloned().collect::<Vec<_>>());
    store.apply(source.batch(epoch + 1, corrections)).await.unwrap();
    assert_eq!(rows(&store, epoch + 1, &slices), source.rows(&slices));
    assert_eq!(rows(&store, epoch, &slices), before.rows(&slices), "the past stays");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn corrections_make_a_copy_equal_to_the_snapshot(case in cases()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(corrected(case));
    }
}

fn some_changes(count: u8) -> Changes {
    (0..count).map(|n| (n, [(u16::from(n % 2), n % 6, 1)].into())).collect()
}

#[tokio::test]
async fn a_slice_that_was_split_is_compared_entry_by_entry() {
    let dir = tempfile::tempdir().unwrap();
    let mut source = Source::default();
    let store = built(&dir, &mut source, &some_changes(20)).await;
    let slice = INDEX.slice(SliceNo(1));
    store.split(slice, &key_of(3), SliceNo(2), SliceNo(3)).await.unwrap();
    for (_, entries) in source.documents.values_mut() {
        let moved = |(slice, key, include): &(u16, u8, u8)| match slice {
            1 => (if *key < 3 { 2 } else { 3 }, *key, *include),
            other => (*other, *key, *include),
        };
        *entries = entries.iter().map(moved).collect();
    }
    assert!(corrections(&store, &source).await.is_empty(), "nothing differs");
    source.change(&vec![(0, [(2, 1, 0)].into()), (1, EntryCount::new())]);
    let corrections = corrections(&store, &source).await;
    assert_eq!(ids(&corrections), [id(0), id(1)]);
    store.apply(source.batch(2, corrections)).await.unwrap();
    assert_eq!(rows(&store, 2, &[0, 2, 3]), source.rows(&[0, 2, 3]));
}

#[tokio::test]
async fn an_impossible_comparison_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let mut source = Source::default();
    let store = built(&dir, &mut source, &some_changes(20)).await;
    let begin = || store.compare(INDEX, Cut::zero(1));
    let mut snapshot = source.snapshot();
    snapshot.reverse();
    let mut comparison = begin().await.expect("it begins");
    let outcome = snapshot.iter().try_for_each(|body| comparison.compare_documents(body));
    assert_eq!(outcome.map_err(|error| error.code), Err(ErrorCode::Unsupported));
    let comparison = begin().await.expect("it begins");
    let too_long = comparison.finish(40).map_err(|error| error.code);
    assert_eq!(too_long, Err(ErrorCode::OverLimit), "everything is gone, which is much");
    let generation =
        store.compare(LocalIndexId { generation: Generation(1), ..INDEX }, Cut::zero(1)).await;
    assert_eq!(generation.err().map(|error| error.code), Some(ErrorCode::SliceMoved));
}
