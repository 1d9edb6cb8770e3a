//! The relations whose rows are the same in each database: functions, operators, casts, access methods.

use std::sync::LazyLock;

use proto::value::Value;

use super::Rows;
use super::build::{concat, int, ints, rows, schema, text, truth};
use crate::data::{FunctionRow, data};
use crate::error::Result;
use crate::facts::OWNER;
use crate::types::oid::Oid;

/// The input and output functions of types: OID, name, result, arguments. Clients read only their names.
const IO_FUNCTIONS: &str = include_str!("../../data/io_functions.tsv");
const OPERATOR_CLASSES: &str = include_str!("../../data/operator_classes.tsv");
const OPERATOR_FAMILIES: &str = include_str!("../../data/operator_families.tsv");

/// The access method of ordered indexes.
pub(super) const BTREE: i64 = 403;

/// The language of functions that are a part of the program.
const INTERNAL: i64 = 12;

fn fields(file: &'static str) -> impl Iterator<Item = Vec<&'static str>> {
    file.lines().map(|line| line.split('\t').collect())
}

fn number(field: Option<&&str>) -> Oid {
    field.and_then(|field| field.parse().ok()).unwrap_or(0)
}

static IO: LazyLock<Vec<(Oid, &'static str)>> = LazyLock::new(|| {
    fields(IO_FUNCTIONS).filter_map(|line| Some((number(line.first()), *line.get(1)?))).collect()
});

/// Returns the OID of an input or output function; 0 if there is none with this name.
pub(super) fn io_function(name: &str) -> Oid {
    IO.iter().find(|(_, own)| *own == name).map_or(0, |(oid, _)| *oid)
}

/// Returns the name of an input or output function; `None` if none has this OID.
pub(super) fn io_function_name(oid: Oid) -> Option<&'static str> {
    IO.iter().find(|(own, _)| *own == oid).map(|(_, name)| *name)
}

/// Returns the OID of the operator class by which an index orders a type; that of text for other types.
pub(super) fn operator_class(ty: Oid) -> Oid {
    let of = |ty: Oid| {
        let mut lines = fields(OPERATOR_CLASSES);
        lines
            .find(|line| number(line.get(3)) == ty && line.get(4) == Some(&"t"))
            .map(|line| number(line.first()))
    };
    of(ty).or_else(|| of(crate::types::oid::TEXT)).unwrap_or(0)
}

pub(super) fn pg_namespace() -> Result<Rows> {
    let all = [
        (schema::PG_CATALOG, "pg_catalog"),
        (schema::PUBLIC, "public"),
        (schema::INFORMATION_SCHEMA, "information_schema"),
    ];
    rows(
        "pg_namespace",
        ["oid", "nspname", "nspowner"],
        all.map(|(oid, name)| [int(oid), text(name), int(OWNER)]),
    )
}

pub(super) fn pg_am() -> Result<Rows> {
    let all = [(2, "heap", "t"), (BTREE, "btree", "i"), (405, "hash", "i")];
    let row = |(oid, name, kind)| [int(oid), text(name), text(kind)];
    rows("pg_am", ["oid", "amname", "amtype"], all.map(row))
}

pub(super) fn pg_proc() -> Result<Rows> {
    let names = [
        "oid",
        "proname",
        "pronamespace",
        "proowner",
        "prolang",
        "procost",
        "prorows",
        "provariadic",
        "prokind",
        "proisstrict",
        "proretset",
        "provolatile",
        "proparallel",
        "pronargs",
        "pronargdefaults",
        "prorettype",
        "proargtypes",
        "prosrc",
        "proallargtypes",
        "proargmodes",
        "proargnames",
    ];
    let own = data().functions.iter().map(|row| {
        let [all, modes, argument_names] = out_columns(row);
        [
            int(row.oid),
            text(&row.name),
            int(schema::of(&row.schema)),
            int(OWNER),
            int(INTERNAL),
            Value::float(1.0),
            Value::float(if row.returns_set { 100.0 } else { 0.0 }),
            int(row.variadic),
            text(row.kind),
            truth(row.is_strict),
            truth(row.returns_set),
            text(row.volatility),
            text("s"),
            int(row.arguments.len() as i64),
            int(row.defaults as i64),
            int(row.result),
            ints(row.arguments.iter().copied()),
            text(&row.name),
            all,
            modes,
            argument_names,
        ]
    });
    let own = rows("pg_proc", names, own)?;
    let io = fields(IO_FUNCTIONS).map(|line| {
        let name = line.get(1).copied().unwrap_or_default();
        let arguments: Vec<Oid> = line
            .get(3)
            .map(|list| list.split(' ').filter_map(|oid| oid.parse().ok()).collect())
            .unwrap_or_default();
        [
            int(number(line.first())),
            text(name),
            int(schema::PG_CATALOG),
            int(OWNER),
            int(INTERNAL),
            Value::float(1.0),
            Value::float(0.0),
            int(0),
            text("f"),
            truth(true),
            truth(false),
            text("i"),
            text("s"),
            int(arguments.len() as i64),
            int(0),
            int(number(line.get(2))),
            ints(arguments),
            text(name),
            Value::Null,
            Value::Null,
            Value::Null,
        ]
    });
    Ok(concat([own, rows("pg_proc", names, io)?]))
}

/// Returns the types, modes and names of all arguments of a function with OUT parameters; NULLs for others.
fn out_columns(row: &FunctionRow) -> [Value; 3] {
    if row.out.is_empty() {
        return [Value::Null, Value::Null, Value::Null];
    }
    let arguments = row.arguments.len();
    let types = row.arguments.iter().copied().chain(row.out.iter().map(|(_, ty)| *ty));
    let modes = std::iter::repeat_n("i", arguments).chain(std::iter::repeat_n("o", row.out.len()));
    let names =
        std::iter::repeat_n("", arguments).chain(row.out.iter().map(|(name, _)| name.as_str()));
    [ints(types), Value::Array(modes.map(text).collect()), Value::Array(names.map(text).collect())]
}

pub(super) fn pg_operator() -> Result<Rows> {
    let names = [
        "oid",
        "oprname",
        "oprnamespace",
        "oprowner",
        "oprkind",
        "oprleft",
        "oprright",
        "oprresult",
        "oprcom",
        "oprnegate",
        "oprcode",
    ];
    let row = |row: &crate::data::OperatorRow| {
        [
            int(row.oid),
            text(&row.name),
            int(schema::PG_CATALOG),
            int(OWNER),
            text(if row.left == 0 { "l" } else { "b" }),
            int(row.left),
            int(row.right),
            int(row.result),
            int(row.commutator),
            int(row.negator),
            int(function_oid(&row.function)),
        ]
    };
    rows("pg_operator", names, data().operators.iter().map(row))
}

fn function_oid(name: &str) -> Oid {
    data().functions_named(name).next().map_or(0, |row| row.oid)
}

pub(super) fn pg_cast() -> Result<Rows> {
    let names = ["oid", "castsource", "casttarget", "castfunc", "castcontext", "castmethod"];
    let row = |(at, ((from, to), cast)): (usize, (&(Oid, Oid), &crate::data::CastRow))| {
        [
            int(10_100 + at as i64),
            int(*from),
            int(*to),
            int(0),
            text(cast.context),
            text(cast.method),
        ]
    };
    rows("pg_cast", names, data().casts.iter().enumerate().map(row))
}

pub(super) fn pg_collation() -> Result<Rows> {
    let names = [
        "oid",
        "collname",
        "collnamespace",
        "collowner",
        "collprovider",
        "collisdeterministic",
        "collencoding",
        "collcollate",
        "collctype",
    ];
    let all = [
        (100, "default", "d", None),
        (950, "C", "c", Some("C")),
        (951, "POSIX", "c", Some("POSIX")),
    ];
    let row = |(oid, name, provider, locale): (i64, &str, &str, Option<&str>)| {
        let locale = || super::build::optional(locale);
        [
            int(oid),
            text(name),
            int(schema::PG_CATALOG),
            int(OWNER),
            text(provider),
            truth(true),
            int(-1),
            locale(),
            locale(),
        ]
    };
    rows("pg_collation", names, all.map(row))
}

pub(super) fn pg_language() -> Result<Rows> {
    let names = ["oid", "lanname", "lanowner", "lanispl", "lanpltrusted"];
    let all = [(INTERNAL, "internal", false), (13, "c", false), (14, "sql", true)];
    rows(
        "pg_language",
        names,
        all.map(|(oid, name, trusted)| {
            [int(oid), text(name), int(OWNER), truth(false), truth(trusted)]
        }),
    )
}

pub(super) fn pg_opclass() -> Result<Rows> {
    let names = [
        "oid",
        "opcmethod",
        "opcname",
        "opcnamespace",
        "opcowner",
        "opcfamily",
        "opcintype",
        "opcdefault",
        "opckeytype",
    ];
    let row = |line: Vec<&str>| {
        [
            int(number(line.first())),
            int(BTREE),
            text(line.get(1).copied().unwrap_or_default()),
            int(schema::PG_CATALOG),
            int(OWNER),
            int(number(line.get(2))),
            int(number(line.get(3))),
            truth(line.get(4) == Some(&"t")),
            int(number(line.get(5))),
        ]
    };
    rows("pg_opclass", names, fields(OPERATOR_CLASSES).map(row))
}

pub(super) fn pg_opfamily() -> Result<Rows> {
    let names = ["oid", "opfmethod", "opfname", "opfnamespace", "opfowner"];
    let row = |line: Vec<&str>| {
        let name = line.get(1).copied().unwrap_or_default();
        [int(number(line.first())), int(BTREE), text(name), int(schema::PG_CATALOG), int(OWNER)]
    };
    rows("pg_opfamily", names, fields(OPERATOR_FAMILIES).map(row))
}
