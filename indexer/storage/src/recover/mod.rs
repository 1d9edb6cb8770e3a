//! Recovery: opening what a node has on disk.

pub(crate) mod load;
pub(crate) mod open;
