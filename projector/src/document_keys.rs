//! What a document is in one index: its entries, or none.
//!
//! A document has no entry where the index's `WHERE` is not true of it, where the leading key part is
//! MISSING (unless the index says INCLUDE MISSING), where the array key meets anything but an array with
//! elements, and where a key, the included values, or all entries together are over their limit: that
//! last case is reported by name and counted, never truncated.
//!
//! An array key repeats the other parts and what is included for each element, so a document may be many
//! times as long in an index as it is itself. What it comes to is known, and refused, before it is made.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};

use proto::expr::Expr;
use proto::expr::eval::{DocumentScope, eval, truth};
use proto::model::ids::{NodeId, SliceNo};
use proto::model::index::{IndexInfo, IndexSpec, PartitionBy};
use proto::model::topology::PartitionKey;
use proto::rpc::mutation::{KeyVersionsWriter, MutationKind};
use proto::rpc::routing::{MutationRouter, Route};
use proto::value::Value;
use proto::value::key::{KEY_BYTES_MAX, encode_part};
use proto::{Error, ErrorCode, Result};

use crate::source::Mutation;

/// The most bytes that the included values of an entry may take together: as much as sixteen keys, so
/// that a batch of rows stays a small multiple of the rows' number.
pub const INCLUDE_BYTES_MAX: usize = 16 * KEY_BYTES_MAX;

/// The most entries that a document may have in one index: each is a version of its own on the indexer,
/// with the id, so that the longest ids come to 4 MiB.
pub const ENTRIES_MAX: usize = 16_384;

/// The most bytes that the entries of a document in one index may take together: as much as the longest
/// document, so that a document in dozens of indexes still passes in a message.
pub const ENTRIES_BYTES_MAX: usize = 1 << 20;

/// The entries of a document in one index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DocumentKeys {
    /// The encoded key parts of each entry, without the id.
    pub keys: Vec<Vec<u8>>,
    /// The encoded included values, the same for each.
    pub include: Vec<u8>,
}

/// The entries that a document has in an index; `OverLimit` where they are too long.
pub fn document_keys(spec: &IndexSpec, id: &str, doc: &Value) -> Result<DocumentKeys> {
    let scope = DocumentScope { id, doc };
    if spec.predicate.as_ref().is_some_and(|predicate| truth(predicate, &scope) != Some(true)) {
        return Ok(DocumentKeys::default());
    }
    let Some(parts) = encode_parts(spec, &scope) else { return Ok(DocumentKeys::default()) };
    let mut include = Vec::new();
    for column in &spec.include {
        encode_part(&eval(&column.expr, &scope), false, &mut include);
    }
    parts.check(include.len())?;
    Ok(DocumentKeys { keys: parts.keys(), include })
}

/// The encoded key parts of a document before they are put together.
struct KeyParts {
    before: Vec<u8>,
    /// The distinct elements of the array part.
    elements: Option<BTreeSet<Vec<u8>>>,
    after: Vec<u8>,
}

impl KeyParts {
    /// Are the entries within limits?
    fn check(&self, include_bytes: usize) -> Result<()> {
        let around = self.before.len() + self.after.len();
        let (count, longest, sum) = match &self.elements {
            None => (1, 0, 0),
            Some(elements) => {
                let bytes = || elements.iter().map(Vec::len);
                (elements.len(), bytes().max().unwrap_or(0), bytes().sum())
            }
        };
        check_length("a key", around + longest, KEY_BYTES_MAX)?;
        check_length("what is included", include_bytes, INCLUDE_BYTES_MAX)?;
        if count > ENTRIES_MAX {
            let message = format!("it has {count} entries, the limit is {ENTRIES_MAX}");
            return Err(Error::new(ErrorCode::OverLimit, message));
        }
        let bytes = sum + count * (around + include_bytes);
        check_length(&format!("all of its {count} entries"), bytes, ENTRIES_BYTES_MAX)
    }

    /// One key for each distinct element of the array part, or one if there is none.
    fn keys(self) -> Vec<Vec<u8>> {
        let Self { before, elements, after } = self;
        match elements {
            None => vec![before],
            Some(elements) => {
                elements.iter().map(|element| [&before[..], element, &after[..]].concat()).collect()
            }
        }
    }
}

fn check_length(what: &str, bytes: usize, limit: usize) -> Result<()> {
    if bytes <= limit {
        return Ok(());
    }
    Err(Error::new(
        ErrorCode::OverLimit,
        format!("{what} takes {bytes} bytes, the limit is {limit}"),
    ))
}

/// The key parts of a document; None where it is left out.
fn encode_parts(spec: &IndexSpec, scope: &DocumentScope<'_>) -> Option<KeyParts> {
    let array_part = spec.array_part();
    let (mut before, mut elements, mut after) = (Vec::new(), None, Vec::new());
    for (n, part) in spec.keys.iter().enumerate() {
        let value = eval(&part.expr, scope);
        if n == 0 && matches!(*value, Value::Missing) && !part.include_missing {
            return None;
        }
        match &*value {
            _ if array_part != Some(n) => {
                let out = if elements.is_none() { &mut before } else { &mut after };
                encode_part(&value, part.descending, out);
            }
            Value::Array(items) => {
                let distinct: BTreeSet<_> = items
                    .iter()
                    .map(|item| {
                        let mut out = Vec::new();
                        encode_part(item, part.descending, &mut out);
                        out
                    })
                    .collect();
                if distinct.is_empty() {
                    return None;
                }
                elements = Some(distinct);
            }
            _ => return None,
        }
    }
    Some(KeyParts { before, elements, after })
}

/// The encoded values of the expressions that an index is partitioned by.
fn partition_key(exprs: &[Expr], scope: &DocumentScope<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    for expr in exprs {
        encode_part(&eval(expr, scope), false, &mut out);
    }
    out
}

/// Makes key-versions of documents for one node.
pub struct KeyMaker<'r> {
    /// Who gets them.
    pub node: NodeId,
    /// Says which slices they go to.
    pub router: &'r dyn MutationRouter,
    /// Counts documents that were left out because they are over a limit.
    pub left_out: &'r AtomicU64,
}

/// The state of a document in one index, and the slice that it goes to; no slice where it has none.
struct State {
    slice: SliceNo,
    keys: DocumentKeys,
}

impl KeyMaker<'_> {
    /// Appends what a mutation means for the node, if it concerns it.
    pub fn mutation(
        &self,
        indexes: &[std::sync::Arc<IndexInfo>],
        mutation: &Mutation,
        seqno_minus_base: u64,
        out: &mut KeyVersionsWriter,
    ) -> Result<()> {
        let mut states = Vec::with_capacity(indexes.len());
        for index in indexes {
            let doc = match mutation.kind {
                MutationKind::Upsert => Some(mutation),
                MutationKind::Deletion => None,
            };
            let doc = || doc.map(Mutation::value).transpose();
            if let Some(state) = self.state(index, &mutation.id, doc)? {
                states.push((index, state));
            }
        }
        if states.is_empty() {
            return Ok(());
        }
        out.mutation(seqno_minus_base, mutation.kind, &mutation.id, states.len());
        for (index, state) in &states {
            write_state(index, state, out);
        }
        Ok(())
    }

    /// Appends the entries of a document of a snapshot, if it has any on the node.
    pub fn document(
        &self,
        index: &IndexInfo,
        (id, seqno): (&str, u64),
        document: &[u8],
        out: &mut KeyVersionsWriter,
    ) -> Result<()> {
        let parsed = std::cell::OnceCell::new();
        let doc = || match parsed.get() {
            Some(value) => Ok(Some(value)),
            None => {
                let value = crate::source::parse_stored(id, document)?;
                Ok(Some(parsed.get_or_init(|| value)))
            }
        };
        if let Some(state) = self.state(index, id, doc)?
            && !state.keys.keys.is_empty()
        {
            out.mutation(seqno, MutationKind::Upsert, id, 1);
            write_state(index, &state, out);
        }
        Ok(())
    }

    /// None where the node has nothing to do with the document. The document is only asked for where
    /// it is needed, since most mutations concern other nodes; None stands for a deletion.
    fn state<'d>(
        &self,
        index: &IndexInfo,
        id: &str,
        doc: impl FnOnce() -> Result<Option<&'d Value>>,
    ) -> Result<Option<State>> {
        let nothing = || State { slice: SliceNo(0), keys: DocumentKeys::default() };
        match &index.spec.partition {
            PartitionBy::DocumentId => {
                match self.router.route(self.node, index, Some(PartitionKey::Id(id))) {
                    Route::Elsewhere => Ok(None),
                    Route::EmptyState => Ok(Some(nothing())),
                    Route::Owner(slice) => {
                        let keys = doc()?.map(|doc| self.keys(index, id, doc));
                        Ok(Some(State { slice, keys: keys.unwrap_or_default() }))
                    }
                }
            }
            PartitionBy::Exprs(exprs) => {
                let Some(doc) = doc()? else {
                    return Ok(self.without_entries(index).then(nothing));
                };
                let keys = self.keys(index, id, doc);
                if keys.keys.is_empty() {
                    return Ok(self.without_entries(index).then(nothing));
                }
                let partition = partition_key(exprs, &DocumentScope { id, doc });
                match self.router.route(self.node, index, Some(PartitionKey::Encoded(&partition))) {
                    Route::Elsewhere => Ok(None),
                    Route::EmptyState => Ok(Some(nothing())),
                    Route::Owner(slice) => Ok(Some(State { slice, keys })),
                }
            }
        }
    }

    /// Must the node hear of a document that has no entry in an index partitioned by expressions?
    fn without_entries(&self, index: &IndexInfo) -> bool {
        self.router.route(self.node, index, None) != Route::Elsewhere
    }

    fn keys(&self, index: &IndexInfo, id: &str, doc: &Value) -> DocumentKeys {
        document_keys(&index.spec, id, doc).unwrap_or_else(|error| {
            let count = self.left_out.fetch_add(1, Ordering::Relaxed) + 1;
            tracing::warn!(index = %index.spec.name, document = id, count, %error, "left out");
            DocumentKeys::default()
        })
    }
}

fn write_state(index: &IndexInfo, state: &State, out: &mut KeyVersionsWriter) {
    out.index(index.id, index.generation, state.keys.keys.len());
    for key in &state.keys.keys {
        out.entry(state.slice, key, &state.keys.include);
    }
}

#[cfg(test)]
mod tests {
    use proto::expr::{ColumnType, CompareOp};
    use proto::model::index::{IncludedColumn, KeyPart};
    use proto::value::key::decode_part;
    use proto::value::path::Step;

    use super::*;

    fn path(name: &str) -> Expr {
        Expr::Path(vec![Step::Field(name.into())])
    }

    fn spec(keys: Vec<(Expr, bool)>) -> IndexSpec {
        let part = |(expr, descending): (Expr, bool)| KeyPart {
            expr,
            name: String::new(),
            column_type: ColumnType::Text,
            descending,
            include_missing: false,
        };
        IndexSpec {
            primary: keys.is_empty(),
            keys: keys.into_iter().map(part).collect(),
            ..IndexSpec::new("i", "b")
        }
    }

    /// The entries of a document, decoded.
    fn entries(spec: &IndexSpec, doc: &str) -> Vec<Vec<Value>> {
        let doc = Value::parse_json(doc.as_bytes()).expect("a document");
        let keys = document_keys(spec, "id", &doc).expect("within limits").keys;
        let decode = |key: &Vec<u8>| {
            let mut rest = &key[..];
            let parts = spec.keys.iter().map(|part| decode_part(&mut rest, part.descending));
            parts.collect::<Result<_>>().expect("well formed")
        };
        keys.iter().map(decode).collect()
    }

    #[test]
    fn an_array_key_has_one_entry_for_each_distinct_element() {
        let spec = spec(vec![
            (path("a"), false),
            (Expr::Unnest(Box::new(path("tags"))), true),
            (path("z"), false),
        ]);
        let found = entries(&spec, r#"{"a":1,"tags":["x",2,"x",2.0,null],"z":3}"#);
        let expect = |element| vec![Value::int(1), element, Value::int(3)];
        // Encoded order: the array part is descending.
        assert_eq!(found, [expect(Value::from("x")), expect(Value::int(2)), expect(Value::Null)]);
        for none in [r#"{"a":1,"tags":[]}"#, r#"{"a":1,"tags":"x"}"#, r#"{"a":1}"#] {
            assert!(entries(&spec, none).is_empty(), "{none}");
        }
    }

    #[test]
    fn a_missing_leading_key_and_a_predicate_that_is_not_true_leave_a_document_out() {
        let mut spec = spec(vec![(path("a"), false), (path("b"), false)]);
        assert!(entries(&spec, r#"{"b":1}"#).is_empty());
        assert_eq!(entries(&spec, r#"{"a":null}"#), [[Value::Null, Value::Missing]]);
        spec.keys[0].include_missing = true;
        assert_eq!(entries(&spec, r#"{"b":1}"#), [[Value::Missing, Value::int(1)]]);
        let literal = Expr::Literal(Value::int(5));
        spec.predicate =
            Some(Expr::Compare(CompareOp::Less, Box::new(path("b")), Box::new(literal)));
        assert_eq!(entries(&spec, r#"{"b":1}"#).len(), 1);
        for out in [r#"{"b":5}"#, r#"{"b":"1"}"#, r#"{"a":1}"#] {
            assert!(entries(&spec, out).is_empty(), "{out}");
        }
    }

    #[test]
    fn a_primary_index_has_one_entry_for_each_document() {
        assert_eq!(entries(&spec(Vec::new()), "{}"), [Vec::<Value>::new()]);
    }

    #[test]
    fn keys_and_included_values_over_their_limits_are_refused() {
        let mut spec = spec(vec![(Expr::Unnest(Box::new(path("a"))), false)]);
        spec.include.push(IncludedColumn {
            expr: path("b"),
            name: String::new(),
            column_type: ColumnType::Text,
        });
        let keys = |a: usize, b: usize| {
            let doc = format!(r#"{{"a":[1,"{}"],"b":"{}"}}"#, "x".repeat(a), "y".repeat(b));
            let doc = Value::parse_json(doc.as_bytes()).expect("a document");
            document_keys(&spec, "id", &doc).map(|keys| keys.keys.len()).map_err(|e| e.code)
        };
        // A string takes two bytes more than its text.
        assert_eq!(keys(KEY_BYTES_MAX - 2, INCLUDE_BYTES_MAX - 2), Ok(2));
        assert_eq!(keys(KEY_BYTES_MAX - 1, 0), Err(ErrorCode::OverLimit));
        assert_eq!(keys(0, INCLUDE_BYTES_MAX - 1), Err(ErrorCode::OverLimit));
    }

    #[test]
    fn a_document_with_too_many_or_too_long_entries_together_is_refused() {
        let spec = spec(vec![
            (path("a"), false),
            (Expr::Unnest(Box::new(path("tags"))), false),
            (path("z"), false),
        ]);
        let keys = |a: usize, tags: usize| {
            let tags: Vec<_> = (0..tags).collect();
            let doc = format!(r#"{{"a":"{}","tags":{tags:?},"z":1}}"#, "x".repeat(a));
            let doc = Value::parse_json(doc.as_bytes()).expect("a document");
            document_keys(&spec, "id", &doc)
        };
        assert_eq!(keys(1, ENTRIES_MAX).map(|keys| keys.keys.len()), Ok(ENTRIES_MAX));
        let many = keys(1, ENTRIES_MAX + 1).expect_err("too many");
        assert!(many.message.contains("16385 entries"), "{many}");
        let fit = keys(4000, 250).expect("about a million bytes");
        let bytes: usize = fit.keys.iter().map(Vec::len).sum();
        assert!(bytes <= ENTRIES_BYTES_MAX && bytes > 1_000_000, "{bytes}");
        let long = keys(4000, 270).expect_err("too long");
        assert_eq!(long.code, ErrorCode::OverLimit);
        assert!(long.message.contains("270 entries"), "{long}");
    }
}
