//! Scans that are divided in two, because MISSING and NULL are two values in an index and one in SQL.
//!
//! An index has the rows in which a part is MISSING before those in which it is NULL, each in the order of the later parts. So the rows of
//! `SELECT DISTINCT a, b, c` that read alike are not adjacent if `b` can be both, and the rows of `WHERE b IS NULL ORDER BY c` are in two
//! runs. Such a statement is answered by two scans, one for the entries in which `b` is MISSING and one for all others. With MISSING read
//! as NULL, both have the required order, and their merge has each row once ([`crate::rows::scan_merge`]).

use proto::Result;
use proto::expr::Expr;
use proto::model::index::IndexSpec;
use proto::rpc::scan::ScanRequest;

use super::order::{Order, direction, distinct_parts};
use super::ranges::Access;
use crate::sql::error::unsupported;

/// Maximum of parts that a scan is divided by; each of them doubles the number of scans.
const DIVIDED_MAX: usize = 2;

/// The merge of several scans.
#[derive(Clone, Debug)]
pub struct Merge {
    /// The scans besides the first one.
    pub others: Vec<ScanRequest>,
    /// The key parts in which MISSING reads as NULL.
    pub parts: Vec<u16>,
    /// Maximum of merged rows.
    pub limit: Option<u64>,
    /// Number of merged rows to skip.
    pub offset: u64,
}

/// The order in which an index is read.
#[derive(Debug)]
pub(super) struct Way {
    /// `None` if any order will do.
    pub reverse: Option<bool>,
    /// The number of leading parts that make up a row of DISTINCT.
    pub distinct: Option<u16>,
    /// The parts that the scan is divided by.
    pub divided: Vec<u16>,
}

impl Way {
    /// Returns how an index provides the order and the distinct rows of a statement.
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

    /// The conditions of the scans: for each part, it is MISSING, or it is not.
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

/// The error for more parts than a scan is divided by.
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
