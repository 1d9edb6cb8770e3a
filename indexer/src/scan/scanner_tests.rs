//! Scans of a real store: the rows that they return.

use std::path::PathBuf;

use proto::ErrorCode;
use proto::env::Env;
use proto::expr::aggregate::AggregateFunction;
use proto::expr::{ColumnType, CompareOp, Expr, Function};
use proto::model::cut::{Cut, EpochMark, Position};
use proto::model::ids::{
    BucketId, Epoch, Generation, IndexId, LocalIndexId, NodeId, Seqno, SliceNo, VbucketId, Vbuuid,
};
use proto::model::index::{IndexInfo, KeyPart, PartitionBy};
use proto::rpc::mutation::{KeyVersionsWriter, MutationKind};
use proto::rpc::scan::KeyRange;
use proto::value::Value;
use proto::value::path::Step;
use storage::{EpochBatch, Grouping, SliceStore, StorageEngine, StoreOptions, VbucketMutations};

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

/// Returns packed key-versions of the states.
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
    let piece = VbucketMutations { body, base: Seqno(0), after: Seqno(0), to: Seqno(to) };
    EpochBatch { mark: mark(epoch, to), pieces: vec![piece], commits: Vec::new() }
}

/// Creates a store with an index that is at epoch 1.
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
        own: None,
        ranges: ranges.into(),
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
    let mut scanner = ShardScanner::new(snapshot, Arc::new(scan), 64 << 10).unwrap();
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
            Some(other @ (ShardBatch::Moved(_) | ShardBatch::Failed(..))) => panic!("{other:?}"),
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
    assert_eq!(countries(&store, ShardScan { reverse: true, ..distinct.clone() }), ["b", "a"]);
    let after = [&entry_key("a", 1)[..], b"k1"].concat();
    let resumed = ShardScan { resume_after: Some(after.into()), ..distinct };
    assert_eq!(countries(&store, resumed), ["b"], "a was handed out by the replica before");
}

#[tokio::test]
async fn the_rows_before_an_entry_for_which_the_filter_fails_come_first() {
    let dir = tempfile::tempdir().unwrap();
    let documents = body(&[
        (1, "k1", &[("a", 1)]),
        (2, "k2", &[("b", 1)]),
        (3, "k3", &[("c", 0)]),
        (4, "k4", &[("d", 1)]),
    ]);
    let store = built(&dir, documents).await;
    let divides = Expr::Arithmetic(
        proto::expr::ArithmeticOp::DivideIntegers,
        Box::new(Expr::Literal(Value::int(1))),
        Box::new(Expr::Column(1)),
    );
    let filter =
        Expr::Compare(CompareOp::Eq, Box::new(divides), Box::new(Expr::Literal(Value::int(1))));
    let asked = ShardScan { filter: Some(filter.into()), ..scan(vec![KeyRange::all()]) };
    let begin = |asked: &ShardScan| {
        let snapshot = store.snapshot(INDEX, asked.epoch).unwrap();
        ShardScanner::new(snapshot, Arc::new(asked.clone()), 64 << 10).unwrap()
    };
    let mut scanner = begin(&asked);
    let Ok(Some(ShardBatch::Rows(rows))) = scanner.step(STEP_COST) else { panic!("rows first") };
    assert_eq!(rows.rows, 2);
    let Ok(Some(ShardBatch::Failed(entry, error))) = scanner.step(STEP_COST) else {
        panic!("then the failure")
    };
    assert_eq!(&entry[..], [&entry_key("c", 0)[..], b"k3"].concat());
    assert_eq!(error.code, ErrorCode::DivisionByZero);
    assert_eq!(scanner.step(STEP_COST), Ok(Some(ShardBatch::Done)));
    let limited = ShardScan { limit: Some(2), ..asked.clone() };
    assert_eq!(countries(&store, limited), ["a", "b"], "the third is not looked at");
    let first = begin(&asked).first_batch(STEP_COST).unwrap();
    assert!(!first.is_whole, "the rest has the failure: {first:?}");
    let after = [&entry_key("b", 1)[..], b"k2"].concat();
    let rest = ShardScan { resume_after: Some(after.into()), ..asked };
    let first = begin(&rest).first_batch(STEP_COST).unwrap();
    assert!(first.is_whole && matches!(first.batch, ShardBatch::Failed(..)), "{first:?}");
}

/// Creates a store with documents of many countries.
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

/// Counts the entries for which a filter is true, and returns the number of steps that this takes.
fn steps(store: &StorageEngine, filter: Expr) -> Result<u32> {
    let count = AggregateCall { function: AggregateFunction::Count, argument: None };
    let output = Output::Aggregates([count].into());
    let scan = ShardScan { filter: Some(filter.into()), output, ..scan(vec![KeyRange::all()]) };
    let mut scanner =
        ShardScanner::new(store.snapshot(INDEX, scan.epoch).unwrap(), Arc::new(scan), 64 << 10)?;
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
    // A test of the type reads one tag; a comparison reads all letters.
    assert_eq!(steps(&store, Expr::IsNull { expr: column(), negated: false }), Ok(1));
    let letters = Box::new(Expr::Literal(Value::String("a".repeat(3000))));
    assert_eq!(steps(&store, Expr::Compare(CompareOp::Eq, column(), letters)), Ok(2));
    let lower = Expr::Call(Function::Lower, vec![Expr::Column(0)]);
    assert!(steps(&store, Expr::IsNull { expr: Box::new(lower), negated: false }).unwrap() >= 2);
    let fewer = tempfile::tempdir().unwrap();
    let few = many(&fewer, 100).await;
    let heavy = steps(&few, like(format!("%_{}b%", "a".repeat(1000)))).unwrap();
    assert!(heavy >= 25, "two million letters of each entry are compared: {heavy} steps");
    let list = (0..50_000).map(|n| Expr::Literal(Value::int(n))).collect();
    let long_list =
        steps(&store, Expr::In { expr: Box::new(Expr::Column(1)), list, negated: true });
    assert!(long_list.unwrap() <= 5, "a list is looked up");
    let endless = vec![like(format!("%_{}b%", "a".repeat(1000))); 100];
    let refused = steps(&store, Expr::Or(endless)).unwrap_err();
    assert_eq!(refused.code, ErrorCode::TooComplex);
}

/// Creates an index on the country, optionally descending, in two slices, with deletions at both
/// ends of the order.
async fn with_ends(dir: &tempfile::TempDir, descending: bool) -> StorageEngine {
    let mut info = IndexInfo::clone(&info());
    let mut spec = IndexSpec::clone(&info.spec);
    spec.slices = 2;
    spec.partition = PartitionBy::Exprs(vec![Expr::Path(vec![Step::Field("pop".into())])]);
    spec.keys.truncate(1);
    (spec.keys[0].descending, spec.keys[0].include_missing) = (descending, true);
    info.spec = Arc::new(spec.clone());
    info = IndexInfo::new(info.id, info.bucket, spec, vec![vec![NODE], vec![NODE]]);
    let store =
        StorageEngine::open(&Env::real(), NODE, &dir.path().join("store"), StoreOptions::default());
    let store = store.expect("the store opens");
    store.begin_build(Arc::new(info), Grouping::Together).await.unwrap();
    store.begin_backfill(INDEX).await.unwrap();
    let values = |n: u64| match n % 25 {
        0 => Value::Missing,
        1 => Value::Null,
        2 => Value::String(format!("s{n}")),
        3 => Value::Bool(true),
        _ => Value::int(n as i64),
    };
    let mut writer = KeyVersionsWriter::default();
    for n in 1..=3000u64 {
        let mut bytes = Vec::new();
        key::encode_part(&values(n), descending, &mut bytes);
        writer.mutation(n, MutationKind::Upsert, &format!("k{n}"), 1);
        writer.index(INDEX, 1);
        writer.entry(SliceNo((n % 2) as u16), &bytes, b"");
    }
    store.backfill(INDEX, writer.finish()).await.unwrap();
    store.apply(batch(1, 3000, Bytes::new())).await.unwrap();
    store.finish_build(INDEX, &mark(1, 3000)).await.unwrap();
    // All strings, and all numbers below 1,000.
    let mut writer = KeyVersionsWriter::default();
    let gone = (1..=3000u64).filter(|n| n % 25 == 2 || *n < 1000);
    for (at, n) in gone.enumerate() {
        writer.mutation(1 + at as u64, MutationKind::Deletion, &format!("k{n}"), 1);
        writer.index(INDEX, 0);
    }
    let piece = VbucketMutations {
        body: writer.finish(),
        base: Seqno(3000),
        after: Seqno(3000),
        to: Seqno(6000),
    };
    store
        .apply(EpochBatch { mark: mark(2, 6000), pieces: vec![piece], commits: Vec::new() })
        .await
        .unwrap();
    store
}

/// Runs a scan in steps of `cost`, parks it between steps, and returns its batches.
fn all_batches(store: &StorageEngine, scan: ShardScan, cost: u64) -> Vec<ShardBatch> {
    let snapshot = || store.snapshot(INDEX, scan.epoch).unwrap();
    let mut scanner = ShardScanner::new(snapshot(), Arc::new(scan.clone()), 2 << 10).unwrap();
    let mut batches = Vec::new();
    loop {
        match scanner.step(cost).unwrap() {
            Some(ShardBatch::Done) => return batches,
            Some(batch) => batches.push(batch),
            None => {}
        }
        if matches!(batches.last(), Some(ShardBatch::Partials(_))) {
            return batches;
        }
        scanner.park();
        scanner.unpark(snapshot());
    }
}

#[tokio::test]
async fn aggregates_that_read_ends_and_count_blocks_agree_with_the_rows() {
    for descending in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let store = with_ends(&dir, descending).await;
        store.flush().await.unwrap();
        let bound = |n: i64| {
            let mut bytes = Vec::new();
            key::encode_part(&Value::int(n), descending, &mut bytes);
            Bytes::from(bytes)
        };
        let (one, other) = if descending { (2000, 1500) } else { (1500, 2000) };
        let between = KeyRange { low: bound(one), high: Some(bound(other)) };
        let below = KeyRange { low: Bytes::new(), high: Some(between.low.clone()) };
        let none =
            KeyRange { low: b"\x90".as_slice().into(), high: Some(b"\x91".as_slice().into()) };
        let asked =
            [vec![KeyRange::all()], vec![below, between.clone()], vec![between], vec![none]];
        let both = vec![SliceNo(0), SliceNo(1)];
        for (epoch, slices, ranges) in asked.into_iter().flat_map(|ranges| {
            let with = move |(epoch, slices): (u64, &Vec<SliceNo>)| {
                (epoch, slices.clone(), ranges.clone())
            };
            [(1, &both), (2, &both), (2, &vec![SliceNo(1)])].map(with)
        }) {
            let plain = ShardScan { epoch: Epoch(epoch), slices, ..scan(ranges) };
            let mut values = Vec::new();
            for batch in all_batches(&store, plain.clone(), u64::MAX) {
                let ShardBatch::Rows(block) = batch else { panic!("{batch:?}") };
                let value = |row: proto::rpc::rows::Row<'_>| {
                    key::decode_part(&mut &row.entry[..], descending)
                };
                values.extend(block.iter().map(|row| value(row).unwrap()));
            }
            let function = |function, argument: Option<Expr>| AggregateCall { function, argument };
            let calls = vec![
                function(AggregateFunction::Max, Some(Expr::Column(0))),
                function(AggregateFunction::Count, None),
                function(AggregateFunction::Min, Some(Expr::Column(0))),
            ];
            let mut expected: Vec<_> =
                calls.iter().map(|call| PartialAggregate::new(call.function)).collect();
            for value in &values {
                expected[0].add(value);
                expected[1].add_rows(1);
                expected[2].add(value);
            }
            for cost in [1, 10 * ENTRY_COST, STEP_COST] {
                let aggregates = Output::Aggregates(calls.clone().into());
                let asked = ShardScan { output: aggregates, ..plain.clone() };
                let found = all_batches(&store, asked, cost);
                assert_eq!(found, [ShardBatch::Partials(expected.clone())], "{plain:?}");
                for reverse in [false, true] {
                    let asked = ShardScan { reverse, ..plain.clone() };
                    let found = all_batches(&store, asked, cost);
                    let rows = |batch: &ShardBatch| match batch {
                        ShardBatch::Rows(block) => block.rows as usize,
                        other => panic!("{other:?}"),
                    };
                    assert_eq!(found.iter().map(rows).sum::<usize>(), values.len(), "{plain:?}");
                }
            }
        }
    }
}

#[tokio::test]
async fn the_least_value_of_an_index_is_found_without_a_walk() {
    let dir = tempfile::tempdir().unwrap();
    let store = with_ends(&dir, false).await;
    let least = AggregateCall { function: AggregateFunction::Min, argument: Some(Expr::Column(0)) };
    let asked =
        ShardScan { output: Output::Aggregates([least].into()), ..scan(vec![KeyRange::all()]) };
    let snapshot = store.snapshot(INDEX, Epoch(1)).unwrap();
    let scanner = ShardScanner::new(snapshot, Arc::new(asked), 2 << 10).unwrap();
    let first = scanner.first_batch(5 * ENTRY_COST).unwrap();
    assert!(first.is_whole, "a few looks: {first:?}");
}

/// The slice of a document may change while its entry does not: the previous slice then has a
/// deleted version of the same entry.
#[tokio::test]
async fn a_scan_that_is_parked_between_two_slices_shows_an_entry_once() {
    let dir = tempfile::tempdir().unwrap();
    let store = with_ends(&dir, false).await;
    let mut writer = KeyVersionsWriter::default();
    for (at, n) in (2000..2050u64).enumerate() {
        let mut bytes = Vec::new();
        key::encode_part(&Value::int(n as i64), false, &mut bytes);
        writer.mutation(1 + at as u64, MutationKind::Upsert, &format!("k{n}"), 1);
        writer.index(INDEX, 1);
        writer.entry(SliceNo(((n + 1) % 2) as u16), &bytes, b"");
    }
    let piece = VbucketMutations {
        body: writer.finish(),
        base: Seqno(6000),
        after: Seqno(6000),
        to: Seqno(7000),
    };
    store
        .apply(EpochBatch { mark: mark(3, 7000), pieces: vec![piece], commits: Vec::new() })
        .await
        .unwrap();
    let both = vec![SliceNo(0), SliceNo(1)];
    let filter = Expr::IsNull { expr: Box::new(Expr::Column(0)), negated: true };
    for (reverse, filter, rows) in
        [(false, None, 1923), (true, None, 1923), (false, Some(filter.into()), 1766)]
    {
        let asked = ShardScan {
            epoch: Epoch(3),
            slices: both.clone(),
            reverse,
            filter,
            ..scan(vec![KeyRange::all()])
        };
        let entries = |cost| -> Vec<Vec<u8>> {
            let batches = all_batches(&store, asked.clone(), cost);
            let blocks = batches.iter().map(|batch| match batch {
                ShardBatch::Rows(block) => block,
                other => panic!("{other:?}"),
            });
            blocks.flat_map(|block| block.iter().map(|row| row.entry.to_vec())).collect()
        };
        let whole = entries(u64::MAX);
        assert_eq!(whole.len(), rows, "a document has one entry");
        // A step is long enough for the versions of one entry in all slices.
        for looks in 20..30 {
            let parked = entries(looks * ENTRY_COST);
            assert!(parked == whole, "{looks} looks, reverse {reverse}: {} rows", parked.len());
        }
    }
}
