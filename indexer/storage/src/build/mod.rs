//! Builds of slices from a snapshot of the source, and comparisons of slices with such a snapshot.

pub(crate) mod backfill;
pub(crate) mod compare;
pub(crate) mod corrections;
pub(crate) mod finish;
pub(crate) mod rebuild;
