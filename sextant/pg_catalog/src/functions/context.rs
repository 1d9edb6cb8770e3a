//! The context of a function: the relations, session, limits and patterns of its statement.

use std::borrow::Cow;

use proto::value::{Number, Value};

use super::patterns::Patterns;
use crate::error::{Error, Result};
use crate::limits::Limits;
use crate::plan::Expr;
use crate::relations::Relations;
use crate::session::Session;
use crate::types::Type;
use crate::types::names::Names;
use crate::types::oid::Oid;

/// The longest value that a function makes, in bytes. PostgreSQL's limit is 1 GB; texts of the
/// catalogue have a few kilobytes.
pub(crate) const VALUE_BYTES_MAX: usize = 16 << 20;

/// The surroundings of a call.
pub(crate) struct Context<'a> {
    pub relations: &'a dyn Relations,
    pub session: &'a dyn Session,
    pub limits: &'a mut Limits,
    pub patterns: Patterns,
}

impl<'a> Context<'a> {
    /// Returns the names of objects, for texts of `reg…` types.
    pub fn names(&self) -> Names<'a> {
        Names { relations: self.relations, session: self.session }
    }

    /// Checks the length of a value before it is made (54000), and counts the work.
    pub fn check_bytes(&mut self, bytes: usize) -> Result<()> {
        if bytes <= VALUE_BYTES_MAX {
            return self.limits.step(bytes as u64 / 64);
        }
        let what =
            format!("a value has at most {VALUE_BYTES_MAX} bytes, this one would have {bytes}");
        Err(Error::new("54000", what).with_hint("make a shorter value"))
    }
}

/// The arguments of a call: their values and static types, and the type of the result.
pub(crate) struct Arguments<'a> {
    pub values: &'a [Cow<'a, Value>],
    pub exprs: &'a [Expr],
    pub result: &'a Type,
    /// True if the last argument is an array that was written with VARIADIC.
    pub is_array: bool,
}

impl Arguments<'_> {
    /// Returns the number of arguments.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Returns an argument; NULL for one that was left out.
    pub fn value(&self, at: usize) -> &Value {
        self.values.get(at).map_or(&Value::Null, AsRef::as_ref)
    }

    /// Returns true for an argument that is NULL or was left out.
    pub fn is_null(&self, at: usize) -> bool {
        self.value(at).is_absent()
    }

    /// Returns the static type of an argument; that of NULL for one that was left out.
    pub fn ty(&self, at: usize) -> Type {
        self.exprs.get(at).map_or(Type::Plain(crate::types::oid::UNKNOWN), |expr| expr.ty.clone())
    }

    /// Returns the OID of the static type of an argument.
    pub fn oid(&self, at: usize) -> Oid {
        self.ty(at).oid()
    }

    /// Returns an argument of a type that is stored as text.
    pub fn text(&self, at: usize) -> Result<&str> {
        self.value(at).as_str().ok_or_else(|| self.wrong(at, "text"))
    }

    /// Returns an argument of a numeric type.
    pub fn number(&self, at: usize) -> Result<Number> {
        self.value(at).as_number().ok_or_else(|| self.wrong(at, "a number"))
    }

    /// Returns an integer argument.
    pub fn int(&self, at: usize) -> Result<i64> {
        self.number(at)?.as_i64().ok_or_else(|| self.wrong(at, "an integer"))
    }

    /// Returns an argument with an OID.
    pub fn object(&self, at: usize) -> Result<Oid> {
        Ok(self.int(at)? as Oid)
    }

    /// Returns a boolean argument.
    pub fn truth(&self, at: usize) -> Result<bool> {
        self.value(at).as_bool().ok_or_else(|| self.wrong(at, "a boolean"))
    }

    /// Returns a numeric argument as a double.
    pub fn double(&self, at: usize) -> Result<f64> {
        Ok(self.number(at)?.as_f64())
    }

    /// Returns the elements of an array argument.
    pub fn array(&self, at: usize) -> Result<&[Value]> {
        match self.value(at) {
            Value::Array(items) => Ok(items),
            _ => Err(self.wrong(at, "an array")),
        }
    }

    /// Returns the arguments from one on, each with its type: one by one, or the elements of an
    /// array that was written with VARIADIC.
    pub fn rest(&self, from: usize) -> Vec<(Value, Type)> {
        if !self.is_array {
            let pairs = self.values.iter().zip(self.exprs).skip(from);
            return pairs.map(|(value, expr)| (value.as_ref().clone(), expr.ty.clone())).collect();
        }
        let element =
            crate::data::data().element(self.oid(from)).unwrap_or(crate::types::oid::TEXT);
        match self.value(from) {
            Value::Array(items) => {
                items.iter().map(|item| (item.clone(), element.into())).collect()
            }
            _ => Vec::new(),
        }
    }

    fn wrong(&self, at: usize, wanted: &str) -> Error {
        let found = self.value(at).type_rank();
        Error::internal(format!("argument {} is not {wanted} (rank {found})", at + 1))
    }
}
