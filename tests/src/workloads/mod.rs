//! Workloads of transactions against a running cluster, over SQL. They record the reads of their clients, and judge
//! them.
//!
//! | module | contents |
//! |---|---|
//! | `lists` | lists that transactions read and make longer; [`crate::history`] judges the recorded history |
//! | `session` | a client of the lists, which records its operations |
//! | `bank` | transfers between accounts; each transaction compares the sums that it sees |

pub mod bank;
pub mod lists;
mod session;

/// What may fail while a workload runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Faults {
    /// Nothing but the commits of transactions in conflict.
    None,
    /// Members are killed and started again, but the router runs on.
    Restarts,
}

impl Faults {
    /// Panics if a statement must not fail with a SQLSTATE.
    fn check(self, state: &str, what: &str) {
        let allowed: &[&str] = match self {
            Self::None => &[],
            // Lost transactions, nodes that do not answer, epochs that are no longer retained, documents of a commit that waits for a
            // bucket.
            Self::Restarts => &["40001", "57P03", "57014", "72000", "08007", "55P03"],
        };
        assert!(allowed.contains(&state), "{what}: {state}");
    }
}
