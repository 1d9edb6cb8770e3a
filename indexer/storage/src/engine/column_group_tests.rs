//! Column groups through the store. A scan does not read a separated column that it does not need.
//! Two known bugs of another store, in which columns that moved between groups returned old or
//! deleted values, are replayed. Here the columns are the entry and its included values, first in
//! one group and then in two.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use proto::ErrorCode;
use proto::env::{Env, OpenMode};
use proto::expr::{ColumnType, Expr};
use proto::model::ids::{
    BucketId, Epoch, Generation, IndexId, LocalIndexId, NodeId, Seqno, SliceNo,
};
use proto::model::index::{IncludedColumn, IndexInfo, IndexSpec};
use proto::rpc::mutation::{KeyVersionsWriter, MutationKind};
use proto::rpc::scan::KeyRange;
use proto::value::path::Step;

use crate::batch::{EpochBatch, VbucketMutations};
use crate::engine::storage_engine::StorageEngine;
use crate::engine::storage_engine::tests::horizon_mark;
use crate::file_id::FileId;
use crate::maintain::compaction::{CompactionScope, compact_index};
use crate::options::StoreOptions;
use crate::read::snapshot::Snapshot;
use crate::rows::columns::{Columns, Grouping};
use crate::slice_store::SliceStore;
use crate::{layout, manifest};

const INDEX: LocalIndexId = LocalIndexId { index: IndexId(1), generation: Generation(0) };
const SLICE: SliceNo = SliceNo(0);
const NODE: NodeId = NodeId(7);
const GROUPS: [Columns; 4] = [Columns::FORWARD, Columns::ENTRY, Columns::INCLUDE, Columns::BACK];

fn info() -> Arc<IndexInfo> {
    let expr = Expr::Path(vec![Step::Field("more".into())]);
    let include = IncludedColumn { expr, name: "more".into(), column_type: ColumnType::Text };
    let spec = IndexSpec { include: vec![include], ..IndexSpec::new("i", "b") };
    Arc::new(IndexInfo::new(INDEX.index, BucketId(1), spec, vec![vec![NODE]]))
}

/// A document with one entry and its included value, or without entries.
type State<'a> = (&'a str, Option<&'a str>);

fn body(states: &[State<'_>]) -> Bytes {
    let mut writer = KeyVersionsWriter::default();
    for (id, include) in states {
        writer.mutation(1, MutationKind::Upsert, id, 1);
        writer.index(INDEX, usize::from(include.is_some()));
        if let Some(include) = include {
            writer.entry(SLICE, b"key-", include.as_bytes());
        }
    }
    writer.finish()
}

/// A store with one index, in its own directory.
struct Node {
    dir: tempfile::TempDir,
    store: Option<StorageEngine>,
    epoch: u64,
}

impl Node {
    /// Creates an index with some documents.
    async fn new(grouping: Grouping, documents: &[State<'_>]) -> Self {
        let mut node = Self { dir: tempfile::tempdir().unwrap(), store: None, epoch: 0 };
        node.open();
        let store = node.store();
        store.begin_build(info(), grouping).await.unwrap();
        store.begin_backfill(INDEX).await.unwrap();
        store.backfill(INDEX, body(documents)).await.unwrap();
        node.apply(&[]).await;
        node.store().finish_build(INDEX, &horizon_mark(1)).await.unwrap();
        node
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    fn open(&mut self) {
        let opened = StorageEngine::open(&Env::real(), NODE, self.path(), StoreOptions::default());
        let store = opened.unwrap();
        store.load_all();
        self.store = Some(store);
    }

    fn restart(&mut self) {
        self.store = None;
        self.open();
    }

    fn store(&self) -> &StorageEngine {
        self.store.as_ref().unwrap()
    }

    /// Applies an epoch and flushes it at once.
    async fn apply(&mut self, states: &[State<'_>]) {
        self.epoch += 1;
        let piece = VbucketMutations {
            body: body(states),
            base: Seqno(0),
            after: Seqno(0),
            to: Seqno(u64::MAX),
        };
        let batch =
            EpochBatch { mark: horizon_mark(self.epoch), pieces: vec![piece], commits: Vec::new() };
        self.store().apply(batch).await.unwrap();
        self.store().flush().await.unwrap();
    }

    async fn regroup(&self, grouping: Grouping) {
        self.store().regroup(INDEX, grouping).await.unwrap();
    }

    /// Merges the fragments of one group into one.
    fn compact_only(&self, group: Columns) {
        let context = &self.store().context;
        let index = context.state.get(INDEX).unwrap();
        let others = GROUPS.into_iter().filter(|other| *other != group);
        let mut done = others.map(|other| (other, SLICE)).collect();
        assert!(
            compact_index(&index, &context.files, CompactionScope::Everything(&mut done)).unwrap()
        );
    }

    fn snapshot(&self) -> Arc<dyn Snapshot> {
        self.store().snapshot(INDEX, Epoch(self.epoch)).unwrap()
    }

    /// Returns the visible included values, and checks that a scan of the entries alone finds
    /// equally many.
    fn shown(&self) -> Vec<String> {
        let read = |include| {
            let snapshot = self.snapshot();
            let mut rows = snapshot.rows(&[SLICE], &KeyRange::all(), false, include).unwrap();
            let mut found = Vec::new();
            while rows.next().unwrap() {
                found.push(String::from_utf8(rows.include().to_vec()).unwrap());
            }
            found
        };
        let values = read(true);
        assert_eq!(read(false).len(), values.len(), "entries without their values");
        values
    }

    /// Checks the visible values: now, after a restart, after another change of groups, and after
    /// all compactions.
    async fn shows(&mut self, values: &[&str]) {
        assert_eq!(self.shown(), values, "at once");
        self.restart();
        assert_eq!(self.shown(), values, "after a restart");
        for (step, grouping) in [Grouping::Apart, Grouping::Together].into_iter().enumerate() {
            self.regroup(grouping).await;
            assert_eq!(self.shown(), values, "after the columns moved, {step}");
            self.restart();
            assert_eq!(self.shown(), values, "after that and a restart, {step}");
        }
        self.store().compact().await.unwrap();
        assert_eq!(self.shown(), values, "compacted");
        self.regroup(Grouping::Apart).await;
        self.store().compact().await.unwrap();
        self.restart();
        assert_eq!(self.shown(), values, "compacted apart, after a restart");
    }

    /// Returns the fragments that serve a column.
    fn fragments(&self, column: Columns) -> Vec<FileId> {
        let dir = layout::manifest_dir(self.path());
        let manifest = manifest::read_index(&*Env::real().fs, &dir, INDEX)
            .unwrap()
            .map(|(manifest, _)| manifest);
        let lists = manifest.unwrap().slices.remove(&SLICE).unwrap();
        let items = lists.groups.into_iter().flat_map(|group| group.items);
        items.filter(|item| item.columns.contains(column)).map(|item| item.file).collect()
    }
}

#[tokio::test]
async fn a_scan_without_included_values_never_reads_their_fragments() {
    let mut node = Node::new(Grouping::Apart, &[("a", Some("1")), ("b", Some("2"))]).await;
    node.apply(&[("a", Some("3")), ("c", Some("4"))]).await;
    assert_eq!(node.shown(), ["3", "2", "4"]);
    let (entries, values) = (node.fragments(Columns::ENTRY), node.fragments(Columns::INCLUDE));
    assert_eq!((entries.len(), values.len()), (2, 2));
    assert!(entries.iter().all(|file| !values.contains(file)));
    node.store = None;
    for file in values {
        let path = layout::fragment_path(node.path(), file.0);
        let file = Env::real().fs.open(&path, OpenMode::ReadWrite).unwrap();
        let mut byte = [0];
        file.read_exact_at(&mut byte, 40).unwrap();
        file.write_all_at(&[byte[0] ^ 1], 40).unwrap();
    }
    node.open();
    let count = |include| -> proto::Result<usize> {
        let mut rows = node.snapshot().rows(&[SLICE], &KeyRange::all(), false, include)?;
        let mut count = 0;
        while rows.next()? {
            count += 1;
        }
        Ok(count)
    };
    assert_eq!(count(false).unwrap(), 3);
    assert_eq!(count(true).unwrap_err().code, ErrorCode::Corrupt, "the values are damaged");
}

/// The first trace: a column's newest value, in a merged fragment, must outrank older values in the
/// merge's inputs. Here a merge at the bottom has even rounded the value's epoch below theirs.
#[tokio::test]
async fn a_column_that_moves_keeps_its_newest_value() {
    for merged in [Columns::INCLUDE, Columns::ENTRY] {
        let mut node = Node::new(Grouping::Together, &[]).await;
        node.apply(&[("a", Some("old")), ("b", Some("other"))]).await;
        node.regroup(Grouping::Apart).await;
        node.apply(&[("a", Some("new"))]).await;
        node.compact_only(merged);
        node.regroup(Grouping::Together).await;
        node.shows(&["new", "other"]).await;
    }
}

/// The second trace: after a merge in one group has dropped a tombstone, the deleted value must not
/// reappear from a fragment of the other group.
#[tokio::test]
async fn a_deleted_value_never_reappears_when_columns_move() {
    for merged in [Columns::ENTRY, Columns::INCLUDE] {
        let mut node = Node::new(Grouping::Together, &[]).await;
        node.apply(&[("a", Some("erased")), ("b", Some("kept"))]).await;
        node.regroup(Grouping::Apart).await;
        node.apply(&[("a", None)]).await;
        node.compact_only(merged);
        node.regroup(Grouping::Together).await;
        node.shows(&["kept"]).await;
    }
}

/// After groups were joined, the fragments of single columns are merged together. Later fragments
/// are merged separately, and a full compaction leaves one fragment.
#[tokio::test]
async fn joined_groups_become_one_fragment_again() {
    let mut node = Node::new(Grouping::Apart, &[("a", Some("1"))]).await;
    node.apply(&[("b", Some("2"))]).await;
    node.compact_only(Columns::ENTRY);
    node.regroup(Grouping::Together).await;
    node.apply(&[("a", None), ("c", Some("3"))]).await;
    assert_eq!(node.shown(), ["2", "3"]);
    node.store().compact().await.unwrap();
    assert_eq!(node.shown(), ["2", "3"]);
    assert_eq!(node.fragments(Columns::FORWARD).len(), 1);
    assert_eq!(node.fragments(Columns::ENTRY).len(), 1);
}

/// After groups were joined, their columns have parallel chains of fragments that end at different
/// fragments. A merge of a part of these fragments would write rows that exist in only one chain.
#[tokio::test]
async fn merges_never_cut_parallel_chains() {
    let ids: Vec<String> = (0..400).map(|n| format!("d{n:03}")).collect();
    // Values are much larger than entries and share no prefix.
    let values: Vec<String> = (0..500).map(|n| format!("{n:03}{}", "more ".repeat(200))).collect();
    let states = ids.iter().zip(&values).map(|(id, value)| (id.as_str(), Some(value.as_str())));
    let mut node = Node::new(Grouping::Apart, &[]).await;
    node.apply(&states.collect::<Vec<_>>()).await;
    let mut expected: Vec<&str> = values.iter().take(400).map(String::as_str).collect();
    for n in 0..20 {
        if n == 4 {
            // One small fragment now has all entries; the values are in the large first fragment and in others.
            node.compact_only(Columns::ENTRY);
            node.regroup(Grouping::Together).await;
        }
        node.apply(&[(&ids[n], Some(&values[400 + n]))]).await;
        expected[n] = &values[400 + n];
        let context = &node.store().context;
        let index = context.state.get(INDEX).unwrap();
        while compact_index(&index, &context.files, CompactionScope::WherePays).unwrap() {}
        assert_eq!(node.shown(), expected);
    }
    assert!(node.fragments(Columns::INCLUDE).len() < 20, "something was merged");
    node.shows(&expected).await;
}
