//! Definitions of Sextant's objects as SQL.

use super::Definition;
use crate::facts::{Facts, Index, IndexColumn, Table};
use crate::types::ident::quote_ident;
use crate::types::oid::Oid;

/// Returns the definition of an index or a constraint; `None` for an unknown object, and for kinds that Sextant does
/// not have.
pub(super) fn definition(
    facts: &Facts,
    kind: Definition,
    oid: Oid,
    column: i64,
    is_pretty: bool,
) -> Option<String> {
    match kind {
        Definition::Index => {
            let index = facts
                .indexes
                .iter()
                .find(|index| index.oids().is_some_and(|oids| oids.index == oid));
            match index {
                Some(index) => of_index(facts, index, column, is_pretty),
                None => of_primary_key(facts, oid, column, is_pretty),
            }
        }
        Definition::Constraint => {
            let is_own = |table: &&Table| table.oids().is_some_and(|oids| oids.constraint == oid);
            facts.tables.iter().find(is_own).map(|_| "PRIMARY KEY (id)".to_owned())
        }
        Definition::View => of_view(facts, oid),
        _ => None,
    }
}

/// Returns the statement of an index in PostgreSQL's form, or the expression of one of its columns.
fn of_index(facts: &Facts, index: &Index, column: i64, is_pretty: bool) -> Option<String> {
    if column > 0 {
        let at = usize::try_from(column).ok()?.checked_sub(1)?;
        return match index.keys.is_empty() {
            true => (at == 0).then(|| "id".to_owned()),
            false => index
                .keys
                .iter()
                .chain(&index.include)
                .nth(at)
                .map(|column| column.expression.clone()),
        };
    }
    let table = facts.tables.iter().find(|table| table.number == index.table)?;
    let schema = if is_pretty { "" } else { "public." };
    let (name, table) = (quote_ident(&index.name), quote_ident(&table.name));
    let keys: Vec<String> = index.keys.iter().map(key).collect();
    let keys = if keys.is_empty() { "id".to_owned() } else { keys.join(", ") };
    let mut text = format!("CREATE INDEX {name} ON {schema}{table} USING btree ({keys})");
    if !index.include.is_empty() {
        let include: Vec<&str> =
            index.include.iter().map(|column| column.expression.as_str()).collect();
        text += &format!(" INCLUDE ({})", include.join(", "));
    }
    if let Some(predicate) = &index.predicate {
        text += &format!(" WHERE ({predicate})");
    }
    Some(text)
}

/// Returns a key part with its order, of which the default is left out.
fn key(column: &IndexColumn) -> String {
    let is_name = column.expression.chars().all(|c| c.is_alphanumeric() || c == '_');
    let expression =
        if is_name { column.expression.clone() } else { format!("({})", column.expression) };
    let order = match (column.descending, column.nulls_first) {
        (false, false) => "",
        (false, true) => " NULLS FIRST",
        (true, true) => " DESC",
        (true, false) => " DESC NULLS LAST",
    };
    expression + order
}

/// Returns the query of the relation by which an index is read.
fn of_view(facts: &Facts, oid: Oid) -> Option<String> {
    let index =
        facts.indexes.iter().find(|index| index.oids().is_some_and(|oids| oids.relation == oid))?;
    let table = facts.tables.iter().find(|table| table.number == index.table)?;
    let columns = index.keys.iter().chain(&index.include);
    let columns = columns
        .map(|column| format!(",\n    {} AS {}", column.expression, quote_ident(&column.name)));
    let condition = index
        .predicate
        .as_ref()
        .map(|predicate| format!("\n  WHERE {predicate}"))
        .unwrap_or_default();
    let columns: String = columns.collect();
    Some(format!(" SELECT id{columns}\n   FROM {}{condition};", quote_ident(&table.name)))
}

fn of_primary_key(facts: &Facts, oid: Oid, column: i64, is_pretty: bool) -> Option<String> {
    let is_own = |table: &&Table| table.oids().is_some_and(|oids| oids.primary_key == oid);
    let table = facts.tables.iter().find(is_own)?;
    let schema = if is_pretty { "" } else { "public." };
    let (name, table) = (quote_ident(&table.primary_key()), quote_ident(&table.name));
    match column {
        0 => Some(format!("CREATE UNIQUE INDEX {name} ON {schema}{table} USING btree (id)")),
        1 => Some("id".to_owned()),
        _ => None,
    }
}
