//! A SELECT from a bucket, which reads documents by id.

use std::sync::Arc;

use proto::Result;
use proto::expr::cost::CostMeter;
use proto::expr::{ColumnType, Expr};
use proto::model::bucket::BucketInfo;
use proto::value::Value;
use proto::value::path::Step;

use super::coerce::number_as_text;
use super::column_info::ColumnInfo;
use super::columns::no_column_error;
use super::limit_offset::LimitOffset;
use super::order::Order;
use super::parameters::{ParameterTypes, bind, constant};
use crate::sql::ast::{Select, SelectExpr, SelectItem};
use crate::sql::error::unsupported;
use crate::sql::walk::{ids_of, is_id_path};

/// A SELECT from a bucket with resolved names.
#[derive(Debug)]
pub(super) struct DocumentSelect {
    bucket: Arc<BucketInfo>,
    columns: Vec<(ColumnInfo, DocumentColumn)>,
    ids: Vec<Expr>,
    order_by: Vec<Order>,
    limit_offset: LimitOffset,
}

/// A column of a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DocumentColumn {
    /// The document's id.
    Id,
    /// The document, as JSON.
    Document,
}

/// The plan of a SELECT from a bucket.
#[derive(Debug)]
pub struct DocumentPlan {
    /// The bucket to read.
    pub bucket: Arc<BucketInfo>,
    /// The columns of the result.
    pub columns: Arc<[ColumnInfo]>,
    /// The value of each column.
    pub cells: Vec<DocumentColumn>,
    /// The distinct ids to read, in the order of the result.
    pub ids: Vec<String>,
    /// The maximum number of rows.
    pub limit: Option<u64>,
    /// The number of rows to skip.
    pub offset: u64,
}

const HINT: &str = "SELECT id, doc FROM b WHERE id = 'k' | id IN ('k', …); for anything else CREATE INDEX \
                    (or CREATE PRIMARY INDEX) and select from the index";

impl DocumentSelect {
    /// Resolves the names of a SELECT from a bucket.
    pub(super) fn resolve(select: &Select, bucket: &Arc<BucketInfo>) -> Result<Self> {
        let mut columns = Vec::new();
        for item in &select.items {
            match item {
                SelectItem::Star => {
                    columns.push(column(DocumentColumn::Id, None));
                    columns.push(column(DocumentColumn::Document, None));
                }
                SelectItem::Expr { expr: SelectExpr::Scalar(expr), alias } => {
                    columns.push(column(document_column(expr)?, alias.clone()));
                }
                SelectItem::Expr { .. } => {
                    return Err(unsupported("a bucket has the columns id and doc only", HINT));
                }
            }
        }
        let Some(ids) = select.filter.clone().and_then(ids_of) else {
            return Err(unsupported(
                format!("bucket {} can be read by id only", bucket.name),
                HINT,
            ));
        };
        let order_by = select.order_by.iter().map(|item| match is_id_path(&item.expr) {
            true => Ok(Order {
                expr: Expr::DocumentId,
                descending: item.descending,
                nulls_first: item.nulls_first,
            }),
            false => Err(unsupported("documents are ordered by id only", "ORDER BY id [DESC]")),
        });
        let order_by = order_by.collect::<Result<_>>()?;
        Ok(Self {
            bucket: Arc::clone(bucket),
            columns,
            ids,
            order_by,
            limit_offset: LimitOffset::from_select(select),
        })
    }

    /// Returns the columns of the result.
    pub(super) fn columns(&self) -> Arc<[ColumnInfo]> {
        self.columns.iter().map(|(info, _)| info.clone()).collect()
    }

    /// Infers the types of the parameters.
    pub(super) fn infer_types(&self, types: &mut ParameterTypes) {
        types.expect_text(&self.ids);
        self.limit_offset.infer_types(types);
    }

    /// Inserts the values of the parameters and returns the plan.
    pub(super) fn plan(&self, values: &[Value]) -> Result<DocumentPlan> {
        let columns = self.columns();
        let mut ids: Vec<String> = Vec::with_capacity(self.ids.len());
        let cost = CostMeter::for_evaluation();
        for expr in &self.ids {
            let mut expr = expr.clone();
            // Ids are strings. A number means its text, which INSERT stores.
            number_as_text(&mut expr);
            bind(&mut expr, values, None, &cost)?;
            if let Some(id) = proto::value::text(&constant(&expr, &cost)?) {
                ids.push(id.into_owned());
            }
        }
        let mut seen = std::collections::BTreeSet::new();
        ids.retain(|id| seen.insert(id.clone()));
        if let Some(order) = self.order_by.first() {
            ids.sort();
            if order.descending {
                ids.reverse();
            }
        }
        let (limit, offset) = self.limit_offset.rows(values, &cost)?;
        let cells = self.columns.iter().map(|(_, cell)| *cell).collect();
        let bucket = Arc::clone(&self.bucket);
        Ok(DocumentPlan { bucket, columns, cells, ids, limit, offset })
    }
}

/// Returns the description of a result column.
fn column(cell: DocumentColumn, alias: Option<String>) -> (ColumnInfo, DocumentColumn) {
    let name = match cell {
        DocumentColumn::Id => "id",
        DocumentColumn::Document => "doc",
    };
    let name = alias.unwrap_or_else(|| name.to_owned());
    (ColumnInfo { name, column_type: ColumnType::Text }, cell)
}

/// Returns the column that an expression means: `id`, `META().id` or `doc`, each possibly cast to
/// text. Returns an error for other expressions.
fn document_column(expr: &Expr) -> Result<DocumentColumn> {
    match expr {
        Expr::Cast(inner, ColumnType::Text) => document_column(inner),
        expr if is_id_path(expr) => Ok(DocumentColumn::Id),
        Expr::Path(steps) if matches!(&steps[..], [Step::Field(name)] if name == "doc") => {
            Ok(DocumentColumn::Document)
        }
        Expr::Path(steps) if !matches!(&steps[..], [Step::Field(name), ..] if name == "doc") => {
            Err(no_column_error(expr, "in a bucket, which has id and doc").with_hint(HINT))
        }
        _ => Err(unsupported("a bucket has the columns id and doc only", HINT)),
    }
}
