//! The command line: `demo`, `dev`, one command for each role, client commands, and tools for the files of indexers and projectors.

mod cert;
mod client;
mod command;
mod demo;
mod dev;
mod dev_doors;
#[cfg(any(test, feature = "testing"))]
pub mod fuzz;
mod init;
mod inspect;
mod limits;
mod rebalance;
mod renamed_settings;
mod role;
mod role_flags;
mod secrets;
mod security;
mod settings_file;
mod signal;
mod source;
mod sql_client;
mod verify;

pub use command::{Cli, run};
pub use signal::stop_signal;
