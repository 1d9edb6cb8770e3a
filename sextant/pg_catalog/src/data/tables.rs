//! The rows of the files, and their parser. The files are part of the build; a test reads them all.

use std::collections::BTreeMap;

use crate::types::oid::Oid;

const TYPES: &str = include_str!("../../data/types.tsv");
const CASTS: &str = include_str!("../../data/casts.tsv");
const OPERATORS: &str = include_str!("../../data/operators.tsv");
const FUNCTIONS: &str = include_str!("../../data/functions.tsv");
const RELATIONS: &str = include_str!("../../data/relations.tsv");
const COLUMNS: &str = include_str!("../../data/columns.tsv");

/// The fixed part of the catalogue.
pub struct Data {
    /// All types, in the order of their OIDs.
    pub types: Vec<TypeRow>,
    /// The implicit, assignment and explicit casts.
    pub casts: BTreeMap<(Oid, Oid), CastRow>,
    /// All operators, in the order of their names.
    pub operators: Vec<OperatorRow>,
    /// All functions, in the order of their names.
    pub functions: Vec<FunctionRow>,
    /// The relations of `pg_catalog` and `information_schema`, in the order of schema and name.
    pub relations: Vec<RelationRow>,
}

/// A type: a row of `pg_type`.
#[derive(Clone, Debug)]
pub struct TypeRow {
    /// The OID of the type.
    pub oid: Oid,
    /// The internal name, such as `int4`.
    pub name: String,
    /// The name of the schema.
    pub schema: String,
    /// The size in bytes; -1 or -2 if it varies.
    pub size: i16,
    /// True if it is passed by value.
    pub by_value: bool,
    /// The kind: `b` base, `d` domain, `p` pseudo-type.
    pub kind: char,
    /// The category, such as `N` for numbers.
    pub category: char,
    /// True if it is the preferred type of its category.
    pub is_preferred: bool,
    /// The delimiter of elements in an array's text.
    pub delimiter: char,
    /// The element's type; 0 if there is none.
    pub element: Oid,
    /// The array type; 0 if there is none.
    pub array: Oid,
    /// The alignment in PostgreSQL's rows: `c`, `s`, `i` or `d`.
    pub alignment: char,
    /// The storage in PostgreSQL's rows: `p`, `e`, `m` or `x`.
    pub storage: char,
    /// The base type of a domain; 0 for other types.
    pub base: Oid,
    /// The modifier of a domain's base type; -1 if there is none.
    pub base_modifier: i32,
    /// The collation; 0 if there is none.
    pub collation: Oid,
    /// The names of the input, output, receive and send functions; empty if there is none.
    pub functions: [String; 4],
}

/// A cast: a row of `pg_cast`.
#[derive(Clone, Copy, Debug)]
pub struct CastRow {
    /// The context in which it is applied: `i` implicit, `a` assignment, `e` explicit.
    pub context: char,
    /// The method: `f` function, `b` the same bytes, `i` by text.
    pub method: char,
}

/// An operator: a row of `pg_operator`.
#[derive(Clone, Debug)]
pub struct OperatorRow {
    /// The number of the row in the data.
    pub index: usize,
    /// The OID of the operator.
    pub oid: Oid,
    /// The name, such as `<=`.
    pub name: String,
    /// The type of the left operand; 0 for a prefix operator.
    pub left: Oid,
    /// The type of the right operand.
    pub right: Oid,
    /// The type of the result.
    pub result: Oid,
    /// The commutator; 0 if there is none.
    pub commutator: Oid,
    /// The negator; 0 if there is none.
    pub negator: Oid,
    /// The name of the operator's function.
    pub function: String,
}

/// A function, aggregate or window function: a row of `pg_proc`.
#[derive(Clone, Debug)]
pub struct FunctionRow {
    /// The number of the row in the data.
    pub index: usize,
    /// The OID of the function.
    pub oid: Oid,
    /// The schema: `pg_catalog` or `information_schema`.
    pub schema: String,
    /// The name, which several functions may have.
    pub name: String,
    /// The kind: `f` function, `a` aggregate, `w` window function.
    pub kind: char,
    /// True if it returns a set of rows.
    pub returns_set: bool,
    /// True if the result is NULL when an argument is.
    pub is_strict: bool,
    /// The volatility: `i` immutable, `s` stable, `v` volatile.
    pub volatility: char,
    /// The element's type of the last argument, which may occur any number of times; 0 if there is none.
    pub variadic: Oid,
    /// The number of arguments at the end that may be left out.
    pub defaults: usize,
    /// The type of the result.
    pub result: Oid,
    /// The types of the arguments.
    pub arguments: Vec<Oid>,
    /// The columns of a result with OUT parameters: names and types; empty without.
    pub out: Vec<(String, Oid)>,
}

/// A column of a relation.
#[derive(Clone, Debug)]
pub struct Column {
    /// The column's name.
    pub name: String,
    /// The type, which may be a domain.
    pub ty: Oid,
    /// The modifier; -1 if there is none.
    pub modifier: i32,
    /// True if it is NOT NULL.
    pub not_null: bool,
    /// The collation; 0 if there is none.
    pub collation: Oid,
}

/// A relation of the catalogue.
#[derive(Clone, Debug)]
pub struct RelationRow {
    /// The number of the row in the data.
    pub index: usize,
    /// The name of the schema.
    pub schema: String,
    /// The name within the schema.
    pub name: String,
    /// The OID of the relation.
    pub oid: Oid,
    /// The kind: `r` table, `v` view.
    pub kind: char,
    /// The OID of its row type.
    pub row_type: Oid,
    /// The columns in their order.
    pub columns: Vec<Column>,
}

/// The fields of a line. A field that is missing reads as empty, and a number that is none as 0: the tests of
/// `data` see that neither occurs.
struct Line<'a>(std::str::Split<'a, char>);

impl<'a> Line<'a> {
    fn text(&mut self) -> &'a str {
        self.0.next().unwrap_or_default()
    }

    fn string(&mut self) -> String {
        self.text().to_owned()
    }

    fn char(&mut self) -> char {
        self.text().chars().next().unwrap_or(' ')
    }

    fn truth(&mut self) -> bool {
        self.text() == "t"
    }

    fn number<N: std::str::FromStr + Default>(&mut self) -> N {
        self.text().parse().unwrap_or_default()
    }

    fn numbers(&mut self) -> Vec<Oid> {
        self.text().split(' ').filter_map(|oid| oid.parse().ok()).collect()
    }
}

fn lines(file: &'static str) -> impl Iterator<Item = Line<'static>> {
    file.lines().map(|line| Line(line.split('\t')))
}

/// Reads the files.
pub(super) fn load() -> Data {
    let mut relations = relations();
    relations.sort_by(|a, b| (&a.schema, &a.name).cmp(&(&b.schema, &b.name)));
    relations.iter_mut().enumerate().for_each(|(index, row)| row.index = index);
    let mut operators: Vec<OperatorRow> = lines(OPERATORS).map(operator).collect();
    operators.sort_by(|a, b| (&a.name, a.oid).cmp(&(&b.name, b.oid)));
    operators.iter_mut().enumerate().for_each(|(index, row)| row.index = index);
    let mut functions: Vec<FunctionRow> = lines(FUNCTIONS).map(function).collect();
    functions.sort_by(|a, b| (&a.name, a.oid).cmp(&(&b.name, b.oid)));
    functions.iter_mut().enumerate().for_each(|(index, row)| row.index = index);
    let casts = lines(CASTS).map(|mut line| {
        let key = (line.number(), line.number());
        (key, CastRow { context: line.char(), method: line.char() })
    });
    Data {
        types: lines(TYPES).map(type_row).collect(),
        casts: casts.collect(),
        operators,
        functions,
        relations,
    }
}

fn type_row(mut line: Line<'_>) -> TypeRow {
    TypeRow {
        oid: line.number(),
        name: line.string(),
        schema: line.string(),
        size: line.number(),
        by_value: line.truth(),
        kind: line.char(),
        category: line.char(),
        is_preferred: line.truth(),
        delimiter: line.char(),
        element: line.number(),
        array: line.number(),
        alignment: line.char(),
        storage: line.char(),
        base: line.number(),
        base_modifier: line.number(),
        collation: line.number(),
        functions: std::array::from_fn(|_| line.string()),
    }
}

fn operator(mut line: Line<'_>) -> OperatorRow {
    OperatorRow {
        index: 0,
        oid: line.number(),
        name: line.string(),
        left: line.number(),
        right: line.number(),
        result: line.number(),
        commutator: line.number(),
        negator: line.number(),
        function: line.string(),
    }
}

fn function(mut line: Line<'_>) -> FunctionRow {
    let mut row = FunctionRow {
        index: 0,
        oid: line.number(),
        schema: line.string(),
        name: line.string(),
        kind: line.char(),
        returns_set: line.truth(),
        is_strict: line.truth(),
        volatility: line.char(),
        variadic: line.number(),
        defaults: line.number(),
        result: line.number(),
        arguments: line.numbers(),
        out: Vec::new(),
    };
    let (all, modes, names) = (line.numbers(), line.text(), line.text());
    let columns = all.iter().zip(modes.chars()).zip(names.split(' '));
    let out = columns.filter(|((_, mode), _)| matches!(mode, 'o' | 't' | 'b'));
    row.out = out.map(|((ty, _), name)| (name.to_owned(), *ty)).collect();
    row
}

fn relations() -> Vec<RelationRow> {
    let mut columns: BTreeMap<(&str, &str), Vec<Column>> = BTreeMap::new();
    for mut line in lines(COLUMNS) {
        let relation = (line.text(), line.text());
        let _number = line.text();
        columns.entry(relation).or_default().push(Column {
            name: line.string(),
            ty: line.number(),
            modifier: line.number(),
            not_null: line.truth(),
            collation: line.number(),
        });
    }
    let relation = |mut line: Line<'static>| {
        let (schema, name) = (line.text(), line.text());
        RelationRow {
            index: 0,
            schema: schema.to_owned(),
            name: name.to_owned(),
            oid: line.number(),
            kind: line.char(),
            row_type: line.number(),
            columns: columns.remove(&(schema, name)).unwrap_or_default(),
        }
    };
    lines(RELATIONS).map(relation).collect()
}
