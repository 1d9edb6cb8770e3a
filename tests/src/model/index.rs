//! An index: its definition as SQL, the names and types of its columns, and the entries of documents.

use super::Bucket;
use super::expr::{Expr, Predicate, Scope, Step, Type};
use super::json::{Json, Value, compare};
use super::text::{SqlWriter, quoted};

/// A key part.
#[derive(Clone, Debug)]
pub struct Key {
    /// The expression that is evaluated for each document.
    pub expr: Expr,
    /// `UNNEST(expr)`: one entry for each distinct element.
    pub unnest: bool,
    /// `DESC`
    pub descending: bool,
    /// `INCLUDE MISSING`
    pub include_missing: bool,
}

/// A definition.
#[derive(Clone, Debug)]
pub struct Index {
    /// The name of the index.
    pub name: String,
    /// The bucket of the index.
    pub bucket: String,
    /// The key parts; empty for a PRIMARY index.
    pub keys: Vec<Key>,
    /// The included expressions.
    pub include: Vec<Expr>,
    /// `WHERE`
    pub predicate: Option<Predicate>,
    /// `PARTITION BY HASH`
    pub partition: Vec<Expr>,
    /// `slices`
    pub slices: u32,
    /// `replicas`
    pub replicas: u32,
}

/// An entry: the document's id, and the values of the columns, keys first.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The document's id.
    pub id: String,
    /// Keys and included values.
    pub columns: Vec<Value>,
}

/// A result column.
#[derive(Clone, Debug)]
pub struct Column {
    /// The name of the column.
    pub name: String,
    /// The type of the column.
    pub kind: Type,
    /// True for a plain path: an expression over the column then has equal meaning by name and by
    /// path.
    pub plain: bool,
}

fn sql(expr: &Expr) -> String {
    SqlWriter { columns: &[], kinds: &[], explicit: false, parameters: None }.expr(expr)
}

/// Returns the last field of a plain path, ignoring casts.
fn last_field(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Cast(inner, _) => last_field(inner),
        Expr::Path(steps) => match steps.last()? {
            Step::Field(name) => Some(name),
            Step::Element(_) => None,
        },
        _ => None,
    }
}

impl Key {
    fn sql(&self) -> String {
        match self.unnest {
            true => format!("UNNEST({})", sql(&self.expr)),
            false => sql(&self.expr),
        }
    }
}

impl Index {
    /// The CREATE INDEX statement.
    pub fn create(&self, deferred: bool) -> String {
        let mut writer = SqlWriter { columns: &[], kinds: &[], explicit: false, parameters: None };
        let name = &self.name;
        let mut text = match self.keys.is_empty() {
            true => format!("CREATE PRIMARY INDEX {name} ON {}", self.bucket),
            false => {
                let keys: Vec<String> = self.keys.iter().map(key_sql).collect();
                format!("CREATE INDEX {name} ON {} ({})", self.bucket, keys.join(", "))
            }
        };
        if !self.include.is_empty() {
            let include: Vec<String> = self.include.iter().map(sql).collect();
            text += &format!(" INCLUDE ({})", include.join(", "));
        }
        if let Some(predicate) = &self.predicate {
            text += &format!(" WHERE {}", writer.predicate(predicate));
        }
        if !self.partition.is_empty() {
            let exprs: Vec<String> = self.partition.iter().map(sql).collect();
            text += &format!(" PARTITION BY HASH ({})", exprs.join(", "));
        }
        text += &format!(" WITH (slices = {}, replicas = {}", self.slices, self.replicas);
        text + if deferred { ", defer_build = true)" } else { ")" }
    }

    /// Returns the columns, keys first. A column's name is the last field of its path, or the text
    /// of its expression if that is not a plain path or the name is taken.
    pub fn columns(&self) -> Vec<Column> {
        let keys = self.keys.iter().map(|key| (key.sql(), &key.expr, key.unnest));
        let include = self.include.iter().map(|expr| (sql(expr), expr, false));
        let mut columns: Vec<Column> = Vec::new();
        for (text, expr, unnest) in keys.chain(include) {
            let field = last_field(expr).filter(|_| !unnest).map(str::to_owned);
            let candidates =
                field.into_iter().chain([text.clone()]).chain((2..).map(|n| format!("{text}_{n}")));
            let taken = |name: &String| name == "id" || columns.iter().any(|c| c.name == *name);
            let name = candidates.into_iter().find(|name| !taken(name)).expect("endless");
            let kind = if unnest { Type::Text } else { expr.kind(&[]) };
            let plain = matches!(expr, Expr::Path(_)) && !unnest;
            columns.push(Column { name, kind, plain });
        }
        columns
    }

    /// Returns the names of the columns in a SELECT.
    pub fn column_names(&self) -> Vec<String> {
        self.columns().iter().map(|column| quoted(&column.name, '"')).collect()
    }

    /// Returns all entries of a bucket, in the order of the index.
    pub fn entries(&self, bucket: &Bucket) -> Vec<Entry> {
        let documents = bucket.documents.iter();
        let mut entries: Vec<Entry> =
            documents.flat_map(|(id, document)| self.entries_of(id, &document.value)).collect();
        entries.sort_by(|a, b| {
            let mut parts = self.keys.iter().enumerate().map(|(n, key)| {
                let order = compare(a.columns[n].as_ref(), b.columns[n].as_ref());
                if key.descending { order.reverse() } else { order }
            });
            let keys = parts.find(|order| order.is_ne());
            keys.unwrap_or_else(|| a.id.as_bytes().cmp(b.id.as_bytes()))
        });
        entries
    }

    fn entries_of(&self, id: &str, document: &Json) -> Vec<Entry> {
        let scope = Scope { id, document: Some(document), columns: &[] };
        if self.predicate.as_ref().is_some_and(|p| p.truth(&scope) != Some(true)) {
            return Vec::new();
        }
        let parts: Vec<Value> = self.keys.iter().map(|key| key.expr.eval(&scope)).collect();
        let include: Vec<Value> = self.include.iter().map(|expr| expr.eval(&scope)).collect();
        if let (Some(None), Some(first)) = (parts.first(), self.keys.first())
            && !first.include_missing
        {
            return Vec::new();
        }
        let Some(array) = self.keys.iter().position(|key| key.unnest) else {
            return vec![Entry { id: id.to_owned(), columns: [parts, include].concat() }];
        };
        let Some(Json::Array(items)) = parts[array].clone() else { return Vec::new() };
        let mut elements: Vec<Json> = Vec::new();
        for item in items {
            let known = |e: &Json| compare(Some(e), Some(&item)).is_eq();
            if !elements.iter().any(known) {
                elements.push(item);
            }
        }
        let entry = |element: Json| {
            let mut columns = [parts.clone(), include.clone()].concat();
            columns[array] = Some(element);
            Entry { id: id.to_owned(), columns }
        };
        elements.into_iter().map(entry).collect()
    }
}

fn key_sql(key: &Key) -> String {
    let order = if key.descending { " DESC" } else { "" };
    let missing = if key.include_missing { " INCLUDE MISSING" } else { "" };
    format!("{}{order}{missing}", key.sql())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_array_key_has_an_entry_for_each_distinct_element() {
        let key = |name: &str, unnest| Key {
            expr: Expr::path(&[name]),
            unnest,
            descending: unnest,
            include_missing: false,
        };
        let index = Index {
            name: "i".into(),
            bucket: "b".into(),
            keys: vec![key("a", false), key("tags", true)],
            include: vec![Expr::path(&["x", "a"])],
            predicate: None,
            partition: Vec::new(),
            slices: 2,
            replicas: 0,
        };
        let entries = index.entries_of("k", &json!({"a": 1, "tags": ["x", 1, 1.0, null]}));
        assert_eq!(entries.len(), 3);
        assert!(index.entries_of("k", &json!({"a": 1, "tags": "x"})).is_empty());
        assert!(index.entries_of("k", &json!({"tags": ["x"]})).is_empty());
        let names: Vec<_> = index.columns().into_iter().map(|column| column.name).collect();
        assert_eq!(names, ["a", "UNNEST(tags)", "x.a"]);
    }
}
