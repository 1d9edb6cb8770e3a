//! Applying epochs.

pub(crate) mod apply_epoch;
pub(crate) mod delta;
pub(crate) mod documents;
