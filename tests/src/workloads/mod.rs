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

/// The faults that may occur while a workload runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Faults {
    /// No faults; only commits of conflicting transactions may fail.
    None,
    /// Restarts: members are killed and restarted, but the router continues.
    Restarts,
}

impl Faults {
    /// Panics if statements must not fail with this SQLSTATE.
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
