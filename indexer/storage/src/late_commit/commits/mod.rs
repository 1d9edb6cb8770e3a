//! Commits that are sent as markers: they wait for their epoch, are written ahead of it, and enter
//! the indexes before it.

pub mod committed;
pub mod enter;
mod order;
pub mod prepare;

#[cfg(test)]
mod prepare_tests;
