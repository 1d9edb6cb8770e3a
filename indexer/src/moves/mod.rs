//! The moves of which this node is the target: one task each copies the slice's files from a copy of it, round
//! after round, until little is missing; then the bucket's follower *installs* it between two epochs
//! (`install.rs`), with a last round that brings what is missing up to the epoch at hand.
//!
//! Which moves there are is what the catalog says. A move that vanishes from it was undone, or has nothing
//! left to do here: what was received goes. After a restart the copy begins anew. Whoever fails is asked
//! again, or another copy is; what is in the way is told with the heartbeats, and the coordinator undoes a
//! move that gets nowhere.
//!
//! A slice that this node has lost comes in the same way, without a move in the catalog (`restore.rs`).

mod compare;
mod copy;
pub mod export;
mod incoming;
mod incoming_move;
mod install;
mod restore;

pub use incoming::Incoming;
