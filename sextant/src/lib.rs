//! Sextant as a library: what the binary joins, for the tests and the simulation.

pub mod pg;
pub mod sql;
pub mod wire;
