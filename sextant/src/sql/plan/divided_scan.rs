//! Divides statements into several scans, because MISSING and NULL are two different values in an
//! index but one value in SQL.
//!
//! In an index, the rows in which a key part is MISSING come before the rows in which it is NULL.
//! Within each group, the later parts determine the order. Therefore equal rows of `SELECT
//! DISTINCT a, b, c` are not adjacent if `b` can be both MISSING and NULL, and the rows of `WHERE
//! b IS NULL ORDER BY c` are in two separately sorted groups. Such a statement is executed by two
//! scans: one for the entries in which `b` is MISSING, and one for all others. If MISSING is
//! treated as NULL, both scans have the required order, and their merge contains each row once
//! ([`crate::rows::scan_merge`]).

use proto::Result;
use proto::expr::Expr;
use proto::model::index::IndexSpec;
use proto::rpc::scan::ScanRequest;

use super::order::{Order, direction, distinct_parts};
use super::ranges::IndexAccess;
use crate::sql::error::unsupported;

/// The maximum number of key parts by which a statement is divided. Each of them doubles the
/// number of scans.
const DIVIDED_MAX: usize = 2;

/// The scans of a divided statement after the first one, and the limits of their merge.
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

/// The direction in which an index is read, and the key parts by which the statement is divided.
#[derive(Debug)]
pub(super) struct ReadOrder {
    /// True to read backwards, false to read forwards; `None` if both directions give the order.
    pub reverse: Option<bool>,
    /// The number of leading key parts that form a row of DISTINCT; `None` without DISTINCT.
    pub distinct: Option<u16>,
    /// The key parts by which the statement is divided.
    pub divided: Vec<u16>,
}

impl ReadOrder {
    /// Returns how an index provides the order and the distinct rows of a statement. Returns an
    /// error if the index cannot.
    pub(super) fn new(
        spec: &IndexSpec,
        order: &[Order],
        distinct: Option<&[&Expr]>,
        access: &IndexAccess,
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

    /// Returns the same for a statement that is divided by the parts `divided`.
    fn divided_by(
        spec: &IndexSpec,
        order: &[Order],
        distinct: Option<&[&Expr]>,
        access: &IndexAccess,
        mut divided: Vec<u16>,
    ) -> Result<Self> {
        let mut fixed = access.fixed.clone();
        // In each of the scans, a divided part has a single value.
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
            true => Err(too_many_parts_error(spec, &divided)),
            false => Ok(Self { reverse, distinct, divided }),
        }
    }

    /// Returns the conditions of each scan. For each divided part, half of the scans have the
    /// condition that it is MISSING, the other half that it is not.
    pub(super) fn scan_conditions(&self) -> Vec<Vec<Expr>> {
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

/// Returns the error for a statement that would have to be divided by too many parts.
fn too_many_parts_error(spec: &IndexSpec, divided: &[u16]) -> proto::Error {
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
