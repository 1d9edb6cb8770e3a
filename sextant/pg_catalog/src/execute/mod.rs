//! Runs a plan within limits.
//!
//! The rows of each stage of a SELECT are made before the next stage begins; only the joins of one
//! FROM run depth first, row by row, so that they store nothing but their result. An expression is
//! evaluated by borrowing: constants and columns are not copied. Subqueries that use no column of
//! their surroundings run once in a statement.
//!
//! Imports run downwards: `query` → `select` → `group`, `window`, `joins` → `sources` → `eval` →
//! `subquery` → `operators`. What is below calls a query by the function in `run::Run`.

mod elements;
mod env;
mod eval;
mod group;
mod join_order;
mod joins;
mod operators;
mod query;
mod references;
mod run;
mod select;
mod sort;
mod sources;
mod subquery;
mod window;

use proto::value::Value;

use self::query::run_query;
use self::run::Run;
use crate::error::Result;
use crate::functions::{Context, Patterns};
use crate::limits::Limits;
use crate::plan::Statement;
use crate::relations::Relations;
use crate::session::Session;

/// Runs a statement and returns its rows. An error has PostgreSQL's SQLSTATE.
pub fn run(
    statement: &Statement,
    parameters: &[Value],
    relations: &dyn Relations,
    session: &dyn Session,
    limits: &mut Limits,
) -> Result<Vec<Box<[Value]>>> {
    let context = Context { relations, session, limits, patterns: Patterns::default() };
    let mut run = Run::new(context, parameters, run_query, statement.ctes);
    run_query(&mut run, &statement.query, None, None)
}
