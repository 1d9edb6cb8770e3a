//! Derives the replicated definition of an index from `CREATE INDEX`: with defaults, and with the
//! names and types of the columns.

use proto::expr::Expr;
use proto::model::index::{
    INCLUDED_KB_DEFAULT, IncludedColumn, IndexSpec, KeyPart, PartitionBy, SLICE_BYTES_MAX_LEAST,
    SLICES_DEFAULT, SLICES_MAX,
};
use proto::value::path::Step;
use proto::{Error, ErrorCode, Result};

use super::split_points::range_partition;
use crate::sql::ast::{CreateIndex, Partition, TextExpr};
use crate::sql::plan::{DocumentOperands, UnresolvedExpr, check_condition, coerce, document_type};

/// Returns the definition that a statement declares. Returns the error `InvalidText` if a literal
/// does not have the type of the expression with which it is compared, and the error `WrongType`
/// if the expression after WHERE is not a condition.
pub fn definition(create: &CreateIndex) -> Result<IndexSpec> {
    let mut create = create.clone();
    let keys = create.keys.iter_mut().map(|item| &mut item.key.expr);
    let include = create.include.iter_mut().map(|item| &mut item.expr);
    let partition: &mut [Expr] = match &mut create.partition {
        Some(Partition::Hash(exprs)) => exprs,
        Some(Partition::Range { expr, .. }) => std::slice::from_mut(expr),
        None => &mut [],
    };
    keys.chain(include).chain(partition).try_for_each(|expr| coerce(expr, &UnresolvedExpr))?;
    if let Some(predicate) = &mut create.predicate {
        coerce(predicate, &DocumentOperands)?;
        check_condition(predicate, "WHERE", &DocumentOperands)?;
    }
    let mut names = Names { taken: vec!["id".to_owned()] };
    let keys = create.keys.iter().map(|item| KeyPart {
        expr: item.key.expr.clone(),
        name: names.next_name(&item.key),
        column_type: document_type(&item.key.expr),
        descending: item.descending,
        include_missing: item.include_missing,
    });
    let keys = keys.collect();
    let include = create.include.iter().map(|item| IncludedColumn {
        expr: item.expr.clone(),
        name: names.next_name(item),
        column_type: document_type(&item.expr),
    });
    let include = include.collect();
    if let Some(bytes) =
        create.slice_bytes_max.filter(|bytes| (1..SLICE_BYTES_MAX_LEAST).contains(bytes))
    {
        let what = format!(
            "slice_bytes_max must be 0, for never, or at least {SLICE_BYTES_MAX_LEAST} bytes, not {bytes}"
        );
        return Err(Error::new(ErrorCode::InvalidParameter, what));
    }
    let spec = IndexSpec {
        name: create.name.clone(),
        bucket: create.bucket.clone(),
        primary: create.primary,
        keys,
        include,
        predicate: create.predicate.clone(),
        slices: slices(&create)?,
        partition: match &create.partition {
            Some(Partition::Hash(exprs)) => PartitionBy::Exprs(exprs.clone()),
            Some(Partition::Range { expr, points }) => {
                PartitionBy::Range(range_partition(expr, points)?)
            }
            None => PartitionBy::DocumentId,
        },
        replicas: create.replicas.unwrap_or(0),
        separate_included_columns: create.separate_included_columns,
        included_kb_max: create.included_kb_max.unwrap_or(INCLUDED_KB_DEFAULT),
        compression: create.compression,
        sql: create.sql.clone(),
    };
    let divides = matches!(spec.partition, PartitionBy::Range(_));
    let is_limited = create.slice_bytes_max.is_some_and(|bytes| bytes > 0);
    if divides && is_limited && spec.leading_ranges().is_none() {
        let what = "slice_bytes_max splits ranges of an ascending first key only: other slices cannot be split in place";
        return Err(Error::new(ErrorCode::InvalidParameter, what).with_hint(
            "omit slice_bytes_max, or divide by the first key as it is declared, without DESC",
        ));
    }
    Ok(spec)
}

/// Returns the number of slices. An index that is partitioned by ranges has one slice for each
/// range.
fn slices(create: &CreateIndex) -> Result<u16> {
    let Some(Partition::Range { points, .. }) = &create.partition else {
        return Ok(create.slices.unwrap_or(SLICES_DEFAULT));
    };
    let ranges = points.len() + 1;
    if ranges > usize::from(SLICES_MAX) {
        let what = format!("{ranges} ranges; an index has at most {SLICES_MAX} slices");
        return Err(Error::new(ErrorCode::OverLimit, what));
    }
    match create.slices {
        Some(slices) if usize::from(slices) != ranges => {
            let what = format!(
                "slices = {slices}, but {} split points make {ranges} ranges",
                points.len()
            );
            Err(Error::new(ErrorCode::InvalidParameter, what).with_hint(
                "omit slices, or omit SPLIT AT: then the points are taken from the documents",
            ))
        }
        _ => Ok(ranges as u16),
    }
}

/// The generator of column names. The name of a column is the last field of its path. If the
/// expression is not a plain path, or the name is taken, the name is the text of the expression.
/// Casts are not part of a path.
struct Names {
    taken: Vec<String>,
}

impl Names {
    /// Returns the name of the next column.
    fn next_name(&mut self, item: &TextExpr) -> String {
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

/// Returns the last field of a plain path, ignoring casts. Returns `None` for any other
/// expression.
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
