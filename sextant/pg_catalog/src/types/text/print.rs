//! Values as text.

use proto::value::{Number, Value};

use super::array::{print_array, print_row};
use super::number::{print_double, print_float, print_numeric};
use super::object::print_object;
use crate::data::data;
use crate::error::{Error, Result};
use crate::types::Type;
use crate::types::names::Names;
use crate::types::oid::{self, Oid};

/// Returns a value as the text that the output function of its type makes. NULL is an error of the caller (XX000).
pub fn print(value: &Value, ty: &Type, names: &Names<'_>) -> Result<String> {
    let plain = data().base(ty.oid());
    match value {
        Value::Bool(truth) => Ok(if *truth { "t" } else { "f" }.to_owned()),
        Value::Number(number) => Ok(print_number(*number, plain, names)),
        Value::String(text) => Ok(text.clone()),
        Value::Array(fields) if plain == oid::RECORD => print_row(fields, ty, names, print),
        Value::Array(items) if matches!(plain, oid::INT2VECTOR | oid::OIDVECTOR) => {
            let items =
                items.iter().map(|item| item.as_number().map_or(String::new(), print_numeric));
            Ok(items.collect::<Vec<_>>().join(" "))
        }
        Value::Array(items) => {
            let element = data().element(plain).unwrap_or(oid::TEXT);
            print_array(items, element, names, print)
        }
        _ => {
            let name = names.type_name(plain, None).unwrap_or_else(|| plain.to_string());
            Err(Error::internal(format!("a value of type {name} has no text")))
        }
    }
}

/// Returns a number of a type as text; a number of a `reg…` type is the name of its object.
pub fn print_number(number: Number, ty: Oid, names: &Names<'_>) -> String {
    match ty {
        oid::FLOAT8 => print_double(number.as_f64()),
        oid::FLOAT4 => print_float(number.as_f64()),
        _ => match number.as_i64().and_then(|oid| print_object(ty, oid as Oid, names)) {
            Some(name) => name,
            None => print_numeric(number),
        },
    }
}
