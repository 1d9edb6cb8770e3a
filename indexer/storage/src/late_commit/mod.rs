//! The late-commit store: the changes of open transactions, which arrive long before their commit.
//!
//! # Purpose
//!
//! A transaction's changes reach the node in its bucket's stream, outside of the frames that carry
//! mutations, and no epoch covers them. Only the transaction itself may see them. The store keeps
//! them until the transaction ends, so that a scan of the transaction itself shows them: its *own
//! view* (`own_view`), an epoch's snapshot with the transaction's rows merged in. When the
//! transaction ends, its changes are dropped. The changes of a small commit are sent again, in
//! frames, and are applied with an epoch. A large commit is sent as a marker: the store keeps its
//! rows (`committed`) until they enter the indexes as of its epoch (`enter`). These rows are
//! written ahead of the epoch, as soon as the commit begins (`prepare`). The store needs no log:
//! after a crash the stream sends the changes of open transactions again, and commits as
//! mutations.
//!
//! # Structure
//!
//! A transaction's changes are numbered; the number of a change is its *place*. The changes in one
//! index are called a *part* (`part`). A part is a small separate index, made of the same
//! components: runs of entries, a back index in memory, and fragments of both. A part uses a place
//! wherever an index uses an epoch. So a view at an earlier place is exact, however the stream has
//! divided the changes into messages, and a rollback to a savepoint removes what is newer, as the
//! rollback of a bucket does.
//!
//! The part does not know the entries that the documents had in the index before. Its back index
//! remembers every document that the transaction has changed, also those that it has deleted. An
//! own view hides all rows of such a document in the epoch's snapshot: its remaining entries are
//! among the transaction's own rows.
//!
//! # Spilling
//!
//! Above half of the memory limit, the largest parts are written to disk (`spiller`). The changes
//! that one spill writes of a part are a *spilled piece* (`piece`): two ordinary fragments, of
//! rows and of states, with all versions. No manifest names the files, and they need not survive a
//! crash: they are not synced, and the next start deletes them. The last part or view that has a
//! piece deletes its files. A rollback to a savepoint restricts pieces to the places before it and
//! writes nothing on disk; a piece with only later places is dropped.
//!
//! A transaction is *given up* if it uses the largest share of a resource that is short (disk, or
//! memory that no spill can free), or if its files cannot be written or read: its rows are dropped
//! and its own views fail. Its commit is then sent as mutations.
//!
//! # Invariants
//!
//! - A transaction's place moves only after its parts have all changes up to it. So a view sees
//!   all changes up to its place, or waits for them.
//! - A part's rows and states never change, they only move from memory to disk; a rollback creates
//!   a new part. So an open view does not change while the transaction continues, spills, rolls
//!   back, or ends.
//! - A state leaves memory only after the piece that has it is in the part. So each state is found
//!   in memory or in a piece.
//! - No lock that a view or the stream takes is held while a file is read or written.
//! - A change that does not continue at the transaction's place is refused with `DropData`: the
//!   stream is restarted.
//! - All parts together take no more memory than the limit, except for the changes of one message
//!   of each stream. They take no more disk space than its limit, except for one piece, for files
//!   that only open views still read, and for rows that are written ahead of commits. A
//!   transaction that is given up has no effect on others.
//!
//! # The seed's words
//!
//! | the seed | here |
//! |---|---|
//! | LC | the store |
//! | kv-tuple of an active transaction | a row of a part |
//! | `view_seqno` | the epoch of the snapshot, and the place of the own view |
//! | ingest of committed kv-tuples into cN | `prepare` and `enter`: the rows of a commit go into fragments |
//! | `txn_seqno_frozen`: the ingest that has all kv-tuples of a transaction | the epoch of the marker |
//! | `kv.ingested` | the index's manifest says that it has the epoch |
//! | aborted kv-tuples are collected | a transaction that ends, or rolls back, drops its rows and files at once |

mod changes;
mod commit_rows;
pub(crate) mod commits;
pub(crate) mod store;
mod transactions;

#[cfg(test)]
mod tests;
