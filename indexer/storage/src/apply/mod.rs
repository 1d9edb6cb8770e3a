//! Application of epochs.
//!
//! An epoch is applied in this order: its documents are reduced to their last states and given to
//! their indexes (`documents`), each index compares its documents with its back index (`delta`),
//! and the result becomes a run and new states in the memtable (`apply_epoch`). Afterwards the
//! bucket's committed epoch moves.

pub(crate) mod apply_epoch;
pub(crate) mod delta;
pub(crate) mod documents;
