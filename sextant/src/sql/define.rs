//! Turns `CREATE INDEX` into the replicated definition: adds defaults, and names and types of columns.

use proto::Result;
use proto::expr::Expr;
use proto::model::index::{
    INCLUDED_KB_DEFAULT, IncludedColumn, IndexSpec, KeyPart, PartitionBy, SLICES_DEFAULT,
};
use proto::value::path::Step;

use super::ast::{CreateIndex, TextExpr};
use super::plan::{coerce, document_type};

/// Returns the definition that a statement declares. `InvalidText` if a literal does not have the type of the expression
/// that it is compared with.
pub fn definition(create: &CreateIndex) -> Result<IndexSpec> {
    let mut create = create.clone();
    let keys = create.keys.iter_mut().map(|item| &mut item.key.expr);
    let include = create.include.iter_mut().map(|item| &mut item.expr);
    let others = create.predicate.iter_mut().chain(create.partition.iter_mut().flatten());
    keys.chain(include).chain(others).try_for_each(|expr| coerce(expr, &document_type))?;
    let mut names = Names { taken: vec!["id".to_owned()] };
    let keys = create.keys.iter().map(|item| KeyPart {
        expr: item.key.expr.clone(),
        name: names.give(&item.key),
        column_type: document_type(&item.key.expr),
        descending: item.descending,
        include_missing: item.include_missing,
    });
    let keys = keys.collect();
    let include = create.include.iter().map(|item| IncludedColumn {
        expr: item.expr.clone(),
        name: names.give(item),
        column_type: document_type(&item.expr),
    });
    let include = include.collect();
    Ok(IndexSpec {
        name: create.name.clone(),
        bucket: create.bucket.clone(),
        primary: create.primary,
        keys,
        include,
        predicate: create.predicate.clone(),
        partition: match &create.partition {
            Some(exprs) => PartitionBy::Exprs(exprs.clone()),
            None => PartitionBy::DocumentId,
        },
        slices: create.slices.unwrap_or(SLICES_DEFAULT),
        replicas: create.replicas.unwrap_or(0),
        separate_included_columns: create.separate_included_columns,
        included_kb_max: create.included_kb_max.unwrap_or(INCLUDED_KB_DEFAULT),
        compression: create.compression,
        sql: create.sql.clone(),
    })
}

/// Names columns. A column is named by the last field of its path, or by its text if it is not a plain path or the name is
/// taken. A cast is not part of the path.
struct Names {
    taken: Vec<String>,
}

impl Names {
    fn give(&mut self, item: &TextExpr) -> String {
        let mut candidates = last_field(&item.expr)
            .into_iter()
            .map(str::to_owned)
            .chain([item.text.clone()])
            .chain((2..).map(|n| format!("{}_{n}", item.text)));
        let free = |name: &String| !self.taken.contains(name);
        let name = candidates.find(free).unwrap_or_else(|| item.text.clone());
        self.taken.push(name.clone());
        name
    }
}

/// The last field of a plain path, without casts.
pub(crate) fn last_field(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Cast(inner, _) => last_field(inner),
        Expr::Path(steps) => match steps.last() {
            Some(Step::Field(name)) => Some(name),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::ast::Statement;

    #[test]
    fn columns_are_named_by_their_paths_or_their_text() {
        let mut parsed = crate::sql::parse(
            "CREATE INDEX i ON b (country, population::int8 DESC, home.country, id, UNNEST(tags), \
             tags[0], a.country) INCLUDE (lower( Name ), country)",
        )
        .unwrap();
        let Statement::CreateIndex(create) = parsed.remove(0).statement else { panic!("an index") };
        let spec = definition(&create).unwrap();
        let keys: Vec<_> = spec.keys.iter().map(|key| key.name.as_str()).collect();
        assert_eq!(
            keys,
            [
                "country",
                "population",
                "home.country",
                "id_2",
                "UNNEST(tags)",
                "tags[0]",
                "a.country"
            ]
        );
        let include: Vec<_> = spec.include.iter().map(|column| column.name.as_str()).collect();
        assert_eq!(include, ["lower( Name )", "country_2"]);
        assert_eq!(spec.keys[1].column_type, proto::expr::ColumnType::Int8);
        assert_eq!((spec.slices, spec.replicas), (SLICES_DEFAULT, 0));
    }
}
