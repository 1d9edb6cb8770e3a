//! The state that all indexes of a node share.

pub(crate) mod background;
pub(crate) mod context;
pub(crate) mod durability;
pub(crate) mod log_order;
pub(crate) mod report;
pub(crate) mod state;
