//! The forms in which users get the status; JSON is the value itself.

pub(crate) mod grpc;
pub(crate) mod metrics;
pub(crate) mod show;
