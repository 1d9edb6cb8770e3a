//! Application of epochs.
//!
//! An epoch is applied in this order: `documents` finds the last change of each document and
//! groups the documents by index, `delta` compares the documents of each index with its back
//! index, and `apply_epoch` adds the result to the index: a sorted table in memory (a *run*) and
//! new memtable records. Afterwards the bucket's committed epoch moves.

pub(crate) mod apply_epoch;
pub(crate) mod delta;
pub(crate) mod documents;
