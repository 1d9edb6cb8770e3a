//! The commands of the binary.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use proto::Error;
use proto::env::remember_panic_places;
use proto::model::node::Role;

use super::limits::with_default;
use super::role_flags::for_role;
use super::signal::stop_signal;
use super::{cert, client, demo, dev, init, inspect, rebalance, role, source, verify};
use crate::roles::Shutdown;

/// Secondary indexes over changing data: declared in SQL, built without stopping writes, scanned at one
/// consistent moment.
#[derive(Debug, Parser)]
#[command(name = "sextant", version, arg_required_else_help = true)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Load 135,233 cities; index, update and scan them while a coordinator is killed and slices move; check
    /// every answer
    Demo(demo::Args),
    /// Run a whole cluster in one process, with its data in one directory
    #[command(mut_args(with_default))]
    Dev(dev::Args),
    /// Run a member of the replicated coordinator
    #[command(mut_args(|argument| for_role(argument, Role::Coordinator)))]
    Coordinator(role::Args),
    /// Run a projector: it stores documents and streams their changes
    #[command(mut_args(|argument| for_role(argument, Role::Projector)))]
    Projector(role::Args),
    /// Run an indexer: it stores slices of indexes and scans them
    #[command(mut_args(|argument| for_role(argument, Role::Indexer)))]
    Indexer(role::Args),
    /// Run a router: it serves SQL, gRPC and HTTP
    #[command(mut_args(|argument| for_role(argument, Role::Router)))]
    Router(role::Args),
    /// Make the certificates of a cluster's nodes, users and operators
    Cert(cert::Args),
    /// Make the first user of a cluster, who may do everything
    Init(init::Args),
    /// Run SQL statements from -c or from standard input
    Sql(client::SqlArgs),
    /// Show the nodes, buckets, indexes, slices and moves of a running cluster
    Status(client::StatusArgs),
    /// Distribute slices evenly over the indexers, and show the progress
    Rebalance(rebalance::RebalanceArgs),
    /// Print and check a file of the data directory of an indexer or a projector
    Inspect(inspect::Args),
    /// Check all files of a stopped indexer or projector
    Verify(verify::Args),
    /// Recover from the loss of documents at a projector
    Source(source::Args),
}

/// Runs a command and prints its error; the process exits with status 0 if it succeeds.
///
/// The runtime is created in the library and not in the binary. Its futures are therefore
/// compiled with the library, on several processors at a time, and the binary only has to be
/// linked.
pub fn run(cli: Cli) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("sextant: starting the runtime: {error}");
            return ExitCode::FAILURE;
        }
    };
    match runtime.block_on(run_command(cli)) {
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

/// Runs a command until it ends.
async fn run_command(cli: Cli) -> Result<(), Error> {
    remember_panic_places();
    match cli.command {
        Command::Demo(args) => demo::run(args).await,
        Command::Dev(args) => until_stopped(|shutdown| dev::run(args, shutdown)).await,
        Command::Coordinator(args) => run_role(Role::Coordinator, args).await,
        Command::Projector(args) => run_role(Role::Projector, args).await,
        Command::Indexer(args) => run_role(Role::Indexer, args).await,
        Command::Router(args) => run_role(Role::Router, args).await,
        Command::Cert(args) => cert::run(args).await,
        Command::Init(args) => init::run(args).await,
        Command::Sql(args) => client::sql(args).await,
        Command::Status(args) => client::status(args).await,
        Command::Rebalance(args) => rebalance::run(args).await,
        Command::Inspect(args) => inspect::run(args).await,
        Command::Verify(args) => verify::run(args).await,
        Command::Source(args) => source::run(args).await,
    }
}

/// Runs a service until it fails or the process receives a stop signal. The signal handler is
/// installed first, so that a signal during the start ends the process cleanly too. After the first
/// signal the service continues until its clients are finished; a second signal ends it at once.
async fn until_stopped<F: Future<Output = Result<(), Error>>>(
    run: impl FnOnce(Shutdown) -> F,
) -> Result<(), Error> {
    let shutdown = Shutdown::default();
    let mut running = Box::pin(run(shutdown.clone()));
    tokio::select! {
        biased;
        () = stop_signal() => {}
        done = &mut running => return done,
    }
    tokio::select! {
        () = shutdown.drain() => {}
        () = stop_signal() => {}
        done = &mut running => return done,
    }
    drop(running);
    shutdown.flush_indexers().await;
    Ok(())
}

/// Runs a role until the process is stopped.
async fn run_role(role: Role, args: role::Args) -> Result<(), Error> {
    until_stopped(|shutdown| role::run(role, args, shutdown)).await
}
