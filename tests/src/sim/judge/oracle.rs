//! The oracle, which computes the content of an index at an epoch from the source's log up to the
//! epoch's cut. The oracle shares no encoder, evaluator or comparison with the product.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use proto::model::cut::Cut;
use proto::model::ids::BucketId;
use proto::rpc::mutation::MutationKind;
use serde_json::Value;

use super::truth::Truth;

/// An index of the simulation, with its declaration and a function that computes its keys.
pub struct SimIndex {
    /// The name of the index.
    pub name: &'static str,
    /// The definition that the product gets.
    pub sql: &'static str,
    /// The function that computes the keys of a document's entries; `None` is MISSING.
    pub keys: fn(&Value) -> Vec<Vec<Option<Value>>>,
    /// True for each key part that is DESC; empty if none is.
    pub descending: &'static [bool],
    /// The included field, if any.
    pub included: Option<&'static str>,
}

fn field(document: &Value, name: &str) -> Option<Value> {
    document.get(name).cloned()
}

/// True if a document with this value in a key is left out of the index, because the key exceeds 4
/// KiB.
fn is_too_long(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.len() > 4_000)
}

/// The indexes of the simulation.
pub const INDEXES: [SimIndex; 4] = [
    SimIndex {
        name: "by_a",
        sql: "CREATE INDEX by_a ON b (a, n DESC) INCLUDE (t) \
              WITH (slices = 4, replicas = 1, separate_included_columns = on)",
        keys: |document| match field(document, "a") {
            None => Vec::new(),
            Some(a) if is_too_long(&a) => Vec::new(),
            a => vec![vec![a, field(document, "n")]],
        },
        descending: &[false, true],
        included: Some("t"),
    },
    SimIndex {
        name: "big",
        sql: "CREATE INDEX big ON b (n) WHERE n >= 50 WITH (slices = 3)",
        keys: |document| match field(document, "n") {
            Some(n) if n.as_i64().is_some_and(|n| n >= 50) => vec![vec![Some(n)]],
            _ => Vec::new(),
        },
        descending: &[false],
        included: None,
    },
    SimIndex {
        name: "by_tag",
        sql: "CREATE INDEX by_tag ON b (UNNEST(t), n) WITH (slices = 4, replicas = 1)",
        keys: |document| {
            let Some(Value::Array(tags)) = field(document, "t") else { return Vec::new() };
            let mut keys: Vec<Vec<Option<Value>>> = Vec::new();
            for tag in tags {
                let key = vec![Some(tag), field(document, "n")];
                if !keys.contains(&key) {
                    keys.push(key);
                }
            }
            keys
        },
        descending: &[false, false],
        included: None,
    },
    SimIndex {
        name: "spread",
        sql: "CREATE INDEX spread ON b (n, a) INCLUDE (t) PARTITION BY HASH (a) WITH (slices = 5)",
        keys: |document| match (field(document, "n"), field(document, "a")) {
            (None, _) => Vec::new(),
            (_, Some(a)) if is_too_long(&a) => Vec::new(),
            (n, a) => vec![vec![n, a]],
        },
        descending: &[false, false],
        included: Some("t"),
    },
];

/// An entry: its key parts, then the id.
pub type Entry = (Vec<Option<Value>>, String);

/// An entry and its included value.
pub type Shown = (Entry, Option<Value>);

/// Returns the documents of a bucket at a cut, in the history to which the cut belongs.
pub fn documents(truth: &Truth, bucket: BucketId, cut: &Cut) -> BTreeMap<String, Value> {
    truth.note_split(cut);
    let mut documents = BTreeMap::new();
    for (vbucket, position) in cut.iter() {
        let log = truth.log_at(bucket, vbucket, position);
        let log = log.unwrap_or_else(|| panic!("the source never had {vbucket} {position:?}"));
        for mutation in log {
            match mutation.kind {
                MutationKind::Upsert => {
                    let document = serde_json::from_slice(&mutation.document).expect("JSON");
                    documents.insert(mutation.id.to_string(), document);
                }
                MutationKind::Deletion => {
                    documents.remove(&*mutation.id);
                }
            }
        }
    }
    documents
}

/// Returns the entries of an index over these documents, in index order.
pub fn shown(index: &SimIndex, documents: &BTreeMap<String, Value>) -> Vec<Shown> {
    let of_document = |(id, document): (&String, &Value)| -> Vec<Shown> {
        let included = index.included.and_then(|name| field(document, name));
        let keys = (index.keys)(document).into_iter();
        keys.map(|key| ((key, id.clone()), included.clone())).collect()
    };
    let mut shown: Vec<Shown> = documents.iter().flat_map(of_document).collect();
    shown.sort_by(|(left, _), (right, _)| order(index, left, right));
    shown
}

/// Compares two entries in the order of an index.
fn order(index: &SimIndex, left: &Entry, right: &Entry) -> Ordering {
    for (n, (left, right)) in left.0.iter().zip(&right.0).enumerate() {
        let order = compare(left, right);
        let order = if index.descending[n] { order.reverse() } else { order };
        if order != Ordering::Equal {
            return order;
        }
    }
    left.1.cmp(&right.1)
}

/// Compares two values of the types in the simulation's documents: MISSING, null, numbers, strings.
pub fn compare(left: &Option<Value>, right: &Option<Value>) -> Ordering {
    let rank = |value: &Option<Value>| match value {
        None => 0,
        Some(Value::Null) => 1,
        Some(Value::Number(_)) => 2,
        Some(Value::String(_)) => 3,
        Some(other) => unreachable!("{other} is not in the simulation's documents"),
    };
    rank(left).cmp(&rank(right)).then_with(|| match (left, right) {
        (Some(Value::Number(left)), Some(Value::Number(right))) => {
            left.as_i64().cmp(&right.as_i64())
        }
        (Some(Value::String(left)), Some(Value::String(right))) => {
            left.as_bytes().cmp(right.as_bytes())
        }
        _ => Ordering::Equal,
    })
}
