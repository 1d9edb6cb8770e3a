//! The interfaces between services: a trait for each role, the replicated commands, and the
//! messages of streams and scans.

pub mod api;
pub mod command;
pub mod export;
pub mod mutation;
pub mod routing;
pub mod rows;
pub mod scan;
pub mod varint;
