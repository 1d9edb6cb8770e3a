//! The command line: `demo`, `dev`, each role by name, client commands, and tools
//! that look at an indexer's files.

mod client;
mod command;
mod demo;
mod dev;
mod inspect;
mod rebalance;
mod role;
mod signal;
mod verify;

pub use command::{Cli, run};
pub use signal::stop_signal;
