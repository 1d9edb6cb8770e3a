//! `pg_class`, `pg_attribute` and the row types of relations in `pg_type`.

use proto::value::Value;

use super::Rows;
use super::build::{concat, int, ints, optional, rows, schema, text, truth};
use super::fixed::BTREE;
use crate::data::data;
use crate::error::Result;
use crate::facts::{Facts, Index, OWNER, OWNER_NAME, Table};
use crate::types::oid::{self, Oid};

/// The access method of tables.
const HEAP: i64 = 2;
/// The OID of the collation `C`, which our order of text is.
pub(super) const COLLATION_C: Oid = 950;

/// A row of `pg_class`.
#[derive(Default)]
struct Class<'a> {
    oid: Oid,
    name: &'a str,
    schema: Oid,
    row_type: Oid,
    method: i64,
    rows: Option<u64>,
    has_index: bool,
    kind: &'static str,
    columns: usize,
    has_rules: bool,
    access: Option<Value>,
}

pub(super) fn pg_class(facts: &Facts) -> Result<Rows> {
    let key_names: Vec<String> = facts.tables.iter().map(Table::primary_key).collect();
    let names = [
        "oid",
        "relname",
        "relnamespace",
        "reltype",
        "relowner",
        "relam",
        "relfilenode",
        "relpages",
        "reltuples",
        "relhasindex",
        "relpersistence",
        "relkind",
        "relnatts",
        "relhasrules",
        "relispopulated",
        "relreplident",
        "relacl",
    ];
    let fixed = data().relations.iter().map(|relation| Class {
        oid: relation.oid,
        name: &relation.name,
        schema: schema::of(&relation.schema),
        row_type: relation.row_type,
        method: if relation.kind == 'r' { HEAP } else { 0 },
        kind: if relation.kind == 'r' { "r" } else { "v" },
        columns: relation.columns.len(),
        has_rules: relation.kind == 'v',
        ..Class::default()
    });
    let tables = facts.tables.iter().filter_map(table_class);
    let indexes = facts.indexes.iter().filter_map(index_classes).flatten();
    let keys = facts.tables.iter().zip(&key_names).filter_map(|(table, name)| {
        Some(Class {
            oid: table.oids()?.primary_key,
            name,
            schema: schema::PUBLIC,
            method: BTREE,
            rows: table.rows,
            kind: "i",
            columns: 1,
            ..Class::default()
        })
    });
    let row = |class: Class<'_>| {
        let is_stored = class.kind != "v";
        let (pages, tuples) = match class.rows {
            // A page of PostgreSQL has some 50 documents: planners of clients want a size.
            Some(rows) => (rows / 50 + 1, rows as f64),
            None => (0, -1.0),
        };
        let file = if is_stored { i64::from(class.oid) } else { 0 };
        [
            int(class.oid),
            text(class.name),
            int(class.schema),
            int(class.row_type),
            int(OWNER),
            int(class.method),
            int(file),
            int(pages as i64),
            Value::float(tuples),
            truth(class.has_index),
            text("p"),
            text(class.kind),
            int(class.columns as i64),
            truth(class.has_rules),
            truth(true),
            text(if class.kind == "r" { "d" } else { "n" }),
            class.access.unwrap_or(Value::Null),
        ]
    };
    rows("pg_class", names, fixed.chain(tables).chain(keys).chain(indexes).map(row))
}

fn table_class(table: &Table) -> Option<Class<'_>> {
    let oids = table.oids()?;
    let grants = table.grants.iter();
    let access: Vec<Value> =
        grants.map(|(user, letters)| text(format!("{user}={letters}/{}", OWNER_NAME))).collect();
    Some(Class {
        oid: oids.table,
        name: &table.name,
        schema: schema::PUBLIC,
        row_type: oids.row_type,
        method: HEAP,
        rows: table.rows,
        has_index: true,
        kind: "r",
        columns: 2,
        access: (!access.is_empty()).then_some(Value::Array(access)),
        ..Class::default()
    })
}

fn index_classes(index: &Index) -> Option<[Class<'_>; 2]> {
    let oids = index.oids()?;
    let of_table = Class {
        oid: oids.index,
        name: &index.name,
        schema: schema::PUBLIC,
        method: BTREE,
        rows: index.rows,
        kind: "i",
        columns: index.keys.len().max(1) + index.include.len(),
        ..Class::default()
    };
    let readable = Class {
        oid: oids.relation,
        name: &index.name,
        schema: schema::PUBLIC,
        row_type: oids.row_type,
        rows: index.rows,
        kind: "v",
        columns: index.keys.len() + index.include.len() + 1,
        has_rules: true,
        ..Class::default()
    };
    Some([of_table, readable])
}

/// A row of `pg_attribute`.
struct Attribute<'a> {
    relation: Oid,
    name: &'a str,
    ty: Oid,
    modifier: i32,
    number: usize,
    not_null: bool,
    collation: Oid,
}

impl<'a> Attribute<'a> {
    fn new(relation: Oid, number: usize, name: &'a str, ty: Oid, not_null: bool) -> Self {
        let row = data().type_row(ty);
        let collation = if row.is_some_and(|row| row.collation != 0) { COLLATION_C } else { 0 };
        Self { relation, name, ty, modifier: -1, number, not_null, collation }
    }
}

pub(super) fn pg_attribute(facts: &Facts) -> Result<Rows> {
    let names = [
        "attrelid",
        "attname",
        "atttypid",
        "attlen",
        "attnum",
        "attcacheoff",
        "atttypmod",
        "attndims",
        "attbyval",
        "attalign",
        "attstorage",
        "attnotnull",
        "attislocal",
        "attstattarget",
        "attcollation",
    ];
    let mut all = Vec::new();
    for relation in &data().relations {
        all.extend(relation.columns.iter().enumerate().map(|(at, column)| Attribute {
            modifier: column.modifier,
            collation: column.collation,
            ..Attribute::new(relation.oid, at + 1, &column.name, column.ty, column.not_null)
        }));
    }
    for oids in facts.tables.iter().filter_map(Table::oids) {
        all.push(Attribute::new(oids.table, 1, "id", oid::TEXT, true));
        all.push(Attribute::new(oids.table, 2, "doc", oid::JSONB, false));
        all.push(Attribute::new(oids.primary_key, 1, "id", oid::TEXT, false));
    }
    for (index, oids) in facts.indexes.iter().filter_map(|index| Some((index, index.oids()?))) {
        all.extend(index_attributes(index, oids.index));
        all.extend(relation_attributes(index, oids.relation));
    }
    let row = |attribute: Attribute<'_>| {
        let ty = data().type_row(attribute.ty);
        let (size, by_value) = ty.map_or((-1, false), |row| (row.size, row.by_value));
        let (align, storage) = ty.map_or(('i', 'x'), |row| (row.alignment, row.storage));
        let dimensions = i64::from(ty.is_some_and(|row| row.category == 'A'));
        [
            int(attribute.relation),
            text(attribute.name),
            int(attribute.ty),
            int(size),
            int(attribute.number as i64),
            int(-1),
            int(attribute.modifier),
            int(dimensions),
            truth(by_value),
            text(align),
            text(storage),
            truth(attribute.not_null),
            truth(true),
            int(-1),
            int(attribute.collation),
        ]
    };
    rows("pg_attribute", names, all.into_iter().map(row))
}

/// Returns the columns of the index of a table. PostgreSQL names those of expressions by the expression.
fn index_attributes(index: &Index, relation: Oid) -> Vec<Attribute<'_>> {
    let columns = index.keys.iter().chain(&index.include);
    let mut all: Vec<_> = columns
        .enumerate()
        .map(|(at, column)| Attribute::new(relation, at + 1, &column.name, column.ty, false))
        .collect();
    if index.keys.is_empty() {
        all.insert(0, Attribute::new(relation, 1, "id", oid::TEXT, false));
        all.iter_mut().enumerate().for_each(|(at, attribute)| attribute.number = at + 1);
    }
    all
}

/// Returns the columns of the readable relation: the id, the key parts, the included columns.
fn relation_attributes(index: &Index, relation: Oid) -> impl Iterator<Item = Attribute<'_>> {
    let columns = index.keys.iter().chain(&index.include).enumerate();
    let columns = columns
        .map(move |(at, column)| Attribute::new(relation, at + 2, &column.name, column.ty, false));
    std::iter::once(Attribute::new(relation, 1, "id", oid::TEXT, false)).chain(columns)
}

/// `pg_type`: the fixed types, and the row types of tables and readable relations with their arrays.
pub(super) fn pg_type(facts: &Facts) -> Result<Rows> {
    let names = [
        "oid",
        "typname",
        "typnamespace",
        "typowner",
        "typlen",
        "typbyval",
        "typtype",
        "typcategory",
        "typispreferred",
        "typisdefined",
        "typdelim",
        "typrelid",
        "typelem",
        "typarray",
        "typinput",
        "typoutput",
        "typreceive",
        "typsend",
        "typalign",
        "typstorage",
        "typbasetype",
        "typtypmod",
        "typcollation",
    ];
    let function = |name: &str| int(super::fixed::io_function(name));
    let fixed = data().types.iter().map(|row| {
        [
            int(row.oid),
            text(&row.name),
            int(schema::of(&row.schema)),
            int(OWNER),
            int(row.size),
            truth(row.by_value),
            text(row.kind),
            text(row.category),
            truth(row.is_preferred),
            truth(true),
            text(row.delimiter),
            int(0),
            int(if row.category == 'A' || row.element != 0 { row.element } else { 0 }),
            int(row.array),
            function(&row.functions[0]),
            function(&row.functions[1]),
            function(&row.functions[2]),
            function(&row.functions[3]),
            text(row.alignment),
            text(row.storage),
            int(row.base),
            int(row.base_modifier),
            int(row.collation),
        ]
    });
    let fixed = rows("pg_type", names, fixed)?;
    let tables = facts.tables.iter().filter_map(|table| {
        let oids = table.oids()?;
        Some((table.name.as_str(), oids.row_type, oids.array_type, oids.table))
    });
    let relations = facts.indexes.iter().filter_map(|index| {
        let oids = index.oids()?;
        Some((index.name.as_str(), oids.row_type, oids.array_type, oids.relation))
    });
    let both = tables.chain(relations).flat_map(|(name, row_type, array, relation)| {
        let types = [(name.to_owned(), row_type, false), (format!("_{name}"), array, true)];
        types.map(|(name, oid, is_array)| {
            let io = if is_array {
                ["array_in", "array_out", "array_recv", "array_send"]
            } else {
                ["record_in", "record_out", "record_recv", "record_send"]
            };
            [
                int(oid),
                text(name),
                int(schema::PUBLIC),
                int(OWNER),
                int(-1),
                truth(false),
                text(if is_array { "b" } else { "c" }),
                text(if is_array { "A" } else { "C" }),
                truth(false),
                truth(true),
                text(","),
                int(if is_array { 0 } else { relation }),
                int(if is_array { row_type } else { 0 }),
                int(if is_array { 0 } else { array }),
                function(io[0]),
                function(io[1]),
                function(io[2]),
                function(io[3]),
                text("d"),
                text("x"),
                int(0),
                int(-1),
                int(0),
            ]
        })
    });
    Ok(concat([fixed, rows("pg_type", names, both)?]))
}

/// `pg_description`: the comments.
pub(super) fn pg_description(facts: &Facts) -> Result<Rows> {
    const PG_CLASS: Oid = 1259;
    let tables = facts
        .tables
        .iter()
        .filter_map(|table| Some((table.oids()?.table, table.comment.as_ref()?)));
    let indexes = facts
        .indexes
        .iter()
        .filter_map(|index| Some((index.oids()?.index, index.comment.as_ref()?)));
    let row = |(oid, comment): (Oid, &String)| [int(oid), int(PG_CLASS), int(0), text(comment)];
    rows(
        "pg_description",
        ["objoid", "classoid", "objsubid", "description"],
        tables.chain(indexes).map(row),
    )
}

/// `pg_index`: the primary keys and the indexes.
pub(super) fn pg_index(facts: &Facts) -> Result<Rows> {
    let names = [
        "indexrelid",
        "indrelid",
        "indnatts",
        "indnkeyatts",
        "indisunique",
        "indisprimary",
        "indimmediate",
        "indisvalid",
        "indisready",
        "indislive",
        "indkey",
        "indcollation",
        "indclass",
        "indoption",
        "indexprs",
        "indpred",
    ];
    let keys = facts.tables.iter().filter_map(|table| {
        let oids = table.oids()?;
        Some([
            int(oids.primary_key),
            int(oids.table),
            int(1),
            int(1),
            truth(true),
            truth(true),
            truth(true),
            truth(true),
            truth(true),
            truth(true),
            ints([1]),
            ints([COLLATION_C]),
            ints([super::fixed::operator_class(oid::TEXT)]),
            ints([0]),
            Value::Null,
            Value::Null,
        ])
    });
    let indexes = facts.indexes.iter().filter_map(|index| {
        let table = facts.tables.iter().find(|table| table.number == index.table)?;
        let keys = index.keys.len().max(1);
        let columns = keys + index.include.len();
        let has_no_keys = index.keys.is_empty();
        // An expression has the column number 0; the id is column 1.
        let numbers = (0..columns).map(|at| i64::from(has_no_keys && at == 0));
        let types: Vec<Oid> = match has_no_keys {
            true => vec![oid::TEXT],
            false => index.keys.iter().map(|column| column.ty).collect(),
        };
        let collation = |ty: &Oid| {
            data().type_row(*ty).filter(|row| row.collation != 0).map_or(0, |_| COLLATION_C)
        };
        let option = |column: &crate::facts::IndexColumn| {
            i64::from(column.descending) | i64::from(column.nulls_first) << 1
        };
        let options: Vec<i64> =
            if has_no_keys { vec![0] } else { index.keys.iter().map(option).collect() };
        let expressions =
            index.keys.iter().chain(&index.include).map(|column| column.expression.clone());
        let expressions: Vec<String> = expressions.collect();
        let ready = index.is_ready;
        Some([
            int(index.oids()?.index),
            int(table.oids()?.table),
            int(columns as i64),
            int(keys as i64),
            truth(false),
            truth(false),
            truth(true),
            truth(ready),
            truth(ready),
            truth(true),
            ints(numbers),
            ints(types.iter().map(collation)),
            ints(types.iter().map(|ty| super::fixed::operator_class(*ty))),
            ints(options),
            optional((!expressions.is_empty()).then(|| expressions.join(", "))),
            optional(index.predicate.clone()),
        ])
    });
    rows("pg_index", names, keys.chain(indexes))
}

/// `pg_constraint`: the primary keys.
pub(super) fn pg_constraint(facts: &Facts) -> Result<Rows> {
    let names = [
        "oid",
        "conname",
        "connamespace",
        "contype",
        "convalidated",
        "conrelid",
        "conindid",
        "confupdtype",
        "confdeltype",
        "confmatchtype",
        "conislocal",
        "connoinherit",
        "conkey",
    ];
    let keys = facts.tables.iter().filter_map(|table| {
        let oids = table.oids()?;
        Some([
            int(oids.constraint),
            text(table.primary_key()),
            int(schema::PUBLIC),
            text("p"),
            truth(true),
            int(oids.table),
            int(oids.primary_key),
            text(" "),
            text(" "),
            text(" "),
            truth(true),
            truth(true),
            ints([1]),
        ])
    });
    rows("pg_constraint", names, keys)
}
