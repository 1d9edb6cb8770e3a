//! The types of expressions and columns.

pub mod binary;
pub mod ident;
pub mod json;
pub mod name;
pub mod names;
pub mod oid;
pub mod order;
pub mod text;

use std::sync::Arc;

use self::oid::Oid;

/// The static type of an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Type {
    /// A type of `pg_type`, by its OID.
    Plain(Oid),
    /// A row with known fields: a row constructor, or a whole row of a relation or subquery. On
    /// the wire it is `record`.
    Row(Arc<[Field]>),
}

/// A field of a row type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// The name; `f1`, `f2` … in a row constructor.
    pub name: String,
    /// The type.
    pub ty: Type,
}

impl Type {
    /// Returns the OID that the wire shows: that of `record` for a row.
    pub fn oid(&self) -> Oid {
        match self {
            Self::Plain(oid) => *oid,
            Self::Row(_) => oid::RECORD,
        }
    }

    /// Returns true for a type of this OID.
    pub fn is(&self, oid: Oid) -> bool {
        self.oid() == oid
    }
}

impl From<Oid> for Type {
    fn from(oid: Oid) -> Self {
        Self::Plain(oid)
    }
}
