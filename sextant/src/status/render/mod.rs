//! The forms in which users get the status; JSON is the value itself.

pub(crate) mod exposition;
pub(crate) mod grpc;
mod labels;
pub(crate) mod metrics;
pub(crate) mod show;
mod transactions;
