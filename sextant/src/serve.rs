//! The ports of a process that serves users: SQL, gRPC and HTTP.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use proto::env::{Env, Task};
use proto::rpc::api::Directory;
use proto::{Error, ErrorCode, Result};
use tokio::net::TcpListener;
use tonic::transport::server::TcpIncoming;

use crate::backend::ClusterBackend;
use crate::cluster::Cluster;
use crate::grpc;
use crate::http::{self, Counters, Observed};
use crate::pg;
use crate::wire::Peers;

/// How long a cluster may take until it can run a command.
const READY_WITHIN: Duration = Duration::from_secs(60);

/// A connection that has been quiet for so long is asked whether its other end is still there, again after
/// [`PROBE_EVERY`], and is closed after [`PROBES`] without an answer: within two minutes in all.
const QUIET_MAX: Duration = Duration::from_secs(60);
const PROBE_EVERY: Duration = Duration::from_secs(10);
const PROBES: u32 = 6;

/// Where to listen, `host:port`; port 0 is any free one.
#[derive(Clone, Debug)]
pub struct Ports {
    /// PostgreSQL's protocol.
    pub sql: String,
    /// gRPC.
    pub grpc: String,
    /// HTTP.
    pub http: String,
}

/// Ports that this process has taken.
pub struct Bound {
    sql: TcpListener,
    grpc: TcpListener,
    http: TcpListener,
}

impl Ports {
    /// Any free ports of the loopback address.
    pub fn any() -> Self {
        let any = || "127.0.0.1:0".to_owned();
        Self { sql: any(), grpc: any(), http: any() }
    }

    /// Takes the ports.
    pub async fn bind(&self) -> Result<Bound> {
        Ok(Bound {
            sql: bind(&self.sql, "--sql-port").await?,
            grpc: bind(&self.grpc, "--grpc-port").await?,
            http: bind(&self.http, "--http-port").await?,
        })
    }
}

/// Listens on an address.
pub async fn bind(address: &str, option: &str) -> Result<TcpListener> {
    TcpListener::bind(address).await.map_err(|error| {
        Error::new(ErrorCode::Io, format!("listening on {address}: {error}"))
            .with_hint(format!("choose another one with {option}; port 0 is any free one"))
    })
}

/// The connections that a listener accepts. What is small leaves at once, and one whose other end has vanished
/// without a word comes to an end.
pub fn connections(listener: TcpListener) -> TcpIncoming {
    TcpIncoming::from(listener)
        .with_nodelay(Some(true))
        .with_keepalive(Some(QUIET_MAX))
        .with_keepalive_interval(Some(PROBE_EVERY))
        .with_keepalive_retries(Some(PROBES))
}

/// The services of a process that its ports are for.
pub struct Served {
    /// Runs scans.
    pub router: Arc<router::Router>,
    /// The other services.
    pub directory: Arc<dyn Directory>,
    /// What other processes may reach here.
    pub peers: Arc<Peers>,
    /// The indexers of this process.
    pub indexers: Vec<Arc<indexer::Indexer>>,
}

/// Ports being served until this is dropped.
pub struct Serving {
    addresses: [SocketAddr; 3],
    router: Arc<router::Router>,
    /// How many indexers this process runs.
    indexers: usize,
    _tasks: Vec<Task>,
}

impl Serving {
    /// Serves the ports of a whole cluster.
    pub fn start(cluster: &Cluster, env: &Env, bound: Bound) -> Result<Self> {
        let served = Served {
            router: cluster.router(),
            directory: cluster.directory(),
            peers: cluster.peers(),
            indexers: cluster.indexers(),
        };
        Self::serve(served, env, bound)
    }

    /// Serves ports.
    pub fn serve(served: Served, env: &Env, bound: Bound) -> Result<Self> {
        let Served { router, directory, peers, indexers } = served;
        let joining = indexers.len();
        let addresses =
            [bound.sql.local_addr()?, bound.grpc.local_addr()?, bound.http.local_addr()?];
        let counters = Arc::new(Counters::default());
        let backend = Arc::new(ClusterBackend::new(
            Arc::clone(&router),
            Arc::clone(&directory),
            env.clone(),
            Arc::clone(&counters),
        ));
        let sql = pg::Server::new(Arc::clone(&backend) as _, env.clone(), pg::Config::default());
        let public = grpc::services(backend, peers);
        let indexers = indexers.iter().map(Arc::downgrade).collect();
        let observed = Observed { router: Arc::clone(&router), directory, indexers, counters };
        let http = axum::serve(bound.http, http::routes(observed));
        let tasks = vec![
            env.spawn("sql", async move { sql.serve(bound.sql).await }),
            env.spawn("grpc", async move {
                if let Err(error) = public.serve_with_incoming(connections(bound.grpc)).await {
                    tracing::error!(%error, "serving gRPC");
                }
            }),
            env.spawn("http", async move {
                if let Err(error) = http.await {
                    tracing::error!(%error, "serving HTTP");
                }
            }),
        ];
        Ok(Self { addresses, router, indexers: joining, _tasks: tasks })
    }

    /// Where SQL is served.
    pub fn sql_address(&self) -> SocketAddr {
        self.addresses[0]
    }

    /// Where gRPC is served.
    pub fn grpc_address(&self) -> SocketAddr {
        self.addresses[1]
    }

    /// Where HTTP is served.
    pub fn http_address(&self) -> SocketAddr {
        self.addresses[2]
    }

    /// Waits until a projector and all indexers of this process (at least one of any) have joined: then
    /// DDL and scans are served, and the slices of an index are spread over all of them.
    pub async fn wait_ready(&self) -> Result<()> {
        use proto::model::node::Role;
        let ready = self.router.wait_catalog(|catalog| {
            let joined = |role| catalog.nodes.values().filter(|node| node.role == role).count();
            joined(Role::Projector) > 0 && joined(Role::Indexer) >= self.indexers.max(1)
        });
        tokio::time::timeout(READY_WITHIN, ready).await.map(drop).map_err(|_| {
            Error::unavailable(
                "no coordinator answered, or no projector and indexer registered, within a minute",
            )
            .with_hint("SEXTANT_LOG=info shows what each service waits for")
        })
    }

    /// The line that says where the ports are.
    pub fn ready_line(&self) -> String {
        let [sql, grpc, http] = self.addresses;
        format!("ready sql={sql} grpc={grpc} http={http}")
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use futures::StreamExt;
    use tokio::net::TcpStream;

    use super::*;

    /// The timer of a connection as the system shows it, by the ports of its two ends.
    fn timer(local: SocketAddr, remote: SocketAddr) -> Option<String> {
        let ends = [local, remote].map(|end| format!(":{:04X}", end.port()));
        let table = std::fs::read_to_string("/proc/net/tcp").expect("a table of connections");
        let found = table
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>())
            .find(|fields| fields[1].ends_with(&ends[0]) && fields[2].ends_with(&ends[1]))?;
        found[5].split(':').next().map(str::to_owned)
    }

    #[tokio::test]
    async fn a_connection_that_is_quiet_is_asked_after() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let client = TcpStream::connect(address).await.expect("a connection");
        let mut accepting = connections(listener);
        let accepted = accepting.next().await.expect("one").expect("a connection");
        let remote = client.local_addr().expect("an address");
        assert_eq!(timer(address, remote).as_deref(), Some("02"), "keepalive");
        assert_eq!(timer(remote, address).as_deref(), Some("00"), "the client's end has none");
        assert!(accepted.nodelay().expect("an option"));
    }
}
