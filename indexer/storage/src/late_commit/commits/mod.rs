//! Large commits, which the stream sends as markers instead of mutations: they wait for their
//! epoch (`committed`), their rows are written ahead of it (`prepare`), and are added to the
//! indexes before the epoch is applied (`enter`).

pub mod committed;
pub mod enter;
mod order;
pub mod prepare;

#[cfg(test)]
mod prepare_tests;
