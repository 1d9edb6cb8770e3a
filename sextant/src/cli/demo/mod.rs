//! The demo: it shows the main features on real data and checks every answer.
//!
//! The demo starts a cluster of three coordinators and three indexers in this process and uses it
//! through its SQL port. A separate model holds the expected documents (`model`). A writer moves
//! inhabitants from city to city, so that the sum over all cities never changes, and deletes
//! empty cities. Meanwhile a scanner checks that each scan and each transaction sees one moment.
//!
//! During this traffic an index is created, the leading coordinator is killed, a fourth indexer
//! joins and gets slices, and another indexer is drained. At the end every index is compared with
//! the model, row for row.

mod final_checks;
mod model;
mod rebalance;
mod report;
mod run;
mod sql_error;
mod traffic;

pub use run::{Args, run};
