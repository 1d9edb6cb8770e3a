//! Names of types as SQL shows and writes them.

use super::Type;
use super::ident::quote_ident;
use super::oid::{self, Oid};
use crate::data::data;

/// The types whose SQL name is not the one of `pg_type`, with PostgreSQL's name for display.
const SQL_NAMES: [(Oid, &str); 17] = [
    (oid::BOOL, "boolean"),
    (oid::CHAR, "\"char\""),
    (oid::INT8, "bigint"),
    (oid::INT2, "smallint"),
    (oid::INT4, "integer"),
    (oid::FLOAT4, "real"),
    (oid::FLOAT8, "double precision"),
    (oid::BPCHAR, "character"),
    (oid::VARCHAR, "character varying"),
    (oid::TIME, "time without time zone"),
    (oid::TIMESTAMP, "timestamp without time zone"),
    (oid::TIMESTAMPTZ, "timestamp with time zone"),
    (1266, "time with time zone"),
    (1560, "bit"),
    (1562, "bit varying"),
    (oid::NUMERIC, "numeric"),
    (oid::INTERVAL, "interval"),
];

/// Returns a type's name as errors show it, such as `integer` or `text[]`.
pub fn type_name(ty: &Type) -> String {
    format_type(ty.oid(), -1)
}

/// Returns a type's name with its modifier, as `format_type` does; `???` for an unknown OID.
pub fn format_type(ty: Oid, modifier: i32) -> String {
    if ty == 0 {
        return "-".to_owned();
    }
    let Some(row) = data().type_row(ty) else { return "???".to_owned() };
    if row.name.starts_with('_') && row.element != 0 {
        return format!("{}[]", format_type(row.element, modifier));
    }
    let name =
        SQL_NAMES.iter().find(|(oid, _)| *oid == ty).map_or(row.name.as_str(), |(_, name)| name);
    let name = match (ty, modifier) {
        // `character` alone would be character(1).
        (oid::BPCHAR, ..0) => "bpchar",
        (1560, ..0) => "\"bit\"",
        _ => name,
    };
    let is_standard = SQL_NAMES.iter().any(|(oid, _)| *oid == ty);
    match row.schema.as_str() {
        "pg_catalog" if is_standard => with_modifier(ty, name, modifier),
        "pg_catalog" => quote_ident(name),
        schema => format!("{}.{}", quote_ident(schema), quote_ident(name)),
    }
}

/// Inserts a modifier into a type's name.
fn with_modifier(ty: Oid, name: &str, modifier: i32) -> String {
    if modifier < 0 {
        return name.to_owned();
    }
    match ty {
        oid::BPCHAR | oid::VARCHAR if modifier >= 4 => format!("{name}({})", modifier - 4),
        oid::NUMERIC if modifier >= 4 => {
            let packed = modifier - 4;
            let scale = ((packed & 0x7ff) ^ 1024) - 1024;
            format!("numeric({},{scale})", packed >> 16 & 0xffff)
        }
        oid::TIME | oid::TIMESTAMP | oid::TIMESTAMPTZ | 1266 => match name.split_once(' ') {
            Some((first, rest)) => format!("{first}({modifier}) {rest}"),
            None => format!("{name}({modifier})"),
        },
        1560 | 1562 => format!("{name}({modifier})"),
        _ => name.to_owned(),
    }
}

/// Returns the type with a name of SQL in lower case, without modifier and brackets: the names of
/// `pg_type` and the aliases of the standard. `None` if there is none.
pub fn type_of_name(name: &str) -> Option<Oid> {
    let internal = match name {
        "boolean" => "bool",
        "smallint" => "int2",
        "int" | "integer" => "int4",
        "bigint" => "int8",
        "real" => "float4",
        "float" | "double precision" => "float8",
        "decimal" | "dec" => "numeric",
        "character varying" => "varchar",
        "character" => "bpchar",
        "timestamp without time zone" => "timestamp",
        "timestamp with time zone" => "timestamptz",
        "time without time zone" => "time",
        "time with time zone" => "timetz",
        "bit varying" => "varbit",
        other => other,
    };
    data().type_named(internal).map(|row| row.oid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_shown_as_postgresql_shows_them() {
        for (ty, modifier, name) in [
            (oid::INT4, -1, "integer"),
            (oid::TEXT_ARRAY, -1, "text[]"),
            (oid::BPCHAR, -1, "bpchar"),
            (oid::BPCHAR, 5, "character(1)"),
            (oid::VARCHAR, 7, "character varying(3)"),
            (oid::NUMERIC, (10 << 16 | 2) + 4, "numeric(10,2)"),
            (oid::TIMESTAMPTZ, 3, "timestamp(3) with time zone"),
            (oid::CHAR, -1, "\"char\""),
            (oid::INT2VECTOR, -1, "int2vector"),
            (0, -1, "-"),
            (99_999, -1, "???"),
        ] {
            assert_eq!(format_type(ty, modifier), name);
        }
    }
}
