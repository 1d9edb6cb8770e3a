//! A SELECT from an index: resolution of its names, and its plan.

use std::sync::Arc;

use proto::Result;
use proto::expr::aggregate::AggregateFunction;
use proto::expr::cost::CostMeter;
use proto::expr::{ColumnType, Expr};
use proto::model::index::IndexInfo;
use proto::rpc::scan::{AggregateCall, Consistency, HedgeAfter, Output, ScanRequest};
use proto::value::Value;
use proto::value::path::Step;

use super::column_info::ColumnInfo;
use super::columns::Columns;
use super::divided_scan::{Merge, ReadOrder};
use super::limit_offset::LimitOffset;
use super::names::{aggregate_name, default_name};
use super::order::Order;
use super::parameters::{ParameterTypes, bind};
use super::ranges::{IndexAccess, index_access};
use super::text_comparison::{TextComparison, text_comparisons};
use super::truth::check_condition;
use crate::sql::ast::{OrderItem, Select, SelectExpr, SelectItem};
use crate::sql::error::unsupported;
use crate::sql::qualifier::Qualifier;
use crate::sql::walk::children_mut;

/// A SELECT from an index with resolved names.
#[derive(Debug)]
pub(super) struct IndexSelect {
    index: Arc<IndexInfo>,
    distinct: bool,
    items: Vec<Item>,
    columns: Arc<[ColumnInfo]>,
    filter: Option<Expr>,
    texts: Arc<[TextComparison]>,
    order_by: Vec<Order>,
    limit_offset: LimitOffset,
}

/// A column of the result.
#[derive(Debug)]
struct Item {
    info: ColumnInfo,
    value: ItemValue,
}

/// The value of a column: an expression over a row, or an aggregate.
#[derive(Debug)]
enum ItemValue {
    Scalar(Expr),
    Aggregate { call: AggregateCall, cast: Option<ColumnType> },
}

/// The plan of a SELECT from an index.
#[derive(Debug)]
pub struct IndexPlan {
    /// The index to scan.
    pub index: Arc<IndexInfo>,
    /// The columns of the result.
    pub columns: Arc<[ColumnInfo]>,
    /// The value of each column of the result.
    pub cells: Vec<Cell>,
    /// The request to the router; the session sets its consistency and its time limit.
    pub request: ScanRequest,
    /// The other scans of a divided statement, whose rows are merged with those of `request`.
    pub merge: Option<Merge>,
    /// True if LIMIT or OFFSET removes the only row of a result with aggregates.
    pub skip_aggregates: bool,
    /// The comparisons of columns without a type with texts.
    pub texts: Arc<[TextComparison]>,
    /// The terms of the condition that the ranges implement completely.
    pub(super) used: Vec<Expr>,
}

/// The value of a column of the result.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// The document's id.
    Id,
    /// A key part.
    Key(u16),
    /// An included value.
    Include(u16),
    /// An expression that is computed from the entry.
    Computed(Expr),
    /// An aggregate, with a cast if the statement has one. The aggregates have the order of the
    /// request.
    Aggregate(AggregateFunction, Option<ColumnType>),
}

impl IndexSelect {
    /// Resolves the names of a SELECT from an index.
    pub(super) fn resolve(select: &Select, index: &Arc<IndexInfo>) -> Result<Self> {
        let columns = Columns::from_index(index).qualified_by(Qualifier::of(select));
        let mut items = Vec::new();
        for item in &select.items {
            match item {
                SelectItem::Star => {
                    items.extend(columns.star().map(|expr| scalar(columns, expr, None)))
                }
                SelectItem::Expr { expr, alias } => items.push(resolve_item(columns, expr, alias)?),
            }
        }
        let aggregates =
            items.iter().filter(|item| matches!(item.value, ItemValue::Aggregate { .. })).count();
        if aggregates != 0 && aggregates != items.len() {
            return Err(unsupported(
                "aggregates and columns in one select list need GROUP BY, which is not supported",
                "select aggregates alone, with WHERE for one group at a time",
            ));
        }
        let mut filter = select.filter.clone();
        if let Some(filter) = &mut filter {
            columns.resolve(filter)?;
            check_condition(filter, "WHERE", &columns)?;
        }
        let order_by = match aggregates {
            0 => resolve_order(columns, &select.order_by, &select.items, &items)?,
            // A single row needs no order.
            _ => Vec::new(),
        };
        Ok(Self {
            index: Arc::clone(index),
            distinct: select.distinct && aggregates == 0,
            columns: items.iter().map(|item| item.info.clone()).collect(),
            items,
            texts: filter.iter().flat_map(|filter| text_comparisons(filter, columns)).collect(),
            filter,
            order_by,
            limit_offset: LimitOffset::from_select(select),
        })
    }

    /// Returns the columns of the result.
    pub(super) fn columns(&self) -> Arc<[ColumnInfo]> {
        Arc::clone(&self.columns)
    }

    /// Infers the types of the parameters.
    pub(super) fn infer_types(&self, types: &mut ParameterTypes) {
        let columns = Columns::from_index(&self.index);
        let items = self.items.iter().filter_map(|item| match &item.value {
            ItemValue::Scalar(expr) => Some(expr),
            ItemValue::Aggregate { call, .. } => call.argument.as_ref(),
        });
        for expr in items {
            types.infer_from(expr, Some(columns));
        }
        if let Some(filter) = &self.filter {
            types.infer_from_condition(filter, Some(columns));
        }
        self.limit_offset.infer_types(types);
    }

    /// Inserts the values of the parameters and returns the plan.
    pub(super) fn plan(&self, values: &[Value]) -> Result<IndexPlan> {
        let cost = CostMeter::for_evaluation();
        let whole = index_access(&self.index.spec, self.conjuncts(values, &cost)?);
        let (limit, offset) = self.limit_offset.rows(values, &cost)?;
        let (cells, calls) = self.cells(values, &cost)?;
        let way = self.read_order(&whole)?;
        let skip_aggregates = !calls.is_empty() && (limit == Some(0) || offset > 0);
        let needs_include = || cells.iter().any(|cell| needs_include(cell, &self.index.spec));
        let (output, rows) = match calls.is_empty() {
            true => (Output::Rows { include: needs_include() }, (limit, offset)),
            false => (Output::Aggregates(calls.into()), (None, 0)),
        };
        let used = whole.used.clone();
        let (request, merge) = match way.divided.is_empty() {
            true => (self.request(whole, &way, rows, output), None),
            false => self.divided(values, &way, rows, output, &cost)?,
        };
        let (index, texts) = (Arc::clone(&self.index), Arc::clone(&self.texts));
        let columns = self.columns();
        Ok(IndexPlan { index, columns, cells, request, merge, skip_aggregates, texts, used })
    }

    /// Returns the terms of the condition, in which values replace the parameters.
    fn conjuncts(&self, values: &[Value], cost: &CostMeter) -> Result<Vec<Expr>> {
        let mut conjuncts = Vec::new();
        if let Some(mut filter) = self.filter.clone() {
            let columns = Columns::from_index(&self.index);
            bind(&mut filter, values, Some(columns), cost)?;
            check_condition(&mut filter, "WHERE", &columns)?;
            add_conjuncts(filter, &mut conjuncts);
        }
        Ok(conjuncts)
    }

    /// Returns the request of a scan.
    fn request(
        &self,
        mut access: IndexAccess,
        way: &ReadOrder,
        (limit, offset): (Option<u64>, u64),
        output: Output,
    ) -> ScanRequest {
        access.filter.iter_mut().for_each(sort_lists);
        ScanRequest {
            index: self.index.local_id(),
            ranges: access.ranges.into(),
            partitions: access.partitions,
            filter: match access.filter.len() {
                0 | 1 => access.filter.into_iter().next().map(Arc::new),
                _ => Some(Arc::new(Expr::And(access.filter))),
            },
            reverse: way.reverse.unwrap_or(false),
            ordered: way.reverse.is_some() || way.distinct.is_some(),
            distinct_parts: way.distinct,
            limit,
            offset,
            output,
            consistency: Consistency::Any,
            own: None,
            timeout_ms: 0,
            hedge_after: HedgeAfter::Usual,
        }
    }

    /// Returns the request of the first scan, and the other scans if the statement is divided.
    fn divided(
        &self,
        values: &[Value],
        way: &ReadOrder,
        (limit, offset): (Option<u64>, u64),
        output: Output,
        cost: &CostMeter,
    ) -> Result<(ScanRequest, Option<Merge>)> {
        let conjuncts = self.conjuncts(values, cost)?;
        // OFFSET may skip rows of each scan.
        let rows = (limit.map(|limit| limit.saturating_add(offset)), 0);
        let scan = |side: Vec<Expr>| {
            let access = index_access(&self.index.spec, [&conjuncts[..], &side].concat());
            self.request(access, way, rows, output.clone())
        };
        let mut scans: Vec<ScanRequest> = way.scan_conditions().into_iter().map(scan).collect();
        let first = scans.swap_remove(0);
        let parts = way.divided.clone();
        Ok((first, Some(Merge { others: scans, parts, limit, offset })))
    }

    /// Returns the direction of the scan, and the key parts by which the statement must be
    /// divided.
    fn read_order(&self, access: &IndexAccess) -> Result<ReadOrder> {
        let columns = self.items.iter().filter_map(|item| match &item.value {
            ItemValue::Scalar(expr) => Some(expr),
            ItemValue::Aggregate { .. } => None,
        });
        let columns: Option<Vec<&Expr>> = self.distinct.then(|| columns.collect());
        ReadOrder::new(&self.index.spec, &self.order_by, columns.as_deref(), access)
    }

    /// Returns the value of each column of the result, and the aggregates that the scan computes.
    fn cells(&self, values: &[Value], cost: &CostMeter) -> Result<(Vec<Cell>, Vec<AggregateCall>)> {
        let columns = Columns::from_index(&self.index);
        let keys = self.index.spec.keys.len() as u16;
        let mut calls = Vec::new();
        let mut cells = Vec::with_capacity(self.items.len());
        for item in &self.items {
            cells.push(match &item.value {
                ItemValue::Aggregate { call, cast } => {
                    let mut call = call.clone();
                    if let Some(argument) = &mut call.argument {
                        bind(argument, values, Some(columns), cost)?;
                    }
                    let function = call.function;
                    calls.push(call);
                    Cell::Aggregate(function, *cast)
                }
                ItemValue::Scalar(Expr::DocumentId) => Cell::Id,
                ItemValue::Scalar(Expr::Column(n)) if *n < keys => Cell::Key(*n),
                ItemValue::Scalar(Expr::Column(n)) => Cell::Include(*n - keys),
                ItemValue::Scalar(expr) => {
                    let mut expr = expr.clone();
                    bind(&mut expr, values, Some(columns), cost)?;
                    Cell::Computed(expr)
                }
            });
        }
        Ok((cells, calls))
    }
}

/// Resolves the names in an item of the select list.
fn resolve_item(columns: Columns<'_>, expr: &SelectExpr, alias: &Option<String>) -> Result<Item> {
    match expr {
        SelectExpr::Aggregate { function, argument, cast } => {
            let mut argument = argument.clone();
            if let Some(argument) = &mut argument {
                columns.resolve(argument)?;
            }
            let column_type = cast.unwrap_or(match function {
                AggregateFunction::Count => ColumnType::Int8,
                AggregateFunction::Sum | AggregateFunction::Avg => ColumnType::Numeric,
                AggregateFunction::Min | AggregateFunction::Max => {
                    argument.as_ref().map_or(ColumnType::Text, |e| columns.type_of(e))
                }
            });
            let name = alias.clone().unwrap_or_else(|| aggregate_name(*function).to_owned());
            let call = AggregateCall { function: *function, argument };
            Ok(Item {
                info: ColumnInfo { name, column_type },
                value: ItemValue::Aggregate { call, cast: *cast },
            })
        }
        SelectExpr::Scalar(expr) => {
            let mut expr = expr.clone();
            columns.resolve(&mut expr)?;
            Ok(scalar(columns, expr, alias.clone()))
        }
        SelectExpr::Session(..) => Err(unsupported(
            "functions of the session need a SELECT without FROM",
            "use a SELECT of their own",
        )),
    }
}

/// Returns a column of the result that is an expression over a row.
fn scalar(columns: Columns<'_>, expr: Expr, alias: Option<String>) -> Item {
    let names = columns.names();
    let column = |n: u16| names.get(usize::from(n)).cloned().unwrap_or_default();
    let name = alias.unwrap_or_else(|| default_name(&expr, &column));
    let info = ColumnInfo { name, column_type: columns.type_of(&expr) };
    Item { info, value: ItemValue::Scalar(expr) }
}

/// Resolves ORDER BY. A number means an item of the select list, a word may be an alias, and
/// everything else is an expression.
fn resolve_order(
    columns: Columns<'_>,
    order_by: &[OrderItem],
    select_items: &[SelectItem],
    items: &[Item],
) -> Result<Vec<Order>> {
    let alias_of = |name: &str| {
        select_items.iter().find_map(|item| match item {
            SelectItem::Expr { expr: SelectExpr::Scalar(expr), alias: Some(alias) }
                if alias == name =>
            {
                Some(expr.clone())
            }
            _ => None,
        })
    };
    let mut order = Vec::with_capacity(order_by.len());
    for item in order_by {
        let expr = match &item.expr {
            Expr::Literal(Value::Number(number)) => {
                let place = number.as_i64().and_then(|n| usize::try_from(n).ok()?.checked_sub(1));
                match place.and_then(|at| items.get(at)).map(|item| &item.value) {
                    Some(ItemValue::Scalar(expr)) => expr.clone(),
                    _ => {
                        return Err(proto::Error::new(
                            proto::ErrorCode::InvalidParameter,
                            format!("ORDER BY {} is not an item of the select list", item.expr),
                        ));
                    }
                }
            }
            written => {
                let alias = match written {
                    Expr::Path(steps) => match &steps[..] {
                        [Step::Field(name)] => alias_of(name),
                        _ => None,
                    },
                    _ => None,
                };
                let mut expr = alias.unwrap_or_else(|| written.clone());
                columns.resolve(&mut expr)?;
                expr
            }
        };
        let (descending, nulls_first) = (item.descending, item.nulls_first);
        order.push(Order { expr, descending, nulls_first });
    }
    Ok(order)
}

/// Adds the terms of a condition to `conjuncts`, except those that are always true.
fn add_conjuncts(filter: Expr, conjuncts: &mut Vec<Expr>) {
    match filter {
        Expr::And(terms) => terms.into_iter().for_each(|term| add_conjuncts(term, conjuncts)),
        Expr::Literal(Value::Bool(true)) => {}
        other => conjuncts.push(other),
    }
}

/// Sorts the constants of each `IN`, so that nodes can search them without sorting.
fn sort_lists(expr: &mut Expr) {
    if let Expr::In { list, .. } = expr {
        list.normalize();
    }
    children_mut(expr).into_iter().for_each(sort_lists);
}

/// Returns true if a column of the result needs included values.
fn needs_include(cell: &Cell, spec: &proto::model::index::IndexSpec) -> bool {
    let keys = spec.keys.len();
    match cell {
        Cell::Include(_) => true,
        Cell::Computed(expr) => {
            expr.any(&mut |e| matches!(e, Expr::Column(n) if usize::from(*n) >= keys))
        }
        _ => false,
    }
}
