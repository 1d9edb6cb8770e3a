//! Runs one role as a separate process, from its settings to its end.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use proto::env::{Env, Task};
use proto::model::identity::NodeProof;
use proto::model::ids::NodeId;
use proto::model::node::{NodeInfo, Role};
use proto::rpc::api::Directory;
use proto::rpc::scan::HedgeAfter;
use proto::{Error, Result};
use tokio::net::TcpListener;

use super::door_settings::LoginSettings;
use super::other_cluster::wait_other_cluster;
use super::security::{Security, SecuritySettings};
use super::server::{PortOptions, Ports, Server, ServerParts};
use super::services::RecoveryFlags;
use super::shutdown::Shutdown;
use super::{cluster, joining, services};
use crate::auth::users_file::UsersFile;
use crate::descriptors::Shares;
use crate::grpc;
use crate::http::{RoleService, RoleStatusSources, role_routes};
use crate::limited::{
    ConnectionsMax, LimitedListener, PortProtocol, limited_connections, limited_tls_connections,
};
use crate::listen::{bind, end_reason};
use crate::process_figures::OwnProcess;
use crate::wire::{PeerDirectory, Peers};

/// The time after which the process logs that no coordinator has answered yet.
const ANSWER_WAIT: Duration = Duration::from_secs(1);
/// The default HTTP address of a router.
const ROUTER_HTTP: &str = "127.0.0.1:7480";
/// The time after which a router ends if another process uses its node number. For this time, the
/// coordinators must receive heartbeats of the other process. A process that has just ended
/// counts as alive for half of this time.
const TAKEN_FOR: Duration = Duration::from_secs(10);
/// The pause before the coordinators are called again.
const ANSWER_PAUSE: Duration = Duration::from_millis(200);

/// The limits of scans; `None` for the defaults.
#[derive(Debug)]
pub struct ScanSettings {
    /// The maximum number of concurrent scans.
    pub count_max: Option<usize>,
    /// The memory limit of all scans together, in bytes.
    pub memory_bytes: Option<usize>,
    /// The memory limit of one scan, in bytes.
    pub each_memory_bytes: Option<usize>,
    /// The time after which a router queries another copy in addition to a slow node, in
    /// milliseconds; 0 for never.
    pub hedge_after_ms: Option<u32>,
}

/// The complete settings of a role.
#[derive(Debug)]
pub struct RoleSettings {
    /// The node of the process.
    pub node: NodeInfo,
    /// The address to listen on: that of the port for other processes, or on a router that of the
    /// gRPC port for users.
    pub bind: String,
    /// The data directory. An empty path means a router that stores no data.
    pub data: PathBuf,
    /// The memory limit of an indexer's slices, in bytes.
    pub memory_bytes: Option<u64>,
    /// The admission limits of scans.
    pub scans: ScanSettings,
    /// The size limit of each change log of a projector, in bytes.
    pub log_bytes_max: Option<u64>,
    /// The memory limit of a projector's open transactions, in bytes.
    pub transactions_bytes_max: Option<usize>,
    /// The directory from which a projector loads the files of versions of data sets.
    pub files_dir: Option<PathBuf>,
    /// The recovery options of a coordinator, which an operator sets after a loss.
    pub recovery: RecoveryFlags,
    /// The way in which other processes are authenticated.
    pub security: SecuritySettings,
    /// The members of the coordinator.
    pub coordinators: Vec<(NodeId, String)>,
    /// The SQL address of a router.
    pub sql: String,
    /// The HTTP address; `None` for no HTTP port.
    pub http: Option<String>,
    /// The limits of connections.
    pub connections: ConnectionsMax,
    /// The login policy and audit of a router.
    pub doors: LoginSettings,
}

/// Runs a role until the future is dropped or the service fails. Adds the work that is necessary
/// before the end of the process to `shutdown`.
pub async fn run(settings: RoleSettings, env: Env, shutdown: Shutdown) -> Result<()> {
    let role = settings.node.role;
    let forced = settings.recovery.force_new_cluster;
    let security =
        Security::of(&settings.security, &settings.node, (&settings.data, forced), &env).await?;
    let (its_env, dir) = (env.clone(), settings.data.clone());
    env.blocking(move || cluster::make_private(&*its_env.fs, &dir)).await;
    let peers = Peers::new(settings.coordinators.clone(), security.connect(), &env);
    let directory: Arc<dyn Directory> = Arc::new(PeerDirectory(Arc::clone(&peers)));
    let (id, data) = (settings.node.id, settings.data.clone());
    if role == Role::Router {
        return run_router(settings, security, env, (peers, directory), &shutdown).await;
    }
    // The ports are taken first, so that a port in use is reported before anything starts.
    let listener = bind(&settings.bind, bind_option(&settings)).await?;
    security.check(&listener, bind_option(&settings))?;
    let http = match &settings.http {
        Some(address) => Some(bind(address, "--http").await?),
        None => None,
    };
    http.iter().try_for_each(|http| security.check(http, "--http"))?;
    let process = OwnProcess { data: Some(data.clone()) };
    let http_address = http.as_ref().and_then(|http| http.local_addr().ok());
    let node = settings.node.clone();
    let observed = |service| RoleStatusSources { node, process, service };
    match role {
        Role::Router => Ok(()),
        Role::Coordinator => {
            let members = joining::members_to_begin_with(
                (&settings.node, &data),
                &settings.coordinators,
                &env,
                &*directory,
            )
            .await?;
            let service =
                services::start_coordinator(id, members, data, settings.recovery, &env, directory)
                    .await?;
            // This follows the start, because the start inspects the directory.
            let _audit = settings.doors.start_placement_audit(&service, id, &settings.data, &env);
            peers.add_coordinator(id, service.clone());
            let member = Arc::downgrade(&service);
            peers.add_cluster_source(move || member.upgrade()?.cluster());
            let stopped = async {
                let removed = service.stopped().await;
                removed.unwrap_or_else(|| cluster::stopped_error(role, id, "log"))
            };
            let _http = serve_http(
                &env,
                (http, settings.connections, &security),
                observed(RoleService::Coordinator(service.clone())),
            )?;
            serve_until(&env, (&settings, &security, http_address), listener, peers, stopped).await
        }
        Role::Projector => {
            let mut config = projector::Config::new(settings.node.clone());
            config.log_bytes_max = settings.log_bytes_max.unwrap_or(config.log_bytes_max);
            if let Some(bytes) = settings.transactions_bytes_max {
                config.set_transactions_bytes(bytes);
            }
            config.files_dir.clone_from(&settings.files_dir);
            let service = services::start_projector(config, data, &env, directory.clone()).await?;
            let projector = service.projector();
            peers.add_projector(id, projector.clone());
            let observes = RoleService::Projector(projector.clone());
            peers.add_cluster_source(move || projector.cluster());
            let stopped = async {
                service.wait_until_failed().await;
                cluster::stopped_error(role, id, "documents")
            };
            let _http =
                serve_http(&env, (http, settings.connections, &security), observed(observes))?;
            wait_coordinators(&*directory, &settings).await;
            serve_until(&env, (&settings, &security, http_address), listener, peers, stopped).await
        }
        Role::Indexer => {
            let config = indexer_config(&settings);
            let service = services::run_indexer(config, &env, directory.clone()).await?;
            shutdown.add_indexer(&service);
            peers.add_indexer(id, service.clone());
            let indexer = Arc::downgrade(&service);
            peers.add_cluster_source(move || indexer.upgrade()?.cluster());
            let stopped = async {
                service.stopped().await;
                cluster::stopped_error(role, id, "log")
            };
            let _http = serve_http(
                &env,
                (http, settings.connections, &security),
                observed(RoleService::Indexer(service.clone())),
            )?;
            wait_coordinators(&*directory, &settings).await;
            serve_until(&env, (&settings, &security, http_address), listener, peers, stopped).await
        }
    }
}

/// Returns the settings of an indexer.
fn indexer_config(settings: &RoleSettings) -> indexer::Config {
    let mut config = indexer::Config::new(settings.node.clone(), settings.data.clone());
    if let Some(bytes) = settings.memory_bytes {
        config.store.memory_bytes = bytes;
    }
    config.scans_max = settings.scans.count_max.unwrap_or(config.scans_max);
    config.scan_memory_total_bytes = settings.scans.memory_bytes;
    config.scan_memory_each_bytes = settings.scans.each_memory_bytes;
    config.store.open_files_max = Shares::of_process().fragments(1);
    config
}

/// Starts the HTTP port of a role, if the role has one. The port is served until the returned
/// task is dropped.
fn serve_http(
    env: &Env,
    (listener, connections, security): (Option<TcpListener>, ConnectionsMax, &Security),
    observed: RoleStatusSources,
) -> Result<Option<Task>> {
    let Some(listener) = listener else { return Ok(None) };
    let limit = connections.of_http();
    // Users must not use this port, because it reports all buckets.
    let listener = match security.port() {
        Some(tls) => LimitedListener::with_tls(listener, limit, env, tls)?,
        None => LimitedListener::new(listener, limit, env)?,
    };
    let served = axum::serve(listener, role_routes(observed));
    Ok(Some(env.spawn_service("http", async move { end_reason(served.await) })))
}

/// Returns the name of the option that has set the address to listen on, for errors.
fn bind_option(settings: &RoleSettings) -> &'static str {
    match settings.node.role {
        _ if settings.bind != settings.node.address => "--bind",
        Role::Router => "--grpc",
        _ => "--peer-listen",
    }
}

/// Serves other processes until the service ends with an error, which the future `stopped`
/// returns.
async fn serve_until(
    env: &Env,
    (settings, security, http): (&RoleSettings, &Security, Option<SocketAddr>),
    listener: TcpListener,
    peers: Arc<Peers>,
    stopped: impl Future<Output = Error>,
) -> Result<()> {
    tokio::select! {
        served = serve_peers(env, (settings, security, http), listener, peers) => served,
        error = stopped => Err(error),
    }
}

/// Serves other processes until the future is dropped.
async fn serve_peers(
    env: &Env,
    (settings, security, http): (&RoleSettings, &Security, Option<SocketAddr>),
    listener: TcpListener,
    peers: Arc<Peers>,
) -> Result<()> {
    let address = listener.local_addr()?;
    let services = grpc::peer_services(peers, security.trust());
    let node = &settings.node;
    let limit = settings.connections.of_peers();
    let processes = match security.port() {
        Some(tls) => limited_tls_connections(listener, PortProtocol::Grpc, limit, env, tls),
        None => limited_connections(listener, PortProtocol::Grpc, limit, env),
    };
    let _task: Task = env.spawn_service("peer", async move {
        end_reason(services.serve_with_incoming(processes).await)
    });
    let http = http.map_or_else(String::new, |http| format!(" http={http}"));
    println!("ready {}={address} id={}{http}", node.role.name(), node.id);
    std::future::pending().await
}

/// Waits until a coordinator answers, and logs a line if this takes longer than [`ANSWER_WAIT`].
/// The process serves no calls before that.
async fn wait_coordinators(directory: &dyn Directory, settings: &RoleSettings) {
    wait_answer(directory, &member_list(&settings.coordinators)).await;
}

/// Calls the coordinators until one of them answers.
async fn wait_answer(directory: &dyn Directory, members: &str) {
    let mut said = false;
    loop {
        let status = tokio::time::timeout(ANSWER_WAIT, directory.coordinator().status()).await;
        match status {
            Ok(Ok(_)) => return,
            Ok(Err(error)) if !said => {
                eprintln!(
                    "waiting for coordinators {members}\nthe last one that was asked: {}",
                    error.message
                );
            }
            _ if !said => eprintln!("waiting for coordinators {members}"),
            _ => {}
        }
        said = true;
        tokio::time::sleep(ANSWER_PAUSE).await;
    }
}

/// Returns the coordinators as text.
fn member_list(members: &[(NodeId, String)]) -> String {
    let member = |(id, address): &(NodeId, String)| format!("{id}={address}");
    members.iter().map(member).collect::<Vec<_>>().join(", ")
}

/// Runs a router with its ports for users.
async fn run_router(
    settings: RoleSettings,
    security: Security,
    env: Env,
    (peers, directory): (Arc<Peers>, Arc<dyn Directory>),
    shutdown: &Shutdown,
) -> Result<()> {
    let options = PortOptions { sql: "--sql", grpc: bind_option(&settings), http: "--http" };
    let connections = settings.connections;
    // A router has no services for other processes.
    let http = settings.http.unwrap_or_else(|| ROUTER_HTTP.to_owned());
    let (sql, grpc) = (settings.sql, settings.bind.clone());
    let ports = Ports { sql, grpc, http, peer: None };
    let listeners = ports.bind(&options).await?;
    let users = listeners.of_users(&options);
    users.into_iter().try_for_each(|(listener, option)| security.check(listener, option))?;
    let members = member_list(&settings.coordinators);
    let data = (!settings.data.as_os_str().is_empty()).then_some(settings.data);
    let kept = match &data {
        Some(dir) => Some(services::open_router_data(&env, dir, &settings.node).await?),
        None => None,
    };
    let node = settings.node.id;
    let mut config = router::Config::new(settings.node);
    let random = || u128::from(env.random.next_u64());
    let drawn = || NodeProof(random() << 64 | random());
    config.mark = Some(kept.as_ref().map_or_else(drawn, router::RouterData::proof));
    let ScanSettings { count_max, memory_bytes, each_memory_bytes, hedge_after_ms } =
        settings.scans;
    config.hedge_after = match hedge_after_ms {
        None => HedgeAfter::Usual,
        Some(0) => HedgeAfter::Never,
        Some(ms) => HedgeAfter::Millis(ms),
    };
    config.scans_max = count_max.unwrap_or(config.scans_max);
    config.scan_memory_total_bytes = memory_bytes.unwrap_or(config.scan_memory_total_bytes);
    config.scan_memory_each_bytes = each_memory_bytes.unwrap_or(config.scan_memory_total_bytes / 4);
    let its_directory = Arc::clone(&directory);
    let router = Arc::new(router::Router::start_with(config, env.clone(), its_directory, kept));
    // A process of another cluster may later use an address that is in the router's catalog.
    let its_router = Arc::clone(&router);
    peers.add_cluster_source(move || its_router.catalog().cluster);
    let its_peers = Arc::clone(&peers);
    let (users, mut follower) = services::follow_users(Arc::clone(&directory), &router);
    let file = data.as_deref().map(|dir| UsersFile::new(&env, dir));
    if let Some(file) = file.clone() {
        follower = follower.with_file(file).await;
    }
    let following_users = follower.start(&env);
    let audit = settings.doors.open_audit(node, data.as_deref(), &env).await?;
    let doors = settings.doors.login_policy(&security, Arc::clone(&users), audit, &env)?;
    shutdown.add_clients(doors.flow());
    let parts = ServerParts {
        router: Arc::clone(&router),
        directory,
        users,
        peers,
        indexers: Vec::new(),
        projectors: Vec::new(),
        data,
        connections,
        doors,
    };
    let waits = Arc::clone(&parts.directory);
    let server = Server::serve(parts, &env, listeners)?;
    // With a stored catalog the router serves at once.
    if !router.knowledge().is_from_disk {
        wait_answer(&*waits, &members).await;
    }
    println!("{}", server.ready_line());
    tokio::select! {
        error = wait_other_cluster(&*waits, || its_peers.present_members()) => {
            router.forget_cluster().await;
            drop(following_users);
            if let Some(file) = file {
                file.remove().await;
            }
            Err(error)
        }
        error = router.wait_until_refused(TAKEN_FOR) => Err(error),
    }
}
