//! Sextant as a library: what the binary joins, for the tests and the simulation.

pub mod wire;
