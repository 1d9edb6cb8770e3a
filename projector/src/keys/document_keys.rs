//! The entries of a document in one index.
//!
//! A document has no entry in an index if
//!
//! - the index's `WHERE` is not true for it,
//! - the leading key part is MISSING (unless the index is declared INCLUDE MISSING),
//! - the value of the array key is not an array, or an empty one, or
//! - a limit is exceeded: of a key, of the included values, of all entries together, or of the
//!   cost of the index's expressions. Only this case is logged and counted. Nothing is ever
//!   truncated.
//!
//! An array key repeats the other parts and the included values for each element, so the entries
//! of a document may be many times as long as the document. The total length is computed before
//! the entries are built, and entries that are too long are not built.

use std::collections::BTreeSet;

use proto::expr::cost::{CostMeter, TooCostly};
use proto::expr::eval::{DocumentScope, EvalError, Evaluation};
use proto::model::index::IndexSpec;
use proto::model::left_out::LeftOutReason;
use proto::value::Value;
use proto::value::key::{KEY_BYTES_MAX, encode_part};

/// The limit of entries of a document in one index. Each entry is a version on the indexer and
/// repeats the id, so with the longest ids they take 4 MiB.
pub const ENTRIES_MAX: usize = 16_384;

/// The size limit in bytes of all entries of a document in one index. The longest document has
/// the same size, so a document in dozens of indexes still fits in a message.
pub const ENTRIES_BYTES_MAX: usize = 1 << 20;

/// The entries of a document in one index: their keys, and the included values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DocumentKeys {
    /// The encoded key parts of each entry, without the id.
    pub keys: Vec<Vec<u8>>,
    /// The encoded included values, which all entries share.
    pub include: Vec<u8>,
}

/// The reason why an index leaves a document out: the limit that the document exceeds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OverLimit {
    /// The kind of the limit.
    pub reason: LeftOutReason,
    /// The size and the limit, as text.
    pub what: String,
}

impl OverLimit {
    fn new(reason: LeftOutReason, what: impl Into<String>) -> Self {
        Self { reason, what: what.into() }
    }
}

impl From<EvalError> for OverLimit {
    fn from(error: EvalError) -> Self {
        match error {
            EvalError::TooCostly(costly) => costly.into(),
            // Definitions should not fail; a document that makes one fail is reported.
            EvalError::Failed(error) => Self::new(LeftOutReason::TooCostly, error.message),
        }
    }
}

impl From<TooCostly> for OverLimit {
    fn from(TooCostly { cost_max }: TooCostly) -> Self {
        let what = format!("the expressions of the index take more than {cost_max} steps for it");
        Self::new(LeftOutReason::TooCostly, what)
    }
}

/// Returns the entries of a document in an index. The error names the limit that the document
/// exceeds. `cost` counts the cost of the index's expressions, up to the limit of one document.
pub fn document_keys(
    spec: &IndexSpec,
    id: &str,
    doc: &Value,
    cost: &CostMeter,
) -> Result<DocumentKeys, OverLimit> {
    let scope = DocumentScope { id, doc };
    if let Some(predicate) = &spec.predicate
        && Evaluation::of_definition(&scope, cost).truth(predicate)? != Some(true)
    {
        return Ok(DocumentKeys::default());
    }
    let Some(parts) = encode_parts(spec, &scope, cost)? else {
        return Ok(DocumentKeys::default());
    };
    let mut include = Vec::new();
    for column in &spec.include {
        let value = Evaluation::of_definition(&scope, cost).eval(&column.expr)?;
        encode(&value, false, &mut include, cost)?;
    }
    parts.check(include.len(), usize::from(spec.included_kb_max) << 10)?;
    Ok(DocumentKeys { keys: parts.keys(), include })
}

/// The encoded parts of a document's keys, before they are combined into entries.
struct KeyParts {
    before: Vec<u8>,
    /// The distinct elements of the array part; `None` if no part of the key is an array.
    elements: Option<BTreeSet<Vec<u8>>>,
    after: Vec<u8>,
}

impl KeyParts {
    /// Returns an error if the entries exceed a limit.
    fn check(&self, include_bytes: usize, include_bytes_max: usize) -> Result<(), OverLimit> {
        use LeftOutReason::{EntriesTooLong, IncludeTooLong, KeyTooLong, TooManyEntries};
        let around = self.before.len() + self.after.len();
        let (count, longest, sum) = match &self.elements {
            None => (1, 0, 0),
            Some(elements) => {
                let bytes = || elements.iter().map(Vec::len);
                (elements.len(), bytes().max().unwrap_or(0), bytes().sum())
            }
        };
        // The text of an error is made only for a document over a limit.
        let check = |reason, what: &dyn Fn() -> String, bytes, limit| match bytes <= limit {
            true => Ok(()),
            false => {
                let what = format!("{} takes {bytes} bytes, the limit is {limit}", what());
                Err(OverLimit::new(reason, what))
            }
        };
        check(KeyTooLong, &|| "a key".to_owned(), around + longest, KEY_BYTES_MAX)?;
        let included = || "the set of included values".to_owned();
        check(IncludeTooLong, &included, include_bytes, include_bytes_max)?;
        if count > ENTRIES_MAX {
            let what = format!("the document has {count} entries, the limit is {ENTRIES_MAX}");
            return Err(OverLimit::new(TooManyEntries, what));
        }
        let bytes = sum + count * (around + include_bytes);
        let all = || format!("the set of its {count} entries");
        check(EntriesTooLong, &all, bytes, ENTRIES_BYTES_MAX)
    }

    /// Returns the keys: one per distinct element of the array part, or a single one if the index
    /// has no array part.
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

/// Appends the encoding of a value and adds its cost.
fn encode(
    value: &Value,
    descending: bool,
    out: &mut Vec<u8>,
    cost: &CostMeter,
) -> Result<(), TooCostly> {
    cost.add_value(value)?;
    encode_part(value, descending, out);
    Ok(())
}

/// Evaluates and encodes the key parts of a document; `None` if the document has no entry in the
/// index.
fn encode_parts(
    spec: &IndexSpec,
    scope: &DocumentScope<'_>,
    cost: &CostMeter,
) -> Result<Option<KeyParts>, EvalError> {
    let array_part = spec.array_part();
    let (mut before, mut elements, mut after) = (Vec::new(), None, Vec::new());
    for (n, part) in spec.keys.iter().enumerate() {
        let value = Evaluation::of_definition(scope, cost).eval(&part.expr)?;
        if n == 0 && matches!(*value, Value::Missing) && !part.include_missing {
            return Ok(None);
        }
        match &*value {
            _ if array_part != Some(n) => {
                let out = if elements.is_none() { &mut before } else { &mut after };
                encode(&value, part.descending, out, cost)?;
            }
            Value::Array(items) if !items.is_empty() => {
                let mut distinct = BTreeSet::new();
                for item in items {
                    let mut out = Vec::new();
                    encode(item, part.descending, &mut out, cost)?;
                    distinct.insert(out);
                }
                elements = Some(distinct);
            }
            _ => return Ok(None),
        }
    }
    Ok(Some(KeyParts { before, elements, after }))
}

#[cfg(test)]
#[path = "document_keys_tests.rs"]
mod tests;
