//! Index entries in the form that expressions read.

use std::borrow::Cow;

use proto::Result;
use proto::expr::eval::Scope;
use proto::model::index::IndexSpec;
use proto::value::Value;
use proto::value::key::{self, LeadingParts};
use proto::value::path::Step;

/// Returns the first `parts` key parts of an entry.
pub(super) fn leading_parts<'a>(
    spec: &IndexSpec,
    entry: &'a [u8],
    parts: u16,
) -> Result<LeadingParts<'a>> {
    let keys = spec.keys.iter().take(usize::from(parts));
    LeadingParts::of(entry, keys.map(|part| part.descending))
}

/// An entry as the data of expressions; columns are decoded on demand.
pub(super) struct EntryScope<'a> {
    pub spec: &'a IndexSpec,
    pub entry: &'a [u8],
    pub include: &'a [u8],
}

impl EntryScope<'_> {
    fn decode(&self, column: usize) -> Result<Value> {
        let keys = &self.spec.keys;
        match keys.get(column) {
            Some(part) => {
                let before = leading_parts(self.spec, self.entry, column as u16)?.bytes().len();
                key::decode_part(&mut &self.entry[before..], part.descending)
            }
            None => {
                let mut rest = self.include;
                for _ in keys.len()..column {
                    let len = key::skip_part(rest, false)?;
                    rest = &rest[len..];
                }
                key::decode_part(&mut rest, false)
            }
        }
    }
}

impl Scope for EntryScope<'_> {
    fn path(&self, _steps: &[Step]) -> Cow<'_, Value> {
        Cow::Owned(Value::Missing)
    }

    fn document_id(&self) -> &str {
        let parts = leading_parts(self.spec, self.entry, self.spec.keys.len() as u16);
        let id = parts.map_or(&[][..], |parts| &self.entry[parts.bytes().len()..]);
        std::str::from_utf8(id).unwrap_or_default()
    }

    fn column(&self, n: u16) -> Cow<'_, Value> {
        Cow::Owned(self.decode(usize::from(n)).unwrap_or(Value::Missing))
    }

    fn column_cost(&self, n: u16) -> u64 {
        // The parts before a column are stepped over.
        let part = usize::from(n);
        let read = if part < self.spec.keys.len() { self.entry } else { self.include };
        read.len() as u64
    }
}
