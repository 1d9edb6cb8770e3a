//! The rows of the relations, as the executor reads them.

mod build;
mod classes;
mod cluster;
mod definitions;
mod fixed;
mod snapshot;

use std::sync::Arc;

use proto::value::Value;

pub use self::snapshot::{Definitions, Snapshot};
use crate::error::Result;
use crate::types::oid::Oid;

/// The rows of one relation: one value for each column of the data, in their order.
pub type Rows = Arc<Vec<Box<[Value]>>>;

/// The relations of one snapshot of the definitions, for one user.
pub trait Relations {
    /// Returns the rows of a table, by its index in the data. A view with a query is expanded by the analyser; one
    /// without has no rows.
    fn rows(&self, relation: usize) -> Result<Rows>;

    /// Returns the positions of the rows of a relation whose column has this value, if it is worth an index:
    /// the executor asks it for equalities of its conditions. The index is built once for a snapshot.
    fn rows_with(&self, relation: usize, column: usize, value: &Value) -> Result<Arc<Vec<u32>>>;

    /// Returns the name and the schema of an object that a `reg…` type or a function such as `pg_get_indexdef`
    /// names: of a relation, type, function, operator, role, schema, collation.
    fn object_name(&self, kind: ObjectKind, oid: Oid) -> Option<(String, String)>;

    /// Returns the OID of an object, by schema (if it was written) and name.
    fn object_named(&self, kind: ObjectKind, schema: Option<&str>, name: &str) -> Option<Oid>;

    /// Returns the definition of an object as SQL; `None` if there is no such object. A column above 0 is that of an
    /// index, of which only this one is returned; `is_pretty` leaves out what a reader does not need.
    fn definition(
        &self,
        kind: Definition,
        oid: Oid,
        column: i64,
        is_pretty: bool,
    ) -> Result<Option<String>>;
}

/// The kinds of definitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Definition {
    Index,
    Constraint,
    View,
    Trigger,
    Rule,
    Function,
    FunctionBody,
    PartitionKey,
    PartitionConstraint,
    Statistics,
}

/// The kinds of objects that have names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum ObjectKind {
    Relation,
    Type,
    Function,
    Operator,
    Role,
    Schema,
    Collation,
}
