//! The late-commit store: the changes of open transactions, which come long before their commit.
//!
//! # What it is for
//!
//! A transaction's changes reach the node in its bucket's stream, beside the frames, and no epoch covers them. Nobody but the
//! transaction may see them. The store keeps them in memory until the transaction ends, so that a scan of the transaction
//! itself shows them: its *own view* (`own_view`), an epoch's snapshot with the transaction's rows merged in. When the
//! transaction ends they are dropped; those of a commit come once more, in frames, and are applied with an epoch. So the store
//! needs no log: after a crash the stream brings the changes of open transactions anew.
//!
//! # How it works
//!
//! A transaction's changes are numbered by *places*. Its part in one index (`part`) is a small index of its own, made of the same
//! pieces: runs of entries and a back index in memory. Only a place stands where an epoch stands elsewhere. So a view at an
//! earlier place is exact, however the stream has cut the changes into messages, and a rollback to a savepoint removes
//! what is newer, as the rollback of a bucket does.
//!
//! The part knows nothing of what the documents had in the index before. Its back index remembers every document that the
//! transaction has changed, also those that it has deleted. An own view hides all rows of such a document in the epoch's
//! snapshot: what the transaction has left of it is in the transaction's own rows.
//!
//! # Invariants
//!
//! - A transaction's place moves only after its parts have all changes up to it. So a view sees all of a place or waits for it.
//! - A part's rows and states never change once they are there; a rollback makes a new part. So an open view stays what it is
//!   while the transaction goes on, goes back, or ends.
//! - A change that does not continue at the transaction's place is refused with `DropData`: the stream begins again.
//! - All parts together take no more than the limit, but for the changes of one message. A transaction that would exceed it is
//!   *given up*: its rows are dropped, its own views fail, and no other transaction notices.
//!
//! # The seed's words
//!
//! | the seed | here |
//! |---|---|
//! | LC | the store |
//! | kv-tuple of an active transaction | a row of a part |
//! | `view_seqno` | the epoch of the snapshot, and the place of the own view |
//! | aborted kv-tuples are collected | a transaction that ends, or goes back, drops its rows at once |

pub(crate) mod own_view;
mod part;
mod segments;
pub(crate) mod store;
mod transaction;

#[cfg(test)]
mod model_tests;
#[cfg(test)]
mod testing;
