//! The ports of a process: SQL, gRPC and HTTP for users and, in `sextant dev`, a port for other
//! processes.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use proto::env::{Env, Task};
use proto::model::catalog::Catalog;
use proto::model::node::Role;
use proto::rpc::api::Directory;
use proto::{Error, Result};
use tokio::net::TcpListener;

use super::cluster::Cluster;
use crate::access::AccessProvider;
use crate::auth::login_policy::LoginPolicy;
use crate::auth::newest_users::NewestUsers;
use crate::backend::{ClusterBackend, Counters};
use crate::descriptors::Shares;
use crate::grpc;
use crate::http::{self, StatusSources};
use crate::limited::{
    ConnectionsMax, PortLimit, PortProtocol, PortTls, limited_connections, limited_tls_connections,
};
use crate::listen::{bind, check_loopback, end_reason};
use crate::pg;
use crate::process_figures::OwnProcess;
use crate::tls::Clients;
use crate::wire::{PeerTrust, Peers};

/// The time limit for a cluster to become ready.
const READY_WITHIN: Duration = Duration::from_secs(60);

/// The addresses to listen on, `host:port`; port 0 stands for a free port.
#[derive(Clone, Debug)]
pub struct Ports {
    /// The address of the SQL port.
    pub sql: String,
    /// The address of the gRPC port.
    pub grpc: String,
    /// The address of the HTTP port.
    pub http: String,
    /// The address of the gRPC port for other processes; `None` if the process has no such port.
    pub peer: Option<String>,
}

/// The command line options that set the addresses. Errors mention them.
#[derive(Clone, Copy, Debug)]
pub struct PortOptions {
    /// The option of the SQL port.
    pub sql: &'static str,
    /// The option of the gRPC port.
    pub grpc: &'static str,
    /// The option of the HTTP port.
    pub http: &'static str,
}

impl PortOptions {
    /// The options of `sextant dev`.
    pub const DEV: Self = Self { sql: "--sql-port", grpc: "--grpc-port", http: "--http-port" };
}

/// The listening sockets of the ports.
pub struct Listeners {
    sql: TcpListener,
    grpc: TcpListener,
    http: TcpListener,
    peer: Option<TcpListener>,
}

impl Ports {
    /// Returns addresses with free ports of the loopback address.
    pub fn any() -> Self {
        let any = || "127.0.0.1:0".to_owned();
        Self { sql: any(), grpc: any(), http: any(), peer: None }
    }

    /// Binds the sockets. An error contains the name of the option that changes the address.
    pub async fn bind(&self, options: &PortOptions) -> Result<Listeners> {
        Ok(Listeners {
            sql: bind(&self.sql, options.sql).await?,
            grpc: bind(&self.grpc, options.grpc).await?,
            http: bind(&self.http, options.http).await?,
            peer: match &self.peer {
                Some(address) => Some(bind(address, "--peer-listen").await?),
                None => None,
            },
        })
    }
}

impl Listeners {
    /// Returns the sockets for users, each with the option that sets its address.
    pub(super) fn of_users<'a>(
        &'a self,
        options: &PortOptions,
    ) -> [(&'a TcpListener, &'static str); 3] {
        [(&self.sql, options.sql), (&self.grpc, options.grpc), (&self.http, options.http)]
    }

    /// Returns true if only clients of this machine can call the ports for users.
    pub fn are_loopback(&self, options: &PortOptions) -> bool {
        let users = self.of_users(options);
        users.into_iter().all(|(listener, option)| check_loopback(listener, option).is_ok())
    }

    /// Closes the port for other processes.
    pub fn close_peer(&mut self) {
        self.peer = None;
    }

    /// Returns an error if other machines can call the port for other processes.
    pub fn check_peer(&self, option: &str) -> Result<()> {
        let Some(listener) = &self.peer else { return Ok(()) };
        check_loopback(listener, option).map_err(|error| {
            let what = "is not a loopback address, and the port checks nobody who calls";
            let address = listener.local_addr().map(|address| format!(" {address}"));
            let text = format!("{option}{} {what}", address.unwrap_or_default());
            Error { message: text, ..error }
                .with_hint("run the roles as processes of their own, with certificates")
        })
    }
}

/// The services that the ports call, and the settings of the ports.
pub struct ServerParts {
    /// The router, which runs scans.
    pub router: Arc<router::Router>,
    /// The directory by which the ports find the other services.
    pub directory: Arc<dyn Directory>,
    /// The newest users, which a task keeps up to date.
    pub users: Arc<NewestUsers>,
    /// The services that other processes may call.
    pub peers: Arc<Peers>,
    /// The indexers of this process.
    pub indexers: Vec<Arc<indexer::Indexer>>,
    /// The projectors of this process.
    pub projectors: Vec<Arc<projector::Projector>>,
    /// The data directory of this process; `None` without one.
    pub data: Option<PathBuf>,
    /// The limits of connections.
    pub connections: ConnectionsMax,
    /// The login policy of the ports.
    pub doors: Arc<LoginPolicy>,
}

/// The running ports. They close when this value is dropped.
pub struct Server {
    addresses: [SocketAddr; 3],
    doors: Arc<LoginPolicy>,
    peer_address: Option<SocketAddr>,
    router: Arc<router::Router>,
    /// The number of indexers in this process.
    indexers: usize,
    _tasks: Vec<Task>,
}

impl Server {
    /// Starts the ports of a cluster that runs in this process.
    pub fn start(
        cluster: &Cluster,
        doors: Arc<LoginPolicy>,
        env: &Env,
        listeners: Listeners,
    ) -> Result<Self> {
        let parts = ServerParts {
            router: cluster.router(),
            directory: cluster.directory(),
            users: cluster.users(),
            peers: cluster.peers(),
            indexers: cluster.indexers(),
            projectors: vec![cluster.projector()],
            data: Some(cluster.data_dir().to_owned()),
            connections: ConnectionsMax::default(),
            doors,
        };
        Self::serve(parts, env, listeners)
    }

    /// Starts the ports of the given services.
    pub fn serve(parts: ServerParts, env: &Env, listeners: Listeners) -> Result<Self> {
        let ServerParts {
            router,
            directory,
            users: known_users,
            peers,
            indexers,
            projectors,
            data,
            connections,
            doors,
        } = parts;
        let joining = indexers.len();
        let addresses = [
            listeners.sql.local_addr()?,
            listeners.grpc.local_addr()?,
            listeners.http.local_addr()?,
        ];
        let counters = Arc::new(Counters::default());
        let (its_router, its_counters) = (Arc::clone(&router), Arc::clone(&counters));
        let backend = ClusterBackend::new(its_router, directory, env.clone(), its_counters);
        let backend = Arc::new(backend.with_users(known_users));
        let provider: Arc<dyn AccessProvider> = Arc::new(backend.authorization(doors.flow()));
        let (its_provider, its_doors) = (Arc::clone(&provider), Arc::clone(&doors));
        let sql = pg::PgServer::new(its_provider, its_doors, env.clone(), session_limits());
        let public = grpc::services(Arc::clone(&provider), &doors, env.clone());
        let indexers = indexers.iter().map(Arc::downgrade).collect();
        let projectors = projectors.iter().map(Arc::downgrade).collect();
        let process = OwnProcess { data };
        let observed = StatusSources {
            provider,
            router: Arc::clone(&router),
            indexers,
            projectors,
            counters,
            process,
        };
        let users_of = |listener, speech, limit: PortLimit| match doors.tls() {
            None => limited_connections(listener, speech, limit.of_users(doors.flow()), env),
            Some(tls) => {
                let limit = limit.of_users(doors.flow());
                let tls = PortTls { settings: Arc::clone(tls), clients: Clients::Anyone };
                limited_tls_connections(listener, speech, limit, env, tls)
            }
        };
        let http_users = users_of(listeners.http, PortProtocol::Http, connections.of_http());
        let http = http::serve(http_users, http::routes(observed), Arc::clone(&doors), env.clone());
        let users = users_of(listeners.grpc, PortProtocol::Grpc, connections.of_grpc());
        // Connections wait in the sockets until statements can succeed.
        let gate = |router: &Arc<router::Router>| {
            let router = Arc::clone(router);
            async move { wait_registered(&router, joining).await }
        };
        let (waits_sql, waits_grpc) = (gate(&router), gate(&router));
        let mut stop = doors.flow().stop.watch();
        // A process that serves only some of its ports looks alive and is not.
        let mut tasks = vec![
            env.spawn_service("sql", async move {
                waits_sql.await;
                sql.serve(listeners.sql).await
            }),
            env.spawn_service("grpc", async move {
                tokio::select! {
                    () = waits_grpc => {}
                    () = stop.draining() => {}
                }
                let draining = async { stop.draining().await };
                let served = public.serve_with_incoming_shutdown(users, draining).await;
                if served.is_ok() {
                    // The calls of the port have ended before the process ends.
                    drop(stop);
                    std::future::pending::<()>().await;
                }
                end_reason(served)
            }),
            env.spawn_service("http", http),
        ];
        let peer_address = listeners.peer.as_ref().map(TcpListener::local_addr).transpose()?;
        if let Some(listener) = listeners.peer {
            let services = grpc::peer_services(peers, PeerTrust::Insecure);
            let processes =
                limited_connections(listener, PortProtocol::Grpc, connections.of_peers(), env);
            tasks.push(env.spawn_service("peer", async move {
                end_reason(services.serve_with_incoming(processes).await)
            }));
        }
        Ok(Self { addresses, doors, peer_address, router, indexers: joining, _tasks: tasks })
    }

    /// Returns the address of the SQL port.
    pub fn sql_address(&self) -> SocketAddr {
        self.addresses[0]
    }

    /// Returns the address of the gRPC port.
    pub fn grpc_address(&self) -> SocketAddr {
        self.addresses[1]
    }

    /// Returns the address of the HTTP port.
    pub fn http_address(&self) -> SocketAddr {
        self.addresses[2]
    }

    /// Returns the address of the port for other processes; `None` if there is none.
    pub fn peer_address(&self) -> Option<SocketAddr> {
        self.peer_address
    }

    /// Waits until a projector and all indexers of this process are registered; without indexers
    /// in this process, until some indexer of the cluster is. Before that, DDL fails, or the
    /// slices of a new index are placed on only some of the indexers.
    pub async fn wait_ready(&self) -> Result<()> {
        let ready =
            self.router.wait_catalog(|catalog| are_registered(catalog, self.indexers.max(1)));
        tokio::time::timeout(READY_WITHIN, ready).await.map(drop).map_err(|_| {
            Error::unavailable(
                "no coordinator answered, or no projector and indexer registered, within a minute",
            )
            .with_hint("start with SEXTANT_LOG=debug to see which calls fail")
        })
    }

    /// Returns the line that announces a ready process, with its addresses and the kind of
    /// authentication.
    pub fn ready_line(&self) -> String {
        let ([sql, grpc, http], auth) = (self.addresses, self.doors.ready_line_word());
        format!("ready sql={sql} grpc={grpc} http={http} auth={auth}")
    }
}

/// Returns the limits of SQL sessions, within the limit of open files.
fn session_limits() -> pg::PgConfig {
    let (shares, usual) = (Shares::of_process(), pg::PgConfig::default());
    pg::PgConfig {
        sessions_max: shares.sessions(usual.sessions_max),
        starting_max: shares.starting(usual.starting_max),
        ..usual
    }
}

/// Waits until a projector and `indexers` indexers are registered. Returns at once if `indexers`
/// is 0, because the nodes of such a cluster start and stop independently.
async fn wait_registered(router: &router::Router, indexers: usize) {
    if indexers > 0 {
        router.wait_catalog(|catalog| are_registered(catalog, indexers)).await;
    }
}

/// Returns true if a projector and at least this number of indexers are registered.
fn are_registered(catalog: &Catalog, indexers: usize) -> bool {
    let joined = |role| catalog.nodes.values().filter(|node| node.role == role).count();
    joined(Role::Projector) > 0 && joined(Role::Indexer) >= indexers
}
