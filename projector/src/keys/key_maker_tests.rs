//! Compares the key-versions of random documents with a model that evaluates a document completely
//! before routing it.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;
use proto::expr::eval::Evaluation;
use proto::expr::{ColumnType, CompareOp};
use proto::model::ids::{BucketId, Epoch, IndexId, MoveId, Seqno, VbucketId};
use proto::model::index::{IncludedColumn, IndexSpec, KeyPart, RangePartition};
use proto::model::left_out::{LeftOut, LeftOutReason};
use proto::model::moves::{MoveStage, SliceMove};
use proto::model::topology::TopologyProvider;
use proto::value::path::Step;

use super::*;

/// The number of nodes that subscribe; most indexes have no slice on the last ones.
const NODES: u64 = 5;

/// A router that routes like the service.
struct Router;

impl MutationRouter for Router {
    fn route(&self, node: NodeId, index: &IndexInfo, key: Option<PartitionKey<'_>>) -> Route {
        let slice = key.map(|key| index.slice_of(key));
        match (key, slice) {
            (_, Some(slice)) if index.is_fed(node, slice) => Route::Owner(slice),
            (Some(PartitionKey::Id(_)), _) => Route::Elsewhere,
            _ => Route::EmptyState,
        }
    }

    fn concerns(&self, node: NodeId, index: &IndexInfo) -> bool {
        index.is_fed_any(node)
    }
}

/// Returns the state of a document in an index on a node. The model evaluates the document before
/// it routes it, and counts it if it is left out.
fn model(
    node: NodeId,
    index: &IndexInfo,
    id: &str,
    doc: Option<&Value>,
    left_out: &mut LeftOut,
) -> Option<(SliceNo, DocumentKeys)> {
    let empty = || Some((SliceNo(0), DocumentKeys::default()));
    let by_id = index.topology.partition(PartitionKey::Id(id));
    let exprs = match &index.spec.partition {
        PartitionBy::DocumentId if !index.is_fed(node, by_id) => return None,
        PartitionBy::DocumentId => None,
        PartitionBy::Exprs(exprs) => Some(&exprs[..]),
        PartitionBy::Range(range) => Some(std::slice::from_ref(&range.expr)),
    };
    let counted_with = if exprs.is_some() { 0 } else { usize::from(by_id.0) };
    let mut leave_out = |reason: LeftOutReason| {
        if index.topology.placement[counted_with].first() == Some(&node) {
            left_out.count(reason);
        }
    };
    let Some(doc) = doc else { return empty() };
    let keys = match document_keys(&index.spec, id, doc, &CostMeter::for_evaluation()) {
        Ok(keys) if keys.keys.is_empty() => return empty(),
        Ok(keys) => keys,
        Err(over) => {
            leave_out(over.reason);
            return empty();
        }
    };
    let Some(exprs) = exprs else { return Some((by_id, keys)) };
    let (cost, scope) = (CostMeter::for_evaluation(), DocumentScope { id, doc });
    let mut partition = Vec::new();
    for expr in exprs {
        let value = Evaluation::of_definition(&scope, &cost).eval(expr);
        let counted = value.and_then(|value| {
            cost.add_value(&value)?;
            Ok(value)
        });
        match counted {
            Ok(value) => encode_part(&value, false, &mut partition),
            Err(_) => {
                leave_out(LeftOutReason::TooCostly);
                return empty();
            }
        }
    }
    let slice = match &index.spec.partition {
        // As many slices as bounds that are not greater.
        PartitionBy::Range(range) => {
            SliceNo(range.bounds.iter().filter(|bound| **bound <= partition).count() as u16)
        }
        _ => index.topology.partition(PartitionKey::Encoded(&partition)),
    };
    if index.is_fed(node, slice) { Some((slice, keys)) } else { empty() }
}

/// The key-versions that the model sends to a node.
fn body_of_model(
    node: NodeId,
    indexes: &[Arc<IndexInfo>],
    mutation: &Mutation,
    doc: Option<&Value>,
    left_out: &mut [LeftOut],
) -> Vec<u8> {
    let mut out = KeyVersionsWriter::default();
    let states: Vec<_> = indexes
        .iter()
        .zip(left_out)
        .filter_map(|(index, left_out)| {
            let (slice, keys) = model(node, index, &mutation.id, doc, left_out)?;
            Some((index, DocumentState { slice, keys }))
        })
        .collect();
    if !states.is_empty() {
        out.mutation(7, mutation.kind, &mutation.id, states.len());
        states.iter().for_each(|(index, state)| write_state(index, state, &mut out));
    }
    out.finish().to_vec()
}

fn path(name: &str) -> Expr {
    Expr::Path(vec![Step::Field(name.into())])
}

/// An expression that costs more than its limit for a document with a text.
fn costly() -> Expr {
    let pattern = Expr::Literal(Value::String(format!("%_{}b%", "a".repeat(20_000))));
    Expr::Like { expr: Box::new(path("text")), pattern: Box::new(pattern), negated: false }
}

fn spec() -> impl Strategy<Value = IndexSpec> {
    let key = prop_oneof![
        Just(vec![path("a")]),
        Just(vec![path("b"), path("a")]),
        Just(vec![Expr::Unnest(Box::new(path("tags"))), path("a")]),
        Just(vec![path("wide")]),
    ];
    let partition = prop_oneof![
        1 => Just(PartitionBy::DocumentId),
        2 => Just(PartitionBy::Range(RangePartition { expr: path("b"), bounds: Vec::new() })),
        4 => Just(PartitionBy::Exprs(vec![path("b")])),
        4 => Just(PartitionBy::Exprs(vec![path("a"), path("tags")])),
        2 => Just(PartitionBy::Exprs(vec![path("a"), costly()])),
    ];
    let five = || Box::new(Expr::Literal(Value::int(5)));
    let predicate = Expr::Compare(CompareOp::Less, Box::new(path("a")), five());
    let predicate = proptest::option::of(Just(predicate));
    (key, partition, predicate, any::<bool>()).prop_map(|(keys, partition, predicate, include)| {
        let part = |expr| KeyPart {
            expr,
            name: String::new(),
            column_type: ColumnType::Text,
            descending: false,
            include_missing: false,
        };
        let column =
            |expr| IncludedColumn { expr, name: String::new(), column_type: ColumnType::Text };
        IndexSpec {
            primary: false,
            keys: keys.into_iter().map(part).collect(),
            partition,
            predicate,
            include: include.then(|| column(path("wide"))).into_iter().collect(),
            included_kb_max: 1,
            ..IndexSpec::new("i", "b")
        }
    })
}

/// An index whose slices are on some nodes, and of which one may be moving.
fn index() -> impl Strategy<Value = IndexInfo> {
    let node = || (1..NODES).prop_map(NodeId);
    let copies = || proptest::sample::subsequence((1..NODES).map(NodeId).collect::<Vec<_>>(), 1..3);
    let stage = prop_oneof![
        Just(MoveStage::Start),
        Just(MoveStage::Pending),
        Just(MoveStage::Catchup),
        Just(MoveStage::Done)
    ];
    let moving = proptest::option::of((any::<u16>(), node(), node(), stage));
    (spec(), vec(copies().prop_shuffle(), 1..5), moving).prop_map(|(spec, placement, moving)| {
        let slices = placement.len() as u16;
        let mut spec = IndexSpec { slices, ..spec };
        if let PartitionBy::Range(range) = &mut spec.partition {
            let bound = |n| {
                let mut bound = Vec::new();
                encode_part(&Value::int(2 * n), false, &mut bound);
                bound
            };
            range.bounds = (1..i64::from(slices)).map(bound).collect();
        }
        let mut info = IndexInfo::new(IndexId(1), BucketId(1), spec, placement);
        info.moves.extend(moving.map(|(slice, from, to, stage)| SliceMove {
            id: MoveId(1),
            slice: SliceNo(slice % slices),
            from: Some(from),
            to: Some(to),
            stage,
            epoch: Epoch(1),
        }));
        info
    })
}

/// A mutation: its id, and the JSON that it writes.
fn mutation() -> impl Strategy<Value = (String, Option<String>)> {
    let small = || prop_oneof![Just("null".to_owned()), (0..9u8).prop_map(|n| n.to_string())];
    let field = |name: &'static str, value: BoxedStrategy<String>| {
        proptest::option::weighted(0.8, value.prop_map(move |value| format!("\"{name}\":{value}")))
    };
    let tags = vec(0..3u8, 0..4).prop_map(|tags| format!("{tags:?}"));
    let wide = prop_oneof![3 => Just(3), 1 => Just(2000), 1 => Just(5000)];
    let wide = wide.prop_map(|bytes| format!("\"{}\"", "w".repeat(bytes)));
    let text = prop_oneof![15 => Just(3), 1 => Just(50_000)];
    let text = text.prop_map(|bytes| format!("\"{}\"", "a".repeat(bytes)));
    let doc = (
        field("a", small().boxed()),
        field("b", small().boxed()),
        field("tags", tags.boxed()),
        field("wide", wide.boxed()),
        field("text", text.boxed()),
    );
    let doc = doc.prop_map(|(a, b, tags, wide, text)| {
        let fields: Vec<_> = [a, b, tags, wide, text].into_iter().flatten().collect();
        format!("{{{}}}", fields.join(","))
    });
    ((0..100u8).prop_map(|n| format!("k{n}")), proptest::option::weighted(0.9, doc))
}

/// The key-versions that a node receives, and the cost of their evaluation.
fn body_of_maker(
    node: NodeId,
    indexes: &[Arc<IndexInfo>],
    mutation: &Mutation,
    left_out: &LeftOutCounters,
) -> (Vec<u8>, u64) {
    let mut fields = Fields::default();
    indexes.iter().for_each(|index| fields.add_all(index.spec.fields()));
    let fields = Arc::new(fields);
    let maker =
        KeyMaker { node, router: &Router, left_out, fields: &fields, spent: Cell::default() };
    let mut out = KeyVersionsWriter::default();
    maker.mutation(indexes, mutation, 7, &mut out).expect("a whole document");
    (out.finish().to_vec(), maker.spent.get())
}

fn mutation_of(id: &str, json: Option<&str>) -> Mutation {
    let kind = if json.is_some() { MutationKind::Upsert } else { MutationKind::Deletion };
    let document = json.unwrap_or_default().to_owned().into();
    Mutation::new((VbucketId(0), Seqno(1)), id.into(), kind, document)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// With and without routing first, each node gets equal key-versions, and each left-out
    /// document is counted once for an equal reason.
    #[test]
    fn a_document_that_is_routed_first_has_the_same_key_versions(
        indexes in vec(index(), 1..4),
        mutations in vec(mutation(), 1..6),
    ) {
        let number = |(n, index): (u64, IndexInfo)| Arc::new(IndexInfo { id: IndexId(n), ..index });
        let indexes: Vec<_> = (0..).zip(indexes).map(number).collect();
        let counters = LeftOutCounters::default();
        let mut left_out = vec![LeftOut::default(); indexes.len()];
        for (id, json) in &mutations {
            let mutation = mutation_of(id, json.as_deref());
            let value = json.as_ref().map(|_| mutation.value(&Arc::new(Fields::All)).expect("JSON"));
            for node in (1..=NODES).map(NodeId) {
                let (made, _) = body_of_maker(node, &indexes, &mutation, &counters);
                let expected = body_of_model(node, &indexes, &mutation, value, &mut left_out);
                prop_assert_eq!(made, expected, "document {:?} {:?} on {:?}", id, json, node);
            }
        }
        let counted: BTreeMap<_, _> = counters.all().into_iter().collect();
        for (index, expected) in indexes.iter().zip(left_out) {
            let counted = counted.get(&index.local_id()).copied().unwrap_or_default();
            prop_assert_eq!(counted, expected);
        }
    }
}

/// A node without the document's slice evaluates only the partition expressions.
#[test]
fn only_the_owners_evaluate_the_entries() {
    let five = Expr::Literal(Value::int(5));
    let spec = IndexSpec {
        partition: PartitionBy::Exprs(vec![path("b")]),
        predicate: Some(Expr::Compare(CompareOp::Less, Box::new(path("a")), Box::new(five))),
        slices: 2,
        ..IndexSpec::new("i", "b")
    };
    let placement = vec![vec![NodeId(1)], vec![NodeId(2)]];
    let indexes = [Arc::new(IndexInfo::new(IndexId(1), BucketId(1), spec, placement))];
    let left_out = LeftOutCounters::default();
    let mutation = mutation_of("k", Some(r#"{"a":1,"b":2}"#));
    let costs = [1, 2, 3].map(|n| body_of_maker(NodeId(n), &indexes, &mutation, &left_out).1);
    let (owner, other) = (costs[0].max(costs[1]), costs[0].min(costs[1]));
    assert!(owner > other, "{costs:?}");
    assert_eq!(other, costs[2], "the cost of the partition expressions: {costs:?}");
}
