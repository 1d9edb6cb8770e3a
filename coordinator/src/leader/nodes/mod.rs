//! The leader's knowledge of the processes: heartbeats, silent nodes, lost slices.

pub mod bootstrap;
pub mod heartbeats;
pub mod lost;
pub mod old_copy;
