//! Statements that are divided into two scans, because MISSING and NULL are two values in an index
//! and one in SQL.
//!
//! An index has the rows in which a part is MISSING before those in which it is NULL, each in the
//! order of the later parts. So equal rows of `SELECT DISTINCT a, b, c` are not adjacent if `b` can
//! be both, and the rows of `WHERE b IS NULL ORDER BY c` are in two sorted runs. Such a statement
//! is answered by two scans, one for the entries in which `b` is MISSING and one for all others.
//! With MISSING treated as NULL, both scans have the required order, and their merge contains each
//! row once ([`crate::rows::scan_merge`]).

use proto::Result;
use proto::expr::Expr;
use proto::model::index::IndexSpec;
use proto::rpc::scan::ScanRequest;

use super::order::{Order, direction, distinct_parts};
use super::ranges::Access;
use crate::sql::error::unsupported;

/// The maximum number of parts by which a statement is divided; each of them doubles the number of
/// scans.
const DIVIDED_MAX: usize = 2;

/// The further scans of a divided statement, and the limits of their merge.
#[derive(Clone, Debug)]
pub struct Merge {
    /// The scans in addition to the first one.
    pub others: Vec<ScanRequest>,
    /// The key parts in which MISSING is treated as NULL.
    pub parts: Vec<u16>,
    /// The maximum number of merged rows.
    pub limit: Option<u64>,
    /// The number of merged rows to skip.
    pub offset: u64,
}

/// The direction in which an index is read, and the parts by which the statement is divided.
#[derive(Debug)]
pub(super) struct ReadOrder {
    /// True to read backwards; `None` if either direction gives the order.
    pub reverse: Option<bool>,
    /// The number of leading parts that form a row of DISTINCT; `None` without DISTINCT.
    pub distinct: Option<u16>,
    /// The parts by which the statement is divided.
    pub divided: Vec<u16>,
}

impl ReadOrder {
    /// Returns how an index provides the order and the distinct rows of a statement; an error if it
    /// cannot.
    pub(super) fn new(
        spec: &IndexSpec,
        order: &[Order],
        distinct: Option<&[&Expr]>,
        access: &Access,
    ) -> Result<Self> {
        let plain = Self::divided_by(spec, order, distinct, access, Vec::new());
        match plain {
            Err(_) if !access.absent.is_empty() => {
                let divided = access.absent.clone();
                Self::divided_by(spec, order, distinct, access, divided).or(plain)
            }
            plain => plain,
        }
    }

    fn divided_by(
        spec: &IndexSpec,
        order: &[Order],
        distinct: Option<&[&Expr]>,
        access: &Access,
        mut divided: Vec<u16>,
    ) -> Result<Self> {
        let mut fixed = access.fixed.clone();
        // Each of the scans has a single value there.
        divided.iter().for_each(|part| fixed[usize::from(*part)] = true);
        let reverse = direction(spec, order, &fixed)?;
        let distinct = match distinct {
            Some(columns) => distinct_parts(spec, columns, &fixed, &access.blurred)?,
            None => None,
        };
        let distinct = distinct.map(|(parts, apart)| {
            divided.extend(apart);
            parts
        });
        divided.sort_unstable();
        match divided.len() > DIVIDED_MAX {
            true => Err(too_many(spec, &divided)),
            false => Ok(Self { reverse, distinct, divided }),
        }
    }

    /// Returns the conditions of each scan: for each divided part, that it is MISSING, or that it
    /// is not.
    pub(super) fn sides(&self) -> Vec<Vec<Expr>> {
        let mut sides = vec![Vec::new()];
        for part in &self.divided {
            let is_missing =
                |negated| Expr::IsMissing { expr: Box::new(Expr::Column(*part)), negated };
            sides = [true, false]
                .into_iter()
                .flat_map(|negated| sides.iter().map(move |side: &Vec<Expr>| (negated, side)))
                .map(|(negated, side)| [&side[..], &[is_missing(negated)]].concat())
                .collect();
        }
        sides
    }
}

/// Returns the error for a statement that would be divided by too many parts.
fn too_many(spec: &IndexSpec, divided: &[u16]) -> proto::Error {
    let names: Vec<&str> =
        divided.iter().map(|part| spec.keys[usize::from(*part)].name.as_str()).collect();
    unsupported(
        format!(
            "{} can each be NULL and MISSING, which index {} has apart; at most {DIVIDED_MAX} such columns are joined",
            names.join(", "),
            spec.name
        ),
        format!(
            "add {0} IS NOT NULL, {0} IS MISSING or {0} IS NOT MISSING to the conditions",
            names[0]
        ),
    )
}
