//! The relations of a PostgreSQL, copied by `psql`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use pg_catalog::data::{RelationRow, data};
use pg_catalog::error::{Error, Result};
use pg_catalog::relations::{Definition, ObjectKind, Relations, Rows};
use pg_catalog::session::{Right, Session};
use pg_catalog::types::names::Names;
use pg_catalog::types::oid::Oid;
use pg_catalog::types::text::parse;
use proto::value::Value;

use super::psql::{folder, script};

type LookUps = BTreeMap<(usize, usize), BTreeMap<Value, Arc<Vec<u32>>>>;

/// The relations, names, definitions and settings of a PostgreSQL.
#[derive(Default)]
pub struct Loaded {
    rows: Vec<Rows>,
    look_ups: Mutex<LookUps>,
    by_oid: BTreeMap<(ObjectKind, Oid), (String, String)>,
    by_name: BTreeMap<(ObjectKind, String, String), Oid>,
    definitions: BTreeMap<(Definition, Oid, i64, bool), String>,
    sizes: BTreeMap<Oid, i64>,
    settings: BTreeMap<String, String>,
    path: Vec<String>,
    version: String,
}

/// Columns whose trees of nodes are shown as the text of the expression.
const TREES: [(&str, &str); 9] = [
    ("adbin", "pg_get_expr(adbin, adrelid)"),
    ("conbin", "pg_get_expr(conbin, conrelid)"),
    ("indexprs", "pg_get_expr(indexprs, indrelid)"),
    ("indpred", "pg_get_expr(indpred, indrelid)"),
    ("relpartbound", "pg_get_expr(relpartbound, oid)"),
    ("proargdefaults", "pg_get_expr(proargdefaults, 0)"),
    ("typdefaultbin", "pg_get_expr(typdefaultbin, 0)"),
    ("polqual", "pg_get_expr(polqual, polrelid)"),
    ("partexprs", "pg_get_expr(partexprs, partrelid)"),
];

const DEFINITIONS: &str = "
select 'Index', indexrelid, n, p, pg_get_indexdef(indexrelid, n, p) from pg_index, generate_series(0, 8) n, (values (true), (false)) v(p) where n <= indnatts
union all select 'Constraint', oid, 0, p, pg_get_constraintdef(oid, p) from pg_constraint, (values (true), (false)) v(p)
union all select 'View', oid, 0, p, pg_get_viewdef(oid, p) from pg_class, (values (true), (false)) v(p) where relkind in ('v', 'm')
union all select 'Trigger', oid, 0, p, pg_get_triggerdef(oid, p) from pg_trigger, (values (true), (false)) v(p)
union all select 'Rule', oid, 0, p, pg_get_ruledef(oid, p) from pg_rewrite, (values (true), (false)) v(p)
union all select 'Function', oid, 0, p, pg_get_functiondef(oid) from pg_proc, (values (true), (false)) v(p) where prokind in ('f', 'p', 'w')
";

fn expression(column: &pg_catalog::data::Column) -> String {
    let name = format!("\"{}\"", column.name);
    if let Some((_, tree)) = TREES.iter().find(|(own, _)| *own == column.name) {
        return (*tree).to_owned();
    }
    let ty = data().type_row(column.ty).map_or("", |row| &row.name);
    if ty.starts_with("reg") { format!("{name}::oid") } else { name }
}

impl Loaded {
    /// Copies everything.
    pub fn load() -> Self {
        let folder = folder("relations");
        let mut text = String::from("set statement_timeout = '20s';\n");
        for relation in &data().relations {
            let columns: Vec<String> = relation.columns.iter().map(expression).collect();
            text += &format!(
                "\\copy (select {} from {}.{}) to '{}.{}'\n",
                columns.join(", "),
                relation.schema,
                relation.name,
                relation.schema,
                relation.name
            );
        }
        for (file, query) in [
            ("definitions", DEFINITIONS),
            (
                "sizes",
                "select oid, pg_relation_size(oid) from pg_class where pg_relation_size(oid) is not null",
            ),
            ("settings", "select name, current_setting(name) from pg_settings"),
            ("version", "select version()"),
        ] {
            text += &format!("\\copy ({}) to '{file}'\n", query.trim().replace('\n', " "));
        }
        script(&text, &folder);
        let read =
            |name: &str| lines(&std::fs::read_to_string(folder.join(name)).unwrap_or_default());
        let mut loaded = Self { path: vec!["public".to_owned()], ..Self::default() };
        let files: Vec<_> = data()
            .relations
            .iter()
            .map(|relation| read(&format!("{}.{}", relation.schema, relation.name)))
            .collect();
        loaded.add_names(&files);
        for (relation, file) in data().relations.iter().zip(files) {
            let rows: Vec<Box<[Value]>> =
                file.into_iter().map(|line| loaded.row(relation, line)).collect();
            loaded.rows.push(Arc::new(rows));
        }
        for line in read("definitions") {
            loaded.add_definition(&line);
        }
        let text = |line: &[Option<String>], at: usize| line[at].clone().unwrap_or_default();
        for line in read("sizes") {
            let number = |at| text(&line, at).parse::<i64>().unwrap_or(0);
            loaded.sizes.insert(number(0) as Oid, number(1));
        }
        for line in read("settings") {
            loaded.settings.insert(text(&line, 0).to_lowercase(), text(&line, 1));
        }
        loaded.version = read("version").first().map(|line| text(line, 0)).unwrap_or_default();
        std::fs::remove_dir_all(&folder).expect("the folder");
        assert!(
            !loaded.version.is_empty(),
            "psql reaches no server: set PGHOST, PGPORT, PGUSER and PGDATABASE"
        );
        loaded
    }

    fn row(&self, relation: &RelationRow, line: Vec<Option<String>>) -> Box<[Value]> {
        let names = Names { relations: self, session: self };
        let value = |(text, column): (Option<String>, &pg_catalog::data::Column)| match text {
            None => Value::Null,
            // Types without values stay texts.
            Some(text) => parse(&text, column.ty, &names).unwrap_or(Value::String(text)),
        };
        line.into_iter().zip(&relation.columns).map(value).collect()
    }

    /// Fills the names of objects from the tables' files.
    fn add_names(&mut self, files: &[Vec<Vec<Option<String>>>]) {
        let tables = [
            (ObjectKind::Schema, "pg_namespace", "nspname", ""),
            (ObjectKind::Role, "pg_authid", "rolname", ""),
            (ObjectKind::Relation, "pg_class", "relname", "relnamespace"),
            (ObjectKind::Type, "pg_type", "typname", "typnamespace"),
            (ObjectKind::Function, "pg_proc", "proname", "pronamespace"),
            (ObjectKind::Operator, "pg_operator", "oprname", "oprnamespace"),
            (ObjectKind::Collation, "pg_collation", "collname", "collnamespace"),
        ];
        for (kind, table, name, schema) in tables {
            let relation = data().relation("pg_catalog", table).expect("a table");
            let at = |column: &str| relation.columns.iter().position(|own| own.name == column);
            for line in &files[relation.index] {
                let text =
                    |column: &str| at(column).and_then(|at| line[at].clone()).unwrap_or_default();
                let oid: Oid = text("oid").parse().unwrap_or(0);
                let schema = text(schema).parse().unwrap_or(0);
                let schema = self.by_oid.get(&(ObjectKind::Schema, schema));
                let schema = schema.map(|(_, name)| name.clone()).unwrap_or_default();
                self.by_oid.insert((kind, oid), (schema.clone(), text(name)));
                self.by_name.entry((kind, schema, text(name))).or_insert(oid);
            }
        }
    }

    fn add_definition(&mut self, line: &[Option<String>]) {
        let text = |at: usize| line[at].clone().unwrap_or_default();
        let kind = match text(0).as_str() {
            "Index" => Definition::Index,
            "Constraint" => Definition::Constraint,
            "View" => Definition::View,
            "Trigger" => Definition::Trigger,
            "Rule" => Definition::Rule,
            _ => Definition::Function,
        };
        let key =
            (kind, text(1).parse().unwrap_or(0), text(2).parse().unwrap_or(0), text(3) == "t");
        self.definitions.insert(key, text(4));
    }

    /// Returns the OID of an object that a placeholder names; that of no object if there is none.
    pub fn oid_of(&self, name: &str) -> Oid {
        let (kind, name) = match name {
            name if name.starts_with("row type of ") => (ObjectKind::Type, name[12..].to_owned()),
            name if name.starts_with("array of ") => (ObjectKind::Type, format!("_{}", &name[9..])),
            name => (ObjectKind::Relation, name.to_owned()),
        };
        self.by_name.get(&(kind, "public".to_owned(), name)).copied().unwrap_or(99_999)
    }
}

/// Reads the text of COPY.
fn lines(text: &str) -> Vec<Vec<Option<String>>> {
    let field = |field: &str| (field != "\\N").then(|| unescape(field));
    text.lines().map(|line| line.split('\t').map(field).collect()).collect()
}

fn unescape(field: &str) -> String {
    let mut out = String::new();
    let mut chars = field.chars();
    while let Some(c) = chars.next() {
        match (c, c == '\\') {
            (_, true) => match chars.next() {
                Some('n') => out.push('\n'),
                Some('t') => out.push('\t'),
                Some('r') => out.push('\r'),
                Some(c) => out.push(c),
                None => {}
            },
            (c, _) => out.push(c),
        }
    }
    out
}

/// Writes a field as COPY does.
pub fn escape(field: &str) -> String {
    let mut out = String::new();
    for c in field.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c => out.push(c),
        }
    }
    out
}

impl Relations for Loaded {
    fn rows(&self, relation: usize) -> Result<Rows> {
        self.rows.get(relation).cloned().ok_or_else(|| Error::internal("no such relation"))
    }

    fn rows_with(&self, relation: usize, column: usize, value: &Value) -> Result<Arc<Vec<u32>>> {
        let mut look_ups = self.look_ups.lock().expect("no panic");
        let look_up = look_ups.entry((relation, column)).or_insert_with(|| {
            let mut positions: BTreeMap<Value, Vec<u32>> = BTreeMap::new();
            for (at, row) in self.rows[relation].iter().enumerate() {
                positions.entry(row[column].clone()).or_default().push(at as u32);
            }
            positions.into_iter().map(|(value, at)| (value, Arc::new(at))).collect()
        });
        Ok(look_up.get(value).cloned().unwrap_or_default())
    }

    fn object_name(&self, kind: ObjectKind, oid: Oid) -> Option<(String, String)> {
        self.by_oid.get(&(kind, oid)).cloned()
    }

    fn object_named(&self, kind: ObjectKind, schema: Option<&str>, name: &str) -> Option<Oid> {
        let schema = schema.unwrap_or_default().to_owned();
        self.by_name.get(&(kind, schema, name.to_owned())).copied()
    }

    fn definition(
        &self,
        kind: Definition,
        oid: Oid,
        column: i64,
        is_pretty: bool,
    ) -> Result<Option<String>> {
        Ok(self.definitions.get(&(kind, oid, column, is_pretty)).cloned())
    }
}

impl Session for Loaded {
    fn user(&self) -> &str {
        "admin"
    }
    fn database(&self) -> &str {
        "app"
    }
    fn search_path(&self) -> &[String] {
        &self.path
    }
    fn setting(&self, name: &str) -> Option<String> {
        self.settings.get(name).cloned()
    }
    fn change_setting(&self, _: &str, value: &str, _: bool) -> Result<String> {
        Ok(value.to_owned())
    }
    fn version(&self) -> String {
        self.version.clone()
    }
    fn process(&self) -> i32 {
        1
    }
    fn transaction_start_us(&self) -> i64 {
        0
    }
    fn statement_start_us(&self) -> i64 {
        0
    }
    fn now_us(&self) -> i64 {
        0
    }
    fn random(&self) -> u64 {
        1
    }
    fn client(&self) -> Option<(String, u16)> {
        None
    }
    fn server(&self) -> Option<(String, u16)> {
        None
    }
    fn process_start_us(&self) -> i64 {
        0
    }
    fn has_right(&self, _: &Right<'_>) -> Result<bool> {
        Ok(true)
    }
    fn relation_size(&self, oid: u32) -> Option<i64> {
        self.sizes.get(&oid).copied()
    }
}
