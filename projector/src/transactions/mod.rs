//! The open transactions of a bucket. Only the transaction itself can read its changes before the
//! commit.
//!
//! The projector that leads an embedded bucket, or owns vbuckets of a pushed one, keeps them in
//! memory. They are lost when the bucket object is dropped
//! ([`crate::source::view::bucket::Bucket`]): after a restart, a change of the leader, or a drop
//! of the bucket, the next call of their sessions fails (`Conflict`).
//!
//! - A [`Transaction`](transaction::Transaction) has a *place*: the number of changes and
//!   rollbacks that it has made so far. Each change has the next place as its seqno. A rollback
//!   to a savepoint removes the changes after the savepoint, and takes a place too, so that later
//!   changes get larger places. So a place never identifies two changes, and the place that a
//!   caller names shows whether the caller has received the results of all earlier calls.
//! - [`Transactions`](open::Transactions) has the open transactions of one bucket, and enforces
//!   the limits: bytes of a transaction, bytes of all transactions of the projector, their number
//!   ([`limits`]).
//! - A [`TransactionReader`](reader::TransactionReader) has the position of a stream in each
//!   transaction, and finds the unsent changes.
//! - A commit collects the last change of each document in a
//!   [`CommitInProgress`](committing::Committing).
//! - In a pushed bucket the producer numbers a transaction itself, and decides about its commit
//!   ([`producer_transactions`]).
//!
//! A transaction without calls for [`proto::rpc::api::TRANSACTION_KEPT_MS`], or for
//! [`proto::rpc::api::PRODUCER_KEPT_MS`] in a pushed bucket, is rolled back.

pub mod committing;
pub mod counts;
pub mod document_lookups;
pub mod limits;
pub mod open;
pub mod producer;
pub mod producer_transactions;
pub mod reader;
pub mod room;
pub mod snapshot;
pub mod state;
pub mod transaction;

#[cfg(test)]
mod tests;
