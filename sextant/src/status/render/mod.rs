//! The outputs of the status for users, except JSON, which is the serialized value.

pub(crate) mod exposition;
pub(crate) mod grpc;
mod labels;
pub(crate) mod metrics;
pub(crate) mod show;
mod transactions;
