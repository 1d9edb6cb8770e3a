//! Moves of slices, on the source and on the target.
//!
//! On the target, a task for each move copies the slice's parts of files from an existing copy,
//! round after round, until few changes are missing ([`copy`]). A round is a pipeline of bounded
//! stages: the source reads pieces ahead while others are sent, and the target writes the received
//! pieces while more arrive. Then the bucket's follower *installs* the slice between two epochs
//! ([`install`]), with a last round that copies the changes up to the applied epoch.
//!
//! The catalog lists the moves. If it no longer lists a move, the move was undone or is complete,
//! and the received files are dropped. After a restart of the node the copy restarts. After a
//! failure the slice is requested from the same copy or another one; heartbeats report the reason,
//! and the coordinator undoes a move that makes no progress.
//!
//! A slice that this node has lost is fetched in the same way, without a move in the catalog
//! ([`restore`]). The source's side is in [`export`].

mod compare;
mod copy;
pub mod export;
mod incoming;
mod incoming_move;
mod install;
mod restore;

pub use incoming::IncomingMoves;
