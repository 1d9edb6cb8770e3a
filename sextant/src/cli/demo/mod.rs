//! The demo: the whole main job on real data, with every answer checked.
//!
//! It starts a cluster of three coordinators and three indexers in this process, talks to it over its
//! SQL port, and keeps its own plain copy of the documents (`model`). While writers move inhabitants
//! from city to city (so that the sum over all cities never changes) and delete empty ones, scanners
//! check that each scan and each transaction shows one moment, an index is created, and the leading
//! coordinator is killed; then a fourth indexer joins and gets slices, and another one is emptied. At the
//! end every index is compared with the model, row for row.

mod final_checks;
mod model;
mod rebalance;
mod report;
mod run;
mod sql_error;
mod traffic;

pub use run::{Args, run};
