//! `sextant dev`: a whole cluster in one process, with its data in one directory.

use std::path::PathBuf;

use proto::Result;
use proto::env::Env;

use super::dev_doors::{LoginArgs, RequiredLogin};
use super::limits::{LimitArgs, MIB_MAX};
use super::renamed_settings::{OldName, refuse_old_names};
use crate::roles::{
    Cluster, ClusterConfig, PortOptions, Ports, RecoveryFlags, Server, Shutdown, lock_data_dir,
};

/// `sextant dev`
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Data directory
    #[arg(long, value_name = "DIR", default_value = "data")]
    data: PathBuf,
    /// Number of indexers. Three or more start three coordinator members, fewer start one
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=99))]
    nodes: u64,
    /// The address to listen on. If it is not a loopback address, clients have to log in, and connections are encrypted
    #[arg(long, default_value = "127.0.0.1")]
    host: String,
    /// Port for SQL (PostgreSQL's protocol); 0 picks a free one
    #[arg(long, default_value_t = 7432)]
    sql_port: u16,
    /// Port for gRPC; 0 picks a free one
    #[arg(long, default_value_t = 7400)]
    grpc_port: u16,
    /// Port for HTTP; 0 picks a free one
    #[arg(long, default_value_t = 7480)]
    http_port: u16,
    /// Address for calls of other processes: Raft, streams, shard scans. It has no access control. Without it there is a free port of
    /// loopback if clients are trusted, and otherwise none
    #[arg(long, value_name = "HOST:PORT")]
    peer_listen: Option<String>,
    /// Size limit of each bucket's change log, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 1024, value_parser = clap::value_parser!(u64).range(1..=MIB_MAX))]
    change_log_mb: u64,
    /// Directory below which ALTER BUCKET … LOAD VERSION finds its files
    #[arg(long, value_name = "DIR")]
    files_dir: Option<PathBuf>,
    /// Begin a new cluster if the log of the old one is lost. Its files are moved into a directory `old-cluster-1`
    #[arg(long)]
    force_new_cluster: bool,
    /// Continue above all known epochs and numbers, because the data is restored from an older
    /// copy. It rebuilds all indexes
    #[arg(long)]
    skip_epochs: bool,
    #[command(flatten)]
    doors: LoginArgs,
    #[command(flatten)]
    limits: LimitArgs,
    #[arg(long, hide = true)]
    log_mb: Option<OldName>,
}

/// Runs the cluster until the future is dropped.
pub async fn run(args: Args, shutdown: Shutdown) -> Result<()> {
    refuse_old_names(&[(args.log_mb, "log_mb", "change_log_mb")])?;
    let env = Env::real();
    let _lock = lock_data_dir(&env, &args.data)?;
    let config = ClusterConfig {
        data_dir: args.data,
        coordinators: if args.nodes < 3 { 1 } else { 3 },
        indexers: args.nodes,
        log_bytes_max: Some(args.change_log_mb << 20),
        files_dir: args.files_dir,
        scans_max: None,
        memory_bytes: None,
        large_commit_changes: None,
        recovery: RecoveryFlags {
            force_new_cluster: args.force_new_cluster,
            skip_epochs: args.skip_epochs,
            lost_after_s: None,
        },
    };
    let ports = Ports {
        sql: format!("{}:{}", args.host, args.sql_port),
        grpc: format!("{}:{}", args.host, args.grpc_port),
        http: format!("{}:{}", args.host, args.http_port),
        peer: Some(args.peer_listen.clone().unwrap_or_else(|| "127.0.0.1:0".to_owned())),
    };
    // The ports are taken first, so that a port in use is reported before anything starts.
    let mut listeners = ports.bind(&PortOptions::DEV).await?;
    let wanted = args.doors.required_login(listeners.are_loopback(&PortOptions::DEV))?;
    if args.peer_listen.is_none() && wanted.requires_proof() {
        // The port would admit any caller without a check, although the ports for users are
        // protected.
        listeners.close_peer();
    }
    listeners.check_peer("--peer-listen")?;
    let limits = args.limits.limits(&LimitArgs::default());
    let cluster = Cluster::start(config, env.clone()).await?;
    let (doors, _tasks) = wanted.login_policy(&cluster, (&args.host, limits), &env).await?;
    shutdown.add_clients(doors.flow());
    let server = Server::start(&cluster, doors, &env, listeners)?;
    if let Some(address) = server.peer_address() {
        tracing::info!(%address, "serving other processes");
    }
    cluster.indexers().iter().for_each(|indexer| shutdown.add_indexer(indexer));
    tokio::select! {
        // A cluster that lacks a service would refuse writes for ever.
        error = cluster.stopped() => Err(error),
        served = serve(&server, &cluster, wanted, &env) => served,
    }
}

/// Waits until the cluster is ready, creates the first user if there is none, and prints the
/// addresses. Then the ports serve until the future is dropped.
async fn serve(server: &Server, cluster: &Cluster, wanted: RequiredLogin, env: &Env) -> Result<()> {
    server.wait_ready().await?;
    let admin = wanted.first_admin(cluster, env).await?;
    let admin = admin.map_or_else(String::new, |admin| format!(" admin={admin}"));
    println!("{}{admin}", server.ready_line());
    std::future::pending().await
}
