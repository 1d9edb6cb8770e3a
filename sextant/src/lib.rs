//! Sextant as a library: what the binary joins, for the tests and the simulation.

pub mod backend;
pub mod cli;
pub mod cluster;
pub mod grpc;
pub mod http;
pub mod node;
pub mod pg;
pub mod serve;
pub mod sql;
pub mod wire;
