//! EXPLAIN: describes a plan.

use proto::expr::Expr;
use proto::model::index::PartitionBy;
use proto::rpc::scan::Output;

use super::columns::Columns;
use super::index::IndexPlan;
use super::select::Plan;

impl Plan {
    /// Returns a description of the plan in lines of text.
    pub fn explain(&self) -> Vec<String> {
        match self {
            Self::Index(plan) => plan.explain(),
            Self::Documents(plan) => vec![
                format!("Documents of bucket {}", plan.bucket.name),
                format!("  Ids: {}", plan.ids.len()),
            ],
            Self::Constant(_) => vec!["Constants".to_owned()],
        }
    }
}

impl IndexPlan {
    fn explain(&self) -> Vec<String> {
        let spec = &self.index.spec;
        let names = Columns::from_index(&self.index).names();
        let show = |expr: &Expr| expr.display(&names).to_string();
        let request = &self.request;
        let direction = match (request.ordered, request.reverse) {
            (false, _) => "",
            (true, false) => ", in its order",
            (true, true) => ", in reverse",
        };
        let mut lines = vec![format!("Scan of index {} on {}{direction}", spec.name, spec.bucket)];
        lines.push(self.explain_ranges(show));
        if let Some(filter) = &request.filter {
            lines.push(format!("  Filter: {}", show(filter)));
        }
        if let Some(parts) = request.distinct_parts {
            let parts: Vec<_> = names.iter().take(usize::from(parts)).cloned().collect();
            lines.push(format!("  Distinct: {}", parts.join(", ")));
        }
        let (limit, offset) = match &self.merge {
            Some(merge) => {
                let parts = merge.parts.iter().map(|part| names[usize::from(*part)].clone());
                let parts: Vec<_> = parts.collect();
                lines.push(format!(
                    "  Merged: {} scans, because {} can be NULL and MISSING",
                    merge.others.len() + 1,
                    parts.join(" and ")
                ));
                (merge.limit, merge.offset)
            }
            None => (request.limit, request.offset),
        };
        if let Some(limit) = limit {
            lines.push(format!("  Limit: {limit}"));
        }
        if offset > 0 {
            lines.push(format!("  Offset: {offset}"));
        }
        let columns: Vec<_> = self.columns.iter().map(|column| column.name.as_str()).collect();
        let what = match &request.output {
            Output::Rows { include: false } => "Output",
            Output::Rows { include: true } => "Output, with included columns",
            Output::Aggregates(_) => "Aggregates",
        };
        lines.push(format!("  {what}: {}", columns.join(", ")));
        let by = match &spec.partition {
            PartitionBy::DocumentId => "hash of META().id".to_owned(),
            PartitionBy::Exprs(exprs) => {
                let exprs = exprs.iter().map(Expr::to_string).collect::<Vec<_>>();
                format!("hash of {}", exprs.join(", "))
            }
            PartitionBy::Range(range) => format!("range of {}", range.expr),
        };
        let read = match self.request.slices(&self.index) {
            Some(read) => format!("{} of ", read.len()),
            None => String::new(),
        };
        lines.push(format!("  Slices: {read}{}, by {by}", spec.slices));
        lines
    }

    /// Returns a text about the ranges that the scan reads.
    fn explain_ranges(&self, show: impl Fn(&Expr) -> String) -> String {
        match &self.request.ranges[..] {
            [whole] if whole.low.is_empty() && whole.high.is_none() => {
                "  Ranges: the whole index".to_owned()
            }
            [] => "  Ranges: none, the conditions exclude each other".to_owned(),
            ranges => {
                let used: Vec<_> = self.used.iter().map(show).collect();
                format!("  Ranges: {}, for {}", ranges.len(), used.join(" AND "))
            }
        }
    }
}
