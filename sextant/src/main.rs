//! The binary: reads the command line, sets up logging, and runs the command.

use std::process::ExitCode;

use clap::Parser;
use tracing_subscriber::EnvFilter;

/// Blocks are often allocated by one thread and freed by another. This allocator returns such
/// memory to the system, so that the process keeps its memory limit.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Returns the filter of log lines, as the variable `SEXTANT_LOG` sets it; without the variable,
/// only warnings and errors. The HTTP/2 library warns about each connection that violates the
/// protocol, so a client could fill the log. Therefore only errors of this library are logged,
/// unless the variable names it (`h2=…`).
fn log_filter() -> EnvFilter {
    let chosen = std::env::var("SEXTANT_LOG").unwrap_or_else(|_| "warn".to_owned());
    let filter = EnvFilter::try_new(format!("h2=error,{chosen}"));
    filter.unwrap_or_else(|_| EnvFilter::new("h2=error,warn"))
}

fn main() -> ExitCode {
    let cli = sextant::cli::Cli::parse();
    tracing_subscriber::fmt().with_env_filter(log_filter()).with_writer(std::io::stderr).init();
    sextant::descriptors::raise_limit();
    sextant::cli::run(cli)
}
