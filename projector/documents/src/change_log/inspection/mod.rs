//! A log as it lies on disk: what is there, what is damaged, and whether it has what its checkpoint needs.

pub mod describe;
mod expected;
pub mod survey;
