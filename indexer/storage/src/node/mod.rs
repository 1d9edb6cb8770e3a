//! The state that all indexes of a node share.

pub(crate) mod background;
pub(crate) mod checkpoints;
pub(crate) mod context;
pub(crate) mod durability;
pub(crate) mod name_bucket;
pub(crate) mod report;
pub(crate) mod state;
