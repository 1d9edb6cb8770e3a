//! Rows of the fixed part of the catalogue by their OIDs and names.

use std::sync::LazyLock;

use super::tables::{self, Data, FunctionRow, OperatorRow, RelationRow, TypeRow};
use crate::types::oid::Oid;

static DATA: LazyLock<Data> = LazyLock::new(tables::load);

/// Returns the fixed part of the catalogue.
pub fn data() -> &'static Data {
    &DATA
}

impl Data {
    /// Returns a type; `None` if no type has this OID.
    pub fn type_row(&self, oid: Oid) -> Option<&TypeRow> {
        self.types.binary_search_by_key(&oid, |row| row.oid).ok().map(|at| &self.types[at])
    }

    /// Returns the type with a name of `pg_type`, such as `int4` or `_text`; `None` if there is none.
    pub fn type_named(&self, name: &str) -> Option<&TypeRow> {
        self.types.iter().find(|row| row.name == name)
    }

    /// Returns the element's type of an array, `int2vector` or `oidvector`; `None` for other types.
    pub fn element(&self, oid: Oid) -> Option<Oid> {
        self.type_row(oid).filter(|row| row.category == 'A').map(|row| row.element)
    }

    /// Returns the type of an array of this type; `None` if there is none.
    pub fn array_of(&self, oid: Oid) -> Option<Oid> {
        self.type_row(oid).map(|row| row.array).filter(|array| *array != 0)
    }

    /// Returns the base type of a domain, and any other type unchanged.
    pub fn base(&self, oid: Oid) -> Oid {
        match self.type_row(oid) {
            Some(row) if row.base != 0 => self.base(row.base),
            _ => oid,
        }
    }

    /// Returns the operators with a name.
    pub fn operators_named<'a, 'n>(
        &'a self,
        name: &'n str,
    ) -> impl Iterator<Item = &'a OperatorRow> + use<'a, 'n> {
        let first = self.operators.partition_point(|row| row.name.as_str() < name);
        self.operators[first..].iter().take_while(move |row| row.name == name)
    }

    /// Returns the functions with a name, of any schema.
    pub fn functions_named<'a, 'n>(
        &'a self,
        name: &'n str,
    ) -> impl Iterator<Item = &'a FunctionRow> + use<'a, 'n> {
        let first = self.functions.partition_point(|row| row.name.as_str() < name);
        self.functions[first..].iter().take_while(move |row| row.name == name)
    }

    /// Returns a relation; `None` if the schema has none with this name.
    pub fn relation(&self, schema: &str, name: &str) -> Option<&RelationRow> {
        let key = |row: &RelationRow| (row.schema.as_str(), row.name.as_str()).cmp(&(schema, name));
        self.relations.binary_search_by(key).ok().map(|at| &self.relations[at])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_is_complete_and_consistent() {
        let data = data();
        assert!(data.types.is_sorted_by_key(|row| row.oid));
        assert!(data.operators.is_sorted_by(|a, b| a.name <= b.name));
        assert!(data.functions.is_sorted_by(|a, b| a.name <= b.name));
        assert!(data.relations.is_sorted_by(|a, b| (&a.schema, &a.name) < (&b.schema, &b.name)));
        for row in &data.types {
            for oid in [row.element, row.base].into_iter().filter(|oid| *oid != 0) {
                assert!(data.type_row(oid).is_some(), "{} names type {oid}", row.name);
            }
        }
        for relation in &data.relations {
            assert!(!relation.columns.is_empty(), "{}", relation.name);
            for column in &relation.columns {
                assert!(
                    data.type_row(column.ty).is_some(),
                    "{}.{} has type {}",
                    relation.name,
                    column.name,
                    column.ty
                );
            }
        }
    }
}
