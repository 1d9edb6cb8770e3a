//! A SELECT over a bucket: documents by id, as they are at the source now.

use std::sync::Arc;

use proto::Result;
use proto::expr::{ColumnType, Expr};
use proto::model::bucket::BucketInfo;
use proto::value::Value;
use proto::value::path::Step;

use super::order::Order;
use super::parameters::{ParameterTypes, bind, constant};
use super::relation::ColumnInfo;
use super::window::Window;
use crate::sql::ast::{Select, SelectExpr, SelectItem};
use crate::sql::error::unsupported;
use crate::sql::walk::{ids_of, is_id_path};

/// A SELECT over a bucket with its names resolved.
#[derive(Debug)]
pub(super) struct DocumentSelect {
    bucket: Arc<BucketInfo>,
    columns: Vec<(ColumnInfo, DocumentColumn)>,
    ids: Vec<Expr>,
    order_by: Vec<Order>,
    window: Window,
}

/// A column of a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DocumentColumn {
    /// The document's id.
    Id,
    /// The document, as JSON.
    Document,
}

/// How a SELECT over a bucket is answered.
#[derive(Debug)]
pub struct DocumentPlan {
    /// The bucket.
    pub bucket: Arc<BucketInfo>,
    /// The columns of the result.
    pub columns: Vec<ColumnInfo>,
    /// What is in each of them.
    pub cells: Vec<DocumentColumn>,
    /// The ids to read, each once, in the order of the result.
    pub ids: Vec<String>,
    /// At most so many rows.
    pub limit: Option<u64>,
    /// After leaving out so many.
    pub offset: u64,
}

const HINT: &str = "SELECT id, doc FROM b WHERE id = 'k' | id IN ('k', …); for anything else CREATE INDEX \
                    (or CREATE PRIMARY INDEX) and select from the index";

impl DocumentSelect {
    pub(super) fn resolve(select: &Select, bucket: &Arc<BucketInfo>) -> Result<Self> {
        let mut columns = Vec::new();
        for item in &select.items {
            match item {
                SelectItem::Star => {
                    columns.push(column(DocumentColumn::Id, None));
                    columns.push(column(DocumentColumn::Document, None));
                }
                SelectItem::Expr { expr: SelectExpr::Scalar(expr), alias } => {
                    columns.push(column(plain(expr)?, alias.clone()));
                }
                SelectItem::Expr { .. } => {
                    return Err(unsupported("a bucket has the columns id and doc only", HINT));
                }
            }
        }
        let Some(ids) = select.filter.clone().and_then(ids_of) else {
            return Err(unsupported(format!("bucket {} is read by id only", bucket.name), HINT));
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
        Ok(Self { bucket: Arc::clone(bucket), columns, ids, order_by, window: Window::of(select) })
    }

    pub(super) fn columns(&self) -> Vec<ColumnInfo> {
        self.columns.iter().map(|(info, _)| info.clone()).collect()
    }

    pub(super) fn learn(&self, types: &mut ParameterTypes) {
        types.expect_text(&self.ids);
        self.window.learn(types);
    }

    pub(super) fn plan(self, values: &[Value]) -> Result<DocumentPlan> {
        let columns = self.columns();
        let mut ids: Vec<String> = Vec::with_capacity(self.ids.len());
        for mut expr in self.ids {
            bind(&mut expr, values)?;
            // An id is a string; nothing else compares with one.
            if let Value::String(id) = constant(&expr) {
                ids.push(id);
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
        let (limit, offset) = self.window.rows(values)?;
        let cells = self.columns.iter().map(|(_, cell)| *cell).collect();
        Ok(DocumentPlan { bucket: self.bucket, columns, cells, ids, limit, offset })
    }
}

fn column(cell: DocumentColumn, alias: Option<String>) -> (ColumnInfo, DocumentColumn) {
    let name = match cell {
        DocumentColumn::Id => "id",
        DocumentColumn::Document => "doc",
    };
    let name = alias.unwrap_or_else(|| name.to_owned());
    (ColumnInfo { name, column_type: ColumnType::Text }, cell)
}

/// `id`, `META().id` or `doc`; a cast to text changes nothing.
fn plain(expr: &Expr) -> Result<DocumentColumn> {
    match expr {
        Expr::Cast(inner, ColumnType::Text) => plain(inner),
        expr if is_id_path(expr) => Ok(DocumentColumn::Id),
        Expr::Path(steps) if matches!(&steps[..], [Step::Field(name)] if name == "doc") => {
            Ok(DocumentColumn::Document)
        }
        _ => Err(unsupported("a bucket has the columns id and doc only", HINT)),
    }
}
