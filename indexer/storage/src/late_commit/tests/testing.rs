//! Two small indexes of one bucket, for the tests of open transactions: one partitioned by id, one by an expression, each with a
//! descending key part and an included column.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use proto::env::Env;
use proto::expr::{ColumnType, Expr};
use proto::lock::lock;
use proto::model::cut::{Cut, EpochMark, Position};
use proto::model::ids::{
    BucketId, Epoch, Generation, IndexId, LocalIndexId, NodeId, Seqno, SliceNo, TransactionId,
    TransactionPlace, VbucketId, Vbuuid,
};
use proto::model::index::{IncludedColumn, IndexInfo, IndexSpec, KeyPart, PartitionBy};
use proto::rpc::mutation::{KeyVersionsWriter, MutationKind, UncommittedChanges};
use proto::rpc::scan::UncommittedView;
use proto::value::path::Step;
use proto::value::{Value, key};

use crate::batch::{EpochBatch, VbucketMutations};
use crate::engine::storage_engine::StorageEngine;
use crate::file_id::FileId;
use crate::options::StoreOptions;
use crate::read::index_version::slice_of_id;
use crate::rows::columns::Grouping;
use crate::slice_store::SliceStore;

pub const BUCKET: BucketId = BucketId(1);
const NODE: NodeId = NodeId(7);
pub const BY_ID: LocalIndexId = LocalIndexId { index: IndexId(1), generation: Generation(0) };
pub const BY_EXPR: LocalIndexId = LocalIndexId { index: IndexId(2), generation: Generation(0) };
/// Number of slices of each index.
pub const SLICES: u16 = 3;

/// The entries of a document, identical in both indexes: by (country, n), the included value.
pub type State = BTreeMap<(u8, u8), u8>;

pub fn info(index: LocalIndexId) -> Arc<IndexInfo> {
    let path = |name: &str| Expr::Path(vec![Step::Field(name.into())]);
    let part = |name: &str, descending| KeyPart {
        expr: path(name),
        name: name.into(),
        column_type: ColumnType::Text,
        descending,
        include_missing: false,
    };
    let included =
        IncludedColumn { expr: path("more"), name: "more".into(), column_type: ColumnType::Text };
    let partition = match index {
        BY_ID => PartitionBy::DocumentId,
        _ => PartitionBy::Exprs(vec![path("country")]),
    };
    let spec = IndexSpec {
        primary: false,
        keys: vec![part("country", false), part("n", true)],
        include: vec![included],
        partition,
        ..IndexSpec::new("i", "b")
    };
    let placement = vec![vec![NODE]; usize::from(SLICES)];
    Arc::new(IndexInfo::new(index.index, BUCKET, spec, placement))
}

pub fn entry_key(country: u8, n: u8) -> Vec<u8> {
    let mut bytes = Vec::new();
    key::encode_part(&Value::String(format!("c{country}")), false, &mut bytes);
    key::encode_part(&Value::int(n.into()), true, &mut bytes);
    bytes
}

fn include_of(value: u8) -> Vec<u8> {
    let mut bytes = Vec::new();
    key::encode_part(&Value::int(value.into()), false, &mut bytes);
    bytes
}

/// Returns the rows of a document in an index: slice, entry, included values.
pub fn rows_of(index: LocalIndexId, id: &str, state: &State) -> Vec<(SliceNo, Vec<u8>, Vec<u8>)> {
    let slice = |country: u8| match index {
        BY_ID => slice_of_id(&info(index), id),
        _ => SliceNo(u16::from(country) % SLICES),
    };
    let row = |((country, n), value): (&(u8, u8), &u8)| {
        let entry = [&entry_key(*country, *n), id.as_bytes()].concat();
        (slice(*country), entry, include_of(*value))
    };
    state.iter().map(row).collect()
}

/// Packed states of documents, each with its place in the message.
pub fn body<'a>(changes: impl IntoIterator<Item = (u64, &'a str, &'a State)>) -> Bytes {
    body_for(&[BY_ID, BY_EXPR], changes)
}

/// Returns packed changes that only some of the indexes have.
pub fn body_for<'a>(
    indexes: &[LocalIndexId],
    changes: impl IntoIterator<Item = (u64, &'a str, &'a State)>,
) -> Bytes {
    let mut writer = KeyVersionsWriter::default();
    for (place, id, state) in changes {
        writer.mutation(place, MutationKind::Upsert, id, indexes.len());
        for index in indexes {
            writer.index(*index, state.len());
            for (slice, entry, include) in rows_of(*index, id, state) {
                writer.entry(slice, &entry[..entry.len() - id.len()], &include);
            }
        }
    }
    writer.finish()
}

pub fn bodies(transaction: u64, from: u64, to: u64, body: Bytes) -> UncommittedChanges {
    let (from, to) = (TransactionPlace(from), TransactionPlace(to));
    UncommittedChanges { transaction: TransactionId(transaction), from, to, body }
}

pub fn own(transaction: u64, place: u64) -> UncommittedView {
    UncommittedView { transaction: TransactionId(transaction), place: TransactionPlace(place) }
}

pub fn mark(epoch: u64) -> EpochMark {
    let position = Position { vbuuid: Vbuuid(9), seqno: Seqno(epoch * 100) };
    EpochMark {
        bucket: BUCKET,
        epoch: Epoch(epoch),
        parent: Epoch(epoch - 1),
        cut: Arc::new(Cut::zero(1).with(&[(VbucketId(0), position)])),
        horizon: Epoch(0),
        points: Arc::default(),
    }
}

/// An epoch with these key-versions, of at most a hundred places.
pub fn epoch(epoch: u64, body: Bytes) -> EpochBatch {
    let base = Seqno(epoch * 100 - 100);
    let piece = VbucketMutations { body, base, after: base, to: Seqno(epoch * 100) };
    EpochBatch { mark: mark(epoch), pieces: vec![piece], commits: Vec::new() }
}

/// A store with both indexes, empty at epoch 1, whose stream carries both.
pub async fn built(env: &Env, options: StoreOptions, grouping: Grouping) -> StorageEngine {
    built_in(env, Path::new("/node"), options, grouping).await
}

/// Opens the store from the node's files.
pub fn opened(env: &Env, options: StoreOptions) -> StorageEngine {
    StorageEngine::open(env, NODE, Path::new("/node"), options).unwrap()
}

/// Builds the two indexes in a given directory.
pub async fn built_in(
    env: &Env,
    dir: &Path,
    options: StoreOptions,
    grouping: Grouping,
) -> StorageEngine {
    let store = StorageEngine::open(env, NODE, dir, options).unwrap();
    for index in [BY_ID, BY_EXPR] {
        store.begin_build(info(index), grouping).await.unwrap();
        store.begin_backfill(index).await.unwrap();
    }
    store.apply(epoch(1, Bytes::new())).await.unwrap();
    for index in [BY_ID, BY_EXPR] {
        store.finish_build(index, &mark(1)).await.unwrap();
    }
    join(&store);
    store
}

/// Informs the store that a stream begins which carries both indexes.
pub fn join(store: &StorageEngine) {
    store.late_commit().drop_transactions(BUCKET);
    for index in [BY_ID, BY_EXPR] {
        store.late_commit().carry_index(&info(index), (0..SLICES).map(SliceNo).collect());
    }
}

/// Returns the number of histories of a model test: `usual`, unless the environment sets another
/// number.
pub fn cases(usual: u32) -> u32 {
    let text = std::env::var("PROPTEST_CASES").ok();
    text.map_or(usual, |text| text.parse().expect("a number"))
}

/// The files on disk that no index names.
pub fn unnamed_files(store: &StorageEngine) -> BTreeSet<FileId> {
    let files = &store.context.files;
    files.delete_retired();
    let mut listed = BTreeSet::from_iter(files.list().unwrap());
    for index in store.context.state.indexes() {
        let named = lock(&index.fragment_lists).manifest.files();
        listed.retain(|file| !named.contains(file));
    }
    listed
}

/// Checks that no data of open transactions remains, in memory or on disk.
pub fn assert_drained(store: &StorageEngine) {
    let late = store.late_commit();
    assert_eq!((late.open(), late.bytes(), late.disk_bytes()), (0, 0, 0), "everything is freed");
    assert_eq!(unnamed_files(store), BTreeSet::new(), "every file is deleted");
    assert_eq!(store.context.files.oldest_pending(), store.context.files.next());
}
