//! A judge of recorded histories of transactions, which checks for snapshot isolation. The judge
//! shares no code with the product.
//!
//! Each key has a *list*, which transactions read and write as a whole; a write appends one value,
//! and each value is written once. A list therefore contains all writes of its key in their order,
//! so that the order of versions is known. This is the idea of Elle ("Elle: Inferring Isolation
//! Anomalies from Experimental Observations", Kingsbury and Alvaro, 2020).
//!
//! Between transactions there are three kinds of dependencies. *ww*: the second transaction wrote
//! the version after that of the first. *wr*: the second read the version of the first. *rw*: the
//! first read a version, and the second wrote the next one. With snapshot isolation there are no
//! cycles without rw and none with a single rw; a cycle with two consecutive rw is write skew,
//! which snapshot isolation allows.
//!
//! Transactions that were rolled back have read a snapshot too, so their reads are judged like
//! others. A transaction of unknown outcome counts as committed if any transaction has read its
//! writes.
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
/// A version of a key: all values written up to it.
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
    /// The transaction was rolled back to a savepoint, which undoes the writes from this operation
    /// (by its index) on.
    Back(usize),
}

/// The keys whose acknowledged versions a snapshot must contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Present {
    /// No key: the snapshot may be of any age.
    OfNone,
    /// All keys.
    OfAll,
    /// The keys whose remainder is `bucket` when divided by `buckets`.
    OfBucket {
        /// The remainder.
        bucket: Key,
        /// The divisor.
        buckets: Key,
    },
}

impl Present {
    /// True if the snapshot must contain the acknowledged versions of a key.
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
    /// The time before its first call, in the order of all clients' events.
    pub begun: u64,
    /// The time after the answer to its last call.
    pub ended: u64,
    /// The keys for which the transaction must see all versions acknowledged before it began.
    pub present: Present,
    /// The operations that were answered.
    pub operations: Vec<Operation>,
    /// The outcome of the transaction.
    pub outcome: Outcome,
}

/// A kind of anomaly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A cycle of ww dependencies.
    G0,
    /// A read of a write that was rolled back.
    G1a,
    /// A read of a version that its writer replaced before its commit.
    G1b,
    /// A cycle of ww and wr dependencies.
    G1c,
    /// A cycle with one rw dependency: read skew.
    GSingle,
    /// Two transactions that have replaced one and the same version.
    LostUpdate,
    /// A transaction that does not see its own writes, or whose written list is not the list that
    /// it read with one more value.
    Internal,
    /// A transaction that has read two versions of a key that it had not written.
    NonRepeatable,
    /// A transaction that did not see a write acknowledged before it began.
    Stale,
    /// Lists of one key of which neither is a prefix of the other, or a committed version that is
    /// not a prefix of the longest.
    Incompatible,
    /// A value that no transaction wrote, or that occurs twice in a list.
    Garbage,
}

/// A violation of snapshot isolation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Anomaly {
    /// The kind of the anomaly.
    pub kind: Kind,
    /// The indexes of the transactions that take part.
    pub transactions: Vec<usize>,
    /// A description of the anomaly.
    pub text: String,
}
