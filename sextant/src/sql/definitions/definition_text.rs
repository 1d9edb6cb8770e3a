//! Converts the definition of an index to SQL text: the statement that declares the index, with
//! names quoted where necessary.

use std::fmt::Display;

use proto::expr::Expr;
use proto::model::index::Compression;

use crate::quoted_name::quoted_name;
use crate::sql::ast::{CreateIndex, KeyItem, Partition, TextExpr};

/// Returns the statement that declares an index. If the text is parsed again, it declares the
/// same index.
pub fn create_index(create: &CreateIndex) -> String {
    let kind = if create.primary { "PRIMARY INDEX" } else { "INDEX" };
    let mut sql =
        format!("CREATE {kind} {} ON {}", quoted_name(&create.name), quoted_name(&create.bucket));
    if !create.keys.is_empty() {
        sql += &format!(" ({})", list(create.keys.iter().map(key)));
    }
    if !create.include.is_empty() {
        sql += &format!(" INCLUDE ({})", list(create.include.iter().map(text)));
    }
    if let Some(predicate) = &create.predicate {
        sql += &format!(" WHERE {predicate}");
    }
    match &create.partition {
        Some(Partition::Hash(exprs)) => {
            sql += &format!(" PARTITION BY HASH ({})", list(exprs.iter().map(Expr::to_string)));
        }
        Some(Partition::Range { expr, points }) => {
            sql += &format!(" PARTITION BY RANGE ({expr})");
            if !points.is_empty() {
                sql += &format!(" SPLIT AT ({})", list(points.iter().map(Expr::to_string)));
            }
        }
        None => {}
    }
    let options = options(create);
    if !options.is_empty() {
        sql += &format!(" WITH ({})", list(options.into_iter()));
    }
    sql
}

/// Returns items as text, separated by commas.
fn list(items: impl Iterator<Item = impl Display>) -> String {
    items.map(|item| item.to_string()).collect::<Vec<_>>().join(", ")
}

/// Returns the text of a key part.
fn key(item: &KeyItem) -> String {
    let descending = if item.descending { " DESC" } else { "" };
    let include_missing = if item.include_missing { " INCLUDE MISSING" } else { "" };
    format!("{}{descending}{include_missing}", text(&item.key))
}

/// Returns the original text of an expression, because this text may be the name of its column.
/// Adds a line break if the text may end with a comment.
fn text(item: &TextExpr) -> String {
    let end = if item.text.contains("--") { "\n" } else { "" };
    format!("{}{end}", item.text)
}

/// Returns the texts of the options in `WITH (…)`.
fn options(create: &CreateIndex) -> Vec<String> {
    let numbers = [
        ("slices", create.slices.map(u64::from)),
        ("replicas", create.replicas.filter(|replicas| *replicas > 0).map(u64::from)),
        ("included_kb_max", create.included_kb_max.map(u64::from)),
        ("slice_bytes_max", create.slice_bytes_max.filter(|bytes| *bytes > 0)),
    ];
    let numbers =
        numbers.into_iter().filter_map(|(name, value)| Some(format!("{name} = {}", value?)));
    let separate = create.separate_included_columns.then(|| "separate_included_columns".to_owned());
    let compressed = |(_, kind): &&(&str, Compression)| {
        *kind == create.compression && *kind != Compression::default()
    };
    let compression = Compression::NAMES.iter().find(compressed);
    let compression = compression.map(|(name, _)| format!("compression = '{name}'"));
    numbers.chain(separate).chain(compression).collect()
}
