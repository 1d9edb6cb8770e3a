//! The command line: `demo`, `dev`, one command for each role, client commands, and tools for an indexer's files.

mod client;
mod command;
mod demo;
mod dev;
mod inspect;
mod rebalance;
mod renamed;
mod role;
mod role_flags;
mod signal;
mod verify;

pub use command::{Cli, run};
pub use signal::stop_signal;
