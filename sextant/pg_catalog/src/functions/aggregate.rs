//! Aggregates.

use proto::value::{Number, Value};

use super::arithmetic::{binary, double};
use super::context::Context;
use super::json::{to_json, write_value};
use super::signature::{Fold, FoldCall, MakeFold};
use crate::data::FunctionRow;
use crate::error::{Error, Result};
use crate::types::Type;
use crate::types::json::{normalized, write_string};
use crate::types::oid;
use crate::types::order::{compare, size_bytes};
use crate::types::text::print;

/// Returns the implementation of an aggregate.
pub(super) fn find(row: &FunctionRow) -> Option<MakeFold> {
    Some(match row.name.as_str() {
        "count" => |call| Box::new(Count { of_all: call.types.is_empty(), count: 0 }),
        "sum" => |call| reduce(call, |a, b, ty| binary("+", number(a), number(b), ty.oid())),
        "min" => {
            |call| reduce(call, |a, b, _| Ok(if compare(b, a).is_lt() { b } else { a }.clone()))
        }
        "max" => {
            |call| reduce(call, |a, b, _| Ok(if compare(b, a).is_gt() { b } else { a }.clone()))
        }
        "bool_and" | "every" => |call| {
            reduce(call, |a, b, _| {
                Ok(Value::Bool(a.as_bool() == Some(true) && b.as_bool() == Some(true)))
            })
        },
        "bool_or" => |call| {
            reduce(call, |a, b, _| {
                Ok(Value::Bool(a.as_bool() == Some(true) || b.as_bool() == Some(true)))
            })
        },
        "bit_and" => |call| reduce(call, |a, b, _| Ok(Value::int(bits(a) & bits(b)))),
        "bit_or" => |call| reduce(call, |a, b, _| Ok(Value::int(bits(a) | bits(b)))),
        "avg" => |call| moments(&call, Moment::Mean),
        "variance" | "var_samp" => |call| moments(&call, Moment::Variance { of_sample: true }),
        "var_pop" => |call| moments(&call, Moment::Variance { of_sample: false }),
        "stddev" | "stddev_samp" => |call| moments(&call, Moment::Deviation { of_sample: true }),
        "stddev_pop" => |call| moments(&call, Moment::Deviation { of_sample: false }),
        "array_agg" => |_| Box::new(Collect { items: Vec::new() }),
        "string_agg" => |_| Box::new(Join { text: None }),
        "json_agg" => |call| Box::new(JsonList { call, text: String::new(), is_binary: false }),
        "jsonb_agg" => |call| Box::new(JsonList { call, text: String::new(), is_binary: true }),
        "json_object_agg" => {
            |call| Box::new(JsonFields { call, text: String::new(), is_binary: false })
        }
        "jsonb_object_agg" => {
            |call| Box::new(JsonFields { call, text: String::new(), is_binary: true })
        }
        _ => return None,
    })
}

fn number(value: &Value) -> Number {
    value.as_number().unwrap_or(Number::Int(0))
}

fn bits(value: &Value) -> i64 {
    number(value).as_i64().unwrap_or(0)
}

fn first(arguments: Vec<Value>) -> Value {
    arguments.into_iter().next().unwrap_or(Value::Null)
}

struct Count {
    of_all: bool,
    count: i64,
}

impl Fold for Count {
    fn add(&mut self, _: &mut Context<'_>, arguments: Vec<Value>) -> Result<()> {
        self.count += i64::from(self.of_all || !first(arguments).is_absent());
        Ok(())
    }

    fn value(&self, _: &mut Context<'_>) -> Result<Value> {
        Ok(Value::int(self.count))
    }
}

/// Combines two values of a type.
type Combine = fn(&Value, &Value, &Type) -> Result<Value>;

fn reduce(call: FoldCall, combine: Combine) -> Box<dyn Fold> {
    Box::new(Reduce { value: Value::Null, ty: call.result, combine })
}

/// An aggregate that combines the values one by one, without the NULLs.
struct Reduce {
    value: Value,
    ty: Type,
    combine: Combine,
}

impl Fold for Reduce {
    fn add(&mut self, _: &mut Context<'_>, arguments: Vec<Value>) -> Result<()> {
        let value = first(arguments);
        if value.is_absent() {
            return Ok(());
        }
        self.value = match self.value.is_absent() {
            true => value,
            false => (self.combine)(&self.value, &value, &self.ty)?,
        };
        Ok(())
    }

    fn value(&self, _: &mut Context<'_>) -> Result<Value> {
        Ok(self.value.clone())
    }
}

enum Moment {
    Mean,
    Variance { of_sample: bool },
    Deviation { of_sample: bool },
}

/// Means and variances, updated value by value (the method of Youngs and Cramer, as PostgreSQL has it).
struct Moments {
    kind: Moment,
    ty: Type,
    count: f64,
    sum: Value,
    squares: f64,
}

fn moments(call: &FoldCall, kind: Moment) -> Box<dyn Fold> {
    let ty = call.result.clone();
    Box::new(Moments { kind, ty, count: 0.0, sum: Value::int(0), squares: 0.0 })
}

impl Fold for Moments {
    fn add(&mut self, _: &mut Context<'_>, arguments: Vec<Value>) -> Result<()> {
        let Some(value) = first(arguments).as_number() else { return Ok(()) };
        self.count += 1.0;
        self.sum = binary("+", number(&self.sum), value, self.ty.oid())?;
        if self.count > 1.0 {
            let distance = value.as_f64() * self.count - number(&self.sum).as_f64();
            self.squares += distance * distance / (self.count * (self.count - 1.0));
        }
        Ok(())
    }

    fn value(&self, _: &mut Context<'_>) -> Result<Value> {
        let divisor = |of_sample: bool| self.count - if of_sample { 1.0 } else { 0.0 };
        let variance = |of_sample| self.squares / divisor(of_sample);
        match self.kind {
            _ if self.count == 0.0 => Ok(Value::Null),
            Moment::Mean => {
                let count = Number::from_f64(self.count).unwrap_or(Number::Int(1));
                binary("/", number(&self.sum), count, self.ty.oid())
            }
            Moment::Variance { of_sample } | Moment::Deviation { of_sample }
                if divisor(of_sample) <= 0.0 =>
            {
                Ok(Value::Null)
            }
            Moment::Variance { of_sample } => double(variance(of_sample), oid::FLOAT8),
            Moment::Deviation { of_sample } => double(variance(of_sample).sqrt(), oid::FLOAT8),
        }
    }
}

struct Collect {
    items: Vec<Value>,
}

impl Fold for Collect {
    fn add(&mut self, context: &mut Context<'_>, arguments: Vec<Value>) -> Result<()> {
        let item = first(arguments);
        context.limits.store(size_bytes(&item))?;
        self.items.push(item);
        Ok(())
    }

    fn value(&self, context: &mut Context<'_>) -> Result<Value> {
        if self.items.is_empty() {
            return Ok(Value::Null);
        }
        context.check_bytes(self.items.iter().map(size_bytes).sum())?;
        Ok(Value::Array(self.items.clone()))
    }
}

struct Join {
    text: Option<String>,
}

impl Fold for Join {
    fn add(&mut self, context: &mut Context<'_>, arguments: Vec<Value>) -> Result<()> {
        let Some(item) = arguments.first().and_then(Value::as_str) else { return Ok(()) };
        context.limits.store(item.len())?;
        match &mut self.text {
            None => self.text = Some(item.to_owned()),
            Some(text) => {
                text.push_str(arguments.get(1).and_then(Value::as_str).unwrap_or_default());
                text.push_str(item);
                if text.len() > super::context::VALUE_BYTES_MAX {
                    context.check_bytes(text.len())?;
                }
            }
        }
        Ok(())
    }

    fn value(&self, _: &mut Context<'_>) -> Result<Value> {
        Ok(self.text.clone().map_or(Value::Null, Value::String))
    }
}

/// The text of a JSON array or object while it grows; empty without rows.
fn finished(text: &str, end: char, is_binary: bool) -> Result<Value> {
    if text.is_empty() {
        return Ok(Value::Null);
    }
    let text = format!("{text}{end}");
    if is_binary { normalized(&text).map(Value::String) } else { Ok(Value::String(text)) }
}

struct JsonList {
    call: FoldCall,
    text: String,
    is_binary: bool,
}

impl Fold for JsonList {
    fn add(&mut self, context: &mut Context<'_>, arguments: Vec<Value>) -> Result<()> {
        let ty = self.call.types.first().cloned().unwrap_or(Type::Plain(oid::TEXT));
        let is_nested = matches!(arguments.first(), Some(Value::Array(_)));
        let separator = match self.text.is_empty() {
            true => "[",
            // PostgreSQL begins a line for each row and array.
            false if is_nested && !self.is_binary => ", \n ",
            false => ", ",
        };
        let before = self.text.len();
        self.text.push_str(separator);
        let value = to_json(context, &first(arguments), &ty, false)?;
        self.text.push_str(value.as_str().unwrap_or("null"));
        context.limits.store(self.text.len() - before)?;
        if self.text.len() > super::context::VALUE_BYTES_MAX {
            context.check_bytes(self.text.len())?;
        }
        Ok(())
    }

    fn value(&self, _: &mut Context<'_>) -> Result<Value> {
        finished(&self.text, ']', self.is_binary)
    }
}

struct JsonFields {
    call: FoldCall,
    text: String,
    is_binary: bool,
}

impl Fold for JsonFields {
    fn add(&mut self, context: &mut Context<'_>, arguments: Vec<Value>) -> Result<()> {
        let ty = |at: usize| self.call.types.get(at).cloned().unwrap_or(Type::Plain(oid::TEXT));
        let [key, value] = &arguments[..] else { return Err(Error::internal("two arguments")) };
        if key.is_absent() {
            return Err(Error::new("22023", "field name must not be null"));
        }
        let before = self.text.len();
        let mut out = String::from(if self.text.is_empty() { "{ " } else { ", " });
        write_string(&print(key, &ty(0), &context.names())?, &mut out);
        out.push_str(" : ");
        write_value(context, value, &ty(1), false, &mut out)?;
        self.text.push_str(&out);
        context.limits.store(self.text.len() - before)?;
        if self.text.len() > super::context::VALUE_BYTES_MAX {
            context.check_bytes(self.text.len())?;
        }
        Ok(())
    }

    fn value(&self, _: &mut Context<'_>) -> Result<Value> {
        match self.is_binary {
            true => finished(&self.text, '}', true),
            false if self.text.is_empty() => Ok(Value::Null),
            false => Ok(Value::String(format!("{} }}", self.text))),
        }
    }
}
