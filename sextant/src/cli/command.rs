//! The commands, and what runs each of them.

use clap::{Parser, Subcommand};
use proto::Error;
use proto::model::node::Role;

use super::signal::stop_signal;
use super::{client, demo, dev, inspect, rebalance, role, verify};

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
    /// Load 135,233 cities, index, update and scan them while a coordinator dies and slices move, and check
    /// every answer
    Demo(demo::Args),
    /// Run a whole cluster in one process, its data kept in a directory
    Dev(dev::Args),
    /// Run a member of the replicated coordinator
    Coordinator(role::Args),
    /// Run a projector: it keeps the documents and streams their changes
    Projector(role::Args),
    /// Run an indexer: it keeps slices of indexes
    Indexer(role::Args),
    /// Run a router: it serves SQL, gRPC and HTTP
    Router(role::Args),
    /// Run SQL statements, given with -c or read from standard input
    Sql(client::SqlArgs),
    /// Show the nodes, buckets, indexes, slices and moves of a running cluster
    Status(client::StatusArgs),
    /// Spread slices over the indexers that there are, and show how far it is
    Rebalance(rebalance::RebalanceArgs),
    /// Print what is in a file of an indexer's data directory, and check it
    Inspect(inspect::Args),
    /// Check all files of an indexer that is not running
    Verify(verify::Args),
}

/// Runs a command; the exit status is 0 when it did what was asked.
pub async fn run(cli: Cli) -> Result<(), Error> {
    match cli.command {
        Command::Demo(args) => demo::run(args).await,
        Command::Dev(args) => until_stopped(dev::run(args)).await,
        Command::Coordinator(args) => until_stopped(role::run(Role::Coordinator, args)).await,
        Command::Projector(args) => until_stopped(role::run(Role::Projector, args)).await,
        Command::Indexer(args) => until_stopped(role::run(Role::Indexer, args)).await,
        Command::Router(args) => until_stopped(role::run(Role::Router, args)).await,
        Command::Sql(args) => client::sql(args).await,
        Command::Status(args) => client::status(args).await,
        Command::Rebalance(args) => rebalance::run(args).await,
        Command::Inspect(args) => inspect::run(args).await,
        Command::Verify(args) => verify::run(args).await,
    }
}

/// Runs a service until it fails or the process is told to stop, which is listened for before the service
/// begins: being told to stop is a clean end at any time.
async fn until_stopped(service: impl Future<Output = Result<(), Error>>) -> Result<(), Error> {
    tokio::select! {
        biased;
        () = stop_signal() => Ok(()),
        done = service => done,
    }
}
