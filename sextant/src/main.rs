//! The binary: reads the command line, sets up logging, and runs the command.

use std::process::ExitCode;

use clap::Parser;
use tracing_subscriber::EnvFilter;

/// Blocks are often allocated by one thread and freed by another. This allocator returns such memory to the system, so
/// that the memory limit holds for the process.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = sextant::cli::Cli::parse();
    let filter = EnvFilter::try_from_env("SEXTANT_LOG").unwrap_or_else(|_| EnvFilter::new("warn"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    sextant::descriptors::raise_limit();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("sextant: starting the runtime: {error}");
            return ExitCode::FAILURE;
        }
    };
    match runtime.block_on(sextant::cli::run(cli)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("sextant: {}", error.message);
            if let Some(hint) = error.hint {
                eprintln!("hint: {hint}");
            }
            ExitCode::FAILURE
        }
    }
}
