//! `sextant dev`: a whole cluster in one process, its data kept in a directory.

use std::path::PathBuf;

use proto::Result;
use proto::env::Env;

use super::role::MIB_MAX;
use crate::roles::{Cluster, ClusterConfig, Ports, Server, lock_data_dir};

/// `sextant dev`
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Where the data is kept
    #[arg(long, value_name = "DIR", default_value = "data")]
    data: PathBuf,
    /// How many indexers; there are as many coordinator members, up to three, and an odd number
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=99))]
    nodes: u64,
    /// The address to listen on
    #[arg(long, default_value = "127.0.0.1")]
    host: String,
    /// The port for SQL (PostgreSQL's protocol); 0 is any free one
    #[arg(long, default_value_t = 7432)]
    sql_port: u16,
    /// The port for gRPC; 0 is any free one
    #[arg(long, default_value_t = 7400)]
    grpc_port: u16,
    /// The port for HTTP; 0 is any free one
    #[arg(long, default_value_t = 7480)]
    http_port: u16,
    /// What is kept of each bucket's change log, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 1024, value_parser = clap::value_parser!(u64).range(1..=MIB_MAX))]
    log_mb: u64,
}

/// Runs until it is dropped.
pub async fn run(args: Args) -> Result<()> {
    let env = Env::real();
    let _lock = lock_data_dir(&env, &args.data)?;
    let config = ClusterConfig {
        data_dir: args.data,
        coordinators: if args.nodes < 3 { 1 } else { 3 },
        indexers: args.nodes,
        log_bytes_max: Some(args.log_mb << 20),
        scans_max: None,
    };
    let ports = Ports {
        sql: format!("{}:{}", args.host, args.sql_port),
        grpc: format!("{}:{}", args.host, args.grpc_port),
        http: format!("{}:{}", args.host, args.http_port),
    };
    // A port in use is said before anything is started.
    let listeners = ports.bind().await?;
    let cluster = Cluster::start(config, env.clone()).await?;
    let server = Server::start(&cluster, &env, listeners)?;
    server.wait_ready().await?;
    println!("{}", server.ready_line());
    std::future::pending().await
}
