//! The state that all indexes of a node share: indexes and bucket progress (`state`), checkpoints
//! of the log, memory accounting (`context`), background workers, and reports.

pub(crate) mod background;
pub(crate) mod checkpoints;
pub(crate) mod context;
pub(crate) mod durability;
pub(crate) mod name_bucket;
pub(crate) mod report;
pub(crate) mod state;
