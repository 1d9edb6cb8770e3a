//! Transactions over two buckets, in a seventh of the seeds.
//!
//! The buckets are embedded. With several projectors each bucket begins at a different one, and
//! with copies each bucket has two. Sessions write one or both buckets in a transaction (`run`),
//! with savepoints, scans and reads by id, like the client's transactions. Concurrent single
//! statements write the same documents.
//!
//! - A session may be lost at each stage of its commit: before the other bucket prepares, before
//!   the decision, before the finish, or at any time (`session`). Processes end at these stages too
//!   ([`crate::sim::faults`]).
//! - A commit is in both buckets or in neither, for each reader of both at one moment, and at the
//!   end. An acknowledged commit is visible to every later read; a refused commit never is
//!   (`attempts`).
//! - In each bucket rows, documents, conflicts and the log are judged as in the client's bucket.
//! - After the faults no transaction remains prepared (`settle`).
//!
//! In a quarter of these seeds a source may lose a part of its history, which its operator accepts.
//! Only after such a loss may one bucket lack its part of a commit.

mod attempts;
mod background;
mod commits;
mod lane;
mod moments;
mod run;
mod session;
mod settle;

use serde_json::Value;

use super::views::View;
use crate::sim::judge::oracle::SimIndex;
use crate::sim::judge::statements::MARK;

pub use self::session::CommitStages;

pub(in crate::sim) use self::run::Pair;

/// The names of the buckets.
const BUCKETS: [&str; 2] = ["debits", "credits"];

/// The indexes of each bucket. The second is dropped and recreated while transactions are open.
pub static INDEXES: [[SimIndex; 2]; 2] = [
    [
        SimIndex {
            name: "of_debits",
            sql: "CREATE INDEX of_debits ON debits (n) INCLUDE (w) WITH (slices = 2, replicas = 1)",
            keys: number,
            descending: &[false],
            included: Some(MARK),
        },
        SimIndex {
            name: "late_debits",
            sql: "CREATE INDEX late_debits ON debits (n DESC) WITH (slices = 2)",
            keys: number,
            descending: &[true],
            included: None,
        },
    ],
    [
        SimIndex {
            name: "of_credits",
            sql: "CREATE INDEX of_credits ON credits (n DESC) INCLUDE (w) WITH (slices = 3)",
            keys: number,
            descending: &[true],
            included: Some(MARK),
        },
        SimIndex {
            name: "late_credits",
            sql: "CREATE INDEX late_credits ON credits (n) WITH (slices = 2, replicas = 1)",
            keys: number,
            descending: &[false],
            included: None,
        },
    ],
];

/// Returns the key of a document, its field `n`.
fn number(document: &Value) -> Vec<Vec<Option<Value>>> {
    match document.get("n") {
        None => Vec::new(),
        n => vec![vec![n.cloned()]],
    }
}

/// True if a run has transactions over two buckets.
pub fn are_chosen(seed: u64) -> bool {
    seed % 7 == 4
}

/// True if such a run has no fault that removes a part of a source's history.
pub fn keep_history(seed: u64) -> bool {
    are_chosen(seed) && !(seed / 7).is_multiple_of(4)
}
