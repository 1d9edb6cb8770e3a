//! The tables of `SHOW`: pictures of the catalog and of the coordinator's knowledge of the nodes.

mod columns;
mod moves;
mod rollbacks;
mod tables;

pub(super) use moves::moves;
pub(super) use rollbacks::rollbacks;
pub(super) use tables::{buckets, columns, explain_columns, indexes, nodes, settings, slices};
