//! Building slices from a snapshot of the source, and comparing slices with one.

pub(crate) mod backfill;
pub(crate) mod compare;
pub(crate) mod corrections;
pub(crate) mod finish;
pub(crate) mod rebuild;
