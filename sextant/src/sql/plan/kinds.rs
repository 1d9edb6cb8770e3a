//! The kinds of values (boolean, number, text, array, object) in the columns of an index,
//! according to a sample of its entries.

use proto::Result;
use proto::model::index::IndexSpec;
use proto::rpc::rows::RowBlock;
use proto::value::key::{part_type_rank, skip_part};

/// A kind of values. A comparison of values of different kinds is never true.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Booleans.
    Bool,
    /// Numeric values.
    Number,
    /// String values.
    Text,
    /// Values that are arrays.
    Array,
    /// Values that are objects.
    Object,
}

impl Kind {
    /// Returns the kind of the values with this rank, which is their place in the order of types.
    fn of_rank(rank: u8) -> Option<Self> {
        match rank {
            2 => Some(Self::Bool),
            3 => Some(Self::Number),
            4 => Some(Self::Text),
            5 => Some(Self::Array),
            6 => Some(Self::Object),
            _ => None,
        }
    }

    /// Returns the plural of the kind's name, for messages.
    pub fn plural(self) -> &'static str {
        match self {
            Self::Bool => "booleans",
            Self::Number => "numbers",
            Self::Text => "texts",
            Self::Array => "arrays",
            Self::Object => "objects",
        }
    }
}

/// The kinds of values in each column of an index, according to a sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kinds(Vec<KindsFound>);

/// The kinds of values in one column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KindsFound {
    /// No value except NULL and MISSING.
    Nothing,
    Only(Kind),
    Several,
}

impl Kinds {
    /// Returns the kinds for an index without entries.
    pub(crate) fn of_nothing(spec: &IndexSpec) -> Self {
        Self(vec![KindsFound::Nothing; spec.keys.len() + spec.include.len()])
    }

    /// Returns the kind of all values of a column. Returns `None` if the column has values of
    /// several kinds, or no values.
    pub fn of(&self, column: u16) -> Option<Kind> {
        match self.0.get(usize::from(column)) {
            Some(KindsFound::Only(kind)) => Some(*kind),
            _ => None,
        }
    }

    /// Adds the kinds of the values in some entries.
    pub(crate) fn add(&mut self, spec: &IndexSpec, block: &RowBlock) -> Result<()> {
        for row in block.iter() {
            let (keys, included) = self.0.split_at_mut(spec.keys.len());
            let mut rest = row.entry;
            for (seen, key) in keys.iter_mut().zip(&spec.keys) {
                rest = seen.add(rest, key.descending)?;
            }
            let mut rest = row.include;
            for seen in included {
                rest = seen.add(rest, false)?;
            }
        }
        Ok(())
    }
}

impl KindsFound {
    /// Adds the kind of the value at the beginning of `bytes`. Returns the bytes after this
    /// value.
    fn add<'b>(&mut self, bytes: &'b [u8], descending: bool) -> Result<&'b [u8]> {
        if let Some(kind) = Kind::of_rank(part_type_rank(bytes, descending)) {
            *self = match *self {
                Self::Nothing => Self::Only(kind),
                Self::Only(known) if known == kind => Self::Only(kind),
                Self::Only(_) | Self::Several => Self::Several,
            };
        }
        Ok(&bytes[skip_part(bytes, descending)?..])
    }
}

#[cfg(test)]
mod tests {
    use proto::rpc::rows::RowBlockBuilder;
    use proto::value::Value;
    use proto::value::key::{encode_entry, encode_part};

    use super::*;
    use crate::sql::ast::Statement;
    use crate::sql::definitions::define::definition;

    #[test]
    fn one_kind_needs_equal_kinds_of_values() {
        let sql = "CREATE INDEX i ON b (a, c DESC) INCLUDE (d)";
        let parsed = crate::sql::parse(sql).expect("a statement").remove(0);
        let Statement::CreateIndex(create) = parsed.statement else { panic!("an index") };
        let spec = definition(&create).expect("a definition");
        let mut kinds = Kinds::of_nothing(&spec);
        assert_eq!(kinds.of(0), None, "nothing was seen");
        let text = Value::from("x");
        for (a, c, d) in [
            (Value::int(1), Value::Null, &text),
            (Value::float(0.5), text.clone(), &text),
            (Value::int(2), Value::Missing, &Value::Bool(true)),
        ] {
            let (mut entry, mut include) = (Vec::new(), Vec::new());
            encode_entry(&[a, c], &[false, true], "id", &mut entry).expect("an entry");
            encode_part(d, false, &mut include);
            let mut block = RowBlockBuilder::default();
            block.push(&entry, &include);
            kinds.add(&spec, &block.finish()).expect("well formed");
        }
        let seen = [0, 1, 2, 3].map(|column| kinds.of(column));
        assert_eq!(seen, [Some(Kind::Number), Some(Kind::Text), None, None]);
    }
}
