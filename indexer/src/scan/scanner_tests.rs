//! Scans of a real store: the rows that they return.

use std::path::PathBuf;

use proto::ErrorCode;
use proto::env::Env;
use proto::expr::aggregate::AggregateFunction;
use proto::expr::{ColumnType, Expr};
use proto::model::cut::{Cut, EpochMark, Position};
use proto::model::ids::{
    BucketId, Epoch, Generation, IndexId, LocalIndexId, NodeId, Seqno, SliceNo, VbucketId, Vbuuid,
};
use proto::model::index::{IndexInfo, KeyPart};
use proto::rpc::mutation::{KeyVersionsWriter, MutationKind};
use storage::{EpochBatch, Grouping, Piece, SliceStore, StorageEngine, StoreOptions};

use super::*;

const INDEX: LocalIndexId = LocalIndexId { index: IndexId(1), generation: Generation(0) };
const NODE: NodeId = NodeId(7);

/// An index on (country, pop), one slice.
fn info() -> Arc<IndexInfo> {
    let part = |name: &str| KeyPart {
        expr: Expr::Path(vec![Step::Field(name.into())]),
        name: name.into(),
        column_type: ColumnType::Text,
        descending: false,
        include_missing: false,
    };
    let keys = vec![part("country"), part("pop")];
    let spec = IndexSpec { primary: false, keys, ..IndexSpec::new("i", "b") };
    Arc::new(IndexInfo::new(INDEX.index, BucketId(1), spec, vec![vec![NODE]]))
}

fn entry_key(country: &str, pop: i64) -> Vec<u8> {
    let mut bytes = Vec::new();
    key::encode_part(&Value::String(country.into()), false, &mut bytes);
    key::encode_part(&Value::int(pop), false, &mut bytes);
    bytes
}

/// A state of a document: its seqno, its id, the entries it has from now on.
type State<'a> = (u64, &'a str, &'a [(&'a str, i64)]);

/// Packed key-versions.
fn body(states: &[State<'_>]) -> Bytes {
    let mut writer = KeyVersionsWriter::default();
    for (seqno, id, entries) in states {
        writer.mutation(*seqno, MutationKind::Upsert, id, 1);
        writer.index(INDEX, entries.len());
        for (country, pop) in *entries {
            writer.entry(SliceNo(0), &entry_key(country, *pop), b"");
        }
    }
    writer.finish()
}

fn mark(epoch: u64, seqno: u64) -> EpochMark {
    let position = Position { vbuuid: Vbuuid(9), seqno: Seqno(seqno) };
    EpochMark {
        bucket: BucketId(1),
        epoch: Epoch(epoch),
        parent: Epoch(epoch - 1),
        cut: Arc::new(Cut::zero(1).with(&[(VbucketId(0), position)])),
        horizon: Epoch(0),
        points: Arc::default(),
    }
}

fn batch(epoch: u64, to: u64, body: Bytes) -> EpochBatch {
    let piece = Piece { body, base: Seqno(0), after: Seqno(0), to: Seqno(to) };
    EpochBatch { mark: mark(epoch, to), pieces: vec![piece] }
}

/// A store with an index that shows epoch 1.
async fn built(dir: &tempfile::TempDir, documents: Bytes) -> StorageEngine {
    let path = PathBuf::from(dir.path());
    let store = StorageEngine::open(&Env::real(), NODE, &path, StoreOptions::default());
    let store = store.expect("the store opens");
    store.begin_build(info(), Grouping::Together).await.unwrap();
    store.begin_backfill(INDEX).await.unwrap();
    store.backfill(INDEX, documents).await.unwrap();
    store.apply(batch(1, 100, Bytes::new())).await.unwrap();
    store.finish_build(INDEX, &mark(1, 100)).await.unwrap();
    store
}

fn scan(ranges: Vec<KeyRange>) -> ShardScan {
    ShardScan {
        bucket: BucketId(1),
        index: INDEX,
        slices: vec![SliceNo(0)],
        epoch: Epoch(1),
        ranges,
        filter: None,
        reverse: false,
        distinct_parts: None,
        resume_after: None,
        limit: None,
        output: Output::Rows { include: false },
        timeout_ms: 1000,
    }
}

/// The countries of the rows that a scan returns.
fn countries(store: &StorageEngine, scan: ShardScan) -> Vec<String> {
    let snapshot = store.snapshot(INDEX, scan.epoch).unwrap();
    let mut scanner = ShardScanner::new(snapshot, scan, 64 << 10).unwrap();
    let mut found = Vec::new();
    loop {
        match scanner.step(STEP_COST).unwrap() {
            Some(ShardBatch::Rows(block)) => {
                for row in block.iter() {
                    let value = key::decode_part(&mut &row.entry[..], false).unwrap();
                    found.push(value.as_str().unwrap().to_owned());
                }
            }
            Some(ShardBatch::Done) => return found,
            Some(ShardBatch::Moved(places)) => panic!("moved: {places:?}"),
            Some(ShardBatch::Partials(_)) | None => {}
        }
    }
}

fn point(country: &str, pop: i64) -> KeyRange {
    let low = entry_key(country, pop);
    let high = key::successor(&low).map(Bytes::from);
    KeyRange { low: low.into(), high }
}

#[tokio::test]
async fn distinct_applies_across_ranges_and_across_the_resume_point() {
    let dir = tempfile::tempdir().unwrap();
    let documents = body(&[
        (1, "k1", &[("a", 1)]),
        (2, "k2", &[("a", 2)]),
        (3, "k3", &[("b", 1)]),
        (4, "k4", &[("b", 2)]),
    ]);
    let store = built(&dir, documents).await;
    let ranges = vec![point("a", 1), point("a", 2), point("b", 1), point("b", 2)];
    let distinct = ShardScan { distinct_parts: Some(1), limit: Some(2), ..scan(ranges.clone()) };
    assert_eq!(countries(&store, distinct.clone()), ["a", "b"]);
    let reverse = ShardScan { reverse: true, ..distinct.clone() };
    assert_eq!(countries(&store, reverse), ["b", "a"]);
    let after = [&entry_key("a", 1)[..], b"k1"].concat();
    let resumed = ShardScan { resume_after: Some(after.into()), ..distinct };
    assert_eq!(countries(&store, resumed), ["b"], "a was handed out by the replica before");
}

/// A store with documents of many countries.
async fn many(dir: &tempfile::TempDir, documents: u64) -> StorageEngine {
    let ids: Vec<_> = (1..=documents).map(|n| format!("k{n}")).collect();
    let countries: Vec<_> = (0..documents).map(|n| [("a".repeat(3000), n as i64)]).collect();
    let states: Vec<_> = countries.iter().map(|[(country, pop)]| [(&**country, *pop)]).collect();
    let states: Vec<State<'_>> = ids
        .iter()
        .zip(&states)
        .zip(1..)
        .map(|((id, entries), n)| (n, &**id, &entries[..]))
        .collect();
    built(dir, body(&states)).await
}

/// The states after each step of a scan that counts the entries for which a filter is true: the number of steps.
fn steps(store: &StorageEngine, filter: Expr) -> Result<u32> {
    let count = AggregateCall { function: AggregateFunction::Count, argument: None };
    let output = Output::Aggregates(vec![count]);
    let scan = ShardScan { filter: Some(filter), output, ..scan(vec![KeyRange::all()]) };
    let mut scanner =
        ShardScanner::new(store.snapshot(INDEX, scan.epoch).unwrap(), scan, 64 << 10)?;
    for steps in 1.. {
        if let Some(ShardBatch::Partials(_)) = scanner.step(STEP_COST)? {
            return Ok(steps);
        }
    }
    unreachable!("the scan ends")
}

#[tokio::test]
async fn a_step_is_bounded_by_the_cost_of_the_filter_and_not_by_entries() {
    let dir = tempfile::tempdir().unwrap();
    let store = many(&dir, 2_000).await;
    let column = || Box::new(Expr::Column(0));
    let like = |pattern: String| Expr::Like {
        expr: column(),
        pattern: Box::new(Expr::Literal(Value::String(pattern))),
        negated: false,
    };
    assert_eq!(steps(&store, Expr::IsNull { expr: column(), negated: false }), Ok(2));
    let heavy = steps(&store, like(format!("%_{}b%", "a".repeat(1000)))).unwrap();
    assert!(heavy >= 500, "two million letters of each entry are compared: {heavy} steps");
    let list = (0..50_000).map(|n| Expr::Literal(Value::int(n))).collect();
    let long_list =
        steps(&store, Expr::In { expr: Box::new(Expr::Column(1)), list, negated: true });
    assert!(long_list.unwrap() <= 5, "a list is looked up");
    let endless = vec![like(format!("%_{}b%", "a".repeat(1000))); 100];
    let refused = steps(&store, Expr::Or(endless)).unwrap_err();
    assert_eq!(refused.code, ErrorCode::TooComplex);
}
