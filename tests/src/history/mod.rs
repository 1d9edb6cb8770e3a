//! A judge of recorded histories of transactions: it checks whether they had snapshot isolation. It shares no code with the product.
//!
//! Each key has a *list*, of which a transaction reads all and writes all; a write adds one value at the end, and no value is written
//! twice. So a list contains its own history: all writes of its key in their order, and the order of versions needs no guess. This is
//! the idea of Elle ("Elle: Inferring Isolation Anomalies from Experimental Observations", Kingsbury and Alvaro, 2020).
//!
//! Between transactions there are three kinds of dependencies. *ww*: the second one wrote the version after that of the first one. *wr*: it
//! read that version. *rw*: the first one read a version, and the second one wrote the next. A cycle without rw is
//! none in any snapshot-isolated history, nor is one with a single rw; a cycle with two of them in a row is write skew,
//! which snapshot isolation allows.
//!
//! Transactions that were rolled back have read a snapshot too, so their reads are judged like others. A transaction of unknown outcome
//! counts as committed if any transaction has read its writes.
//!
//! | module | contents |
//! |---|---|
//! | `walk` | one transaction by itself: what it reads from others, and its own view |
//! | `versions` | the order of the versions of each key |
//! | `graph` | dependencies and their cycles |
//! | `check` | all together |
//! | `model_store`, `mutations` | histories with snapshot isolation from a store in memory, and ways to spoil them: the tests of the judge |

mod check;
mod graph;
#[cfg(test)]
mod model_store;
#[cfg(test)]
mod mutations;
#[cfg(test)]
mod tests;
mod versions;
mod walk;

pub use check::check;

/// The key of a list.
pub type Key = u32;
/// A value, which is written once.
pub type Value = u64;
/// A version of a key: all values so far.
pub type List = Vec<Value>;

/// The outcome of a transaction, as known to its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// COMMIT was acknowledged.
    Committed,
    /// The transaction was rolled back, or COMMIT was refused.
    Aborted,
    /// The answer to COMMIT was lost.
    Unknown,
}

/// An operation of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// The transaction has read a list; an absent list is empty.
    Read {
        /// The key of the list.
        key: Key,
        /// The list that was read.
        list: List,
    },
    /// The transaction has written a list, whose last value is new.
    Write {
        /// The key of the list.
        key: Key,
        /// The new version.
        list: List,
    },
    /// The transaction was rolled back to a savepoint: the writes among its operations from this index on are undone.
    Back(usize),
}

/// Keys whose present a snapshot must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Present {
    /// No key: the snapshot may be older.
    OfNone,
    /// All keys.
    OfAll,
    /// The keys with a remainder.
    OfBucket {
        /// The remainder.
        bucket: Key,
        /// The divisor.
        buckets: Key,
    },
}

impl Present {
    /// True if it has a key.
    pub(crate) fn has(self, key: Key) -> bool {
        match self {
            Self::OfNone => false,
            Self::OfAll => true,
            Self::OfBucket { bucket, buckets } => key % buckets == bucket,
        }
    }
}

/// A transaction, as its client has recorded it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// The moment before its first call, in one order of all clients.
    pub begun: u64,
    /// The moment after the answer to its last call.
    pub ended: u64,
    /// The keys whose versions it must see that were acknowledged before it began.
    pub present: Present,
    /// The operations of the transaction that had an answer.
    pub operations: Vec<Operation>,
    /// The outcome of the transaction.
    pub outcome: Outcome,
}

/// A kind of anomaly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A cycle of ww.
    G0,
    /// A read of what was rolled back.
    G1a,
    /// A read of a version that its writer replaced before its commit.
    G1b,
    /// A cycle of ww and wr.
    G1c,
    /// A cycle with one rw: a read skew.
    GSingle,
    /// Two transactions have replaced the same version.
    LostUpdate,
    /// A transaction that does not see its own writes, or wrote a list other than the one it has read plus one value.
    Internal,
    /// A transaction that saw two versions of a key that it had not written.
    NonRepeatable,
    /// A transaction that did not see what was acknowledged before it began.
    Stale,
    /// Lists of one key that do not continue each other, or a committed version that no later one continues.
    Incompatible,
    /// A value that no transaction wrote, or that is in a list twice.
    Garbage,
}

/// A violation of snapshot isolation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Anomaly {
    /// The kind of the anomaly.
    pub kind: Kind,
    /// The transactions that take part, by index.
    pub transactions: Vec<usize>,
    /// A description of the anomaly.
    pub text: String,
}
