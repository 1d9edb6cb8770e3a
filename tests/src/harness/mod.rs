//! Test fixtures: a cluster in this process, `sextant dev` as a separate process, and clients.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests are clients and operators of the product: real sockets, files and processes"
)]

pub mod copies;
pub mod grpc;
mod parallel;
pub mod process;
pub mod processes;
pub mod python;
pub mod sql;
pub mod tamper;

use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use proto::env::Env;
use sextant::auth::login_policy::LoginPolicy;
use sextant::roles::{Cluster, ClusterConfig};
use sextant::roles::{PortOptions, Ports, Server};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_postgres::{Client, NoTls};

pub use parallel::on_all_processors;

/// A whole cluster in this process, with its own directory and ports.
pub struct TestCluster {
    serving: Server,
    cluster: Cluster,
    data: tempfile::TempDir,
}

impl TestCluster {
    /// Starts a cluster with these numbers of coordinators and indexers, and waits until it serves.
    pub async fn start(coordinators: u64, indexers: u64) -> Self {
        Self::start_with(coordinators, indexers, None).await
    }

    /// Starts a cluster whose router runs at most `scans_max` concurrent scans.
    pub async fn start_with(coordinators: u64, indexers: u64, scans_max: Option<usize>) -> Self {
        Self::start_where(coordinators, indexers, |config| config.scans_max = scans_max).await
    }

    /// Starts a cluster whose settings `change` adjusts.
    pub async fn start_where(
        coordinators: u64,
        indexers: u64,
        change: impl FnOnce(&mut ClusterConfig),
    ) -> Self {
        let data = tempfile::tempdir().expect("a temporary directory");
        let env = Env::real();
        let mut config = ClusterConfig {
            data_dir: data.path().to_owned(),
            coordinators,
            indexers,
            log_bytes_max: None,
            files_dir: None,
            scans_max: None,
            memory_bytes: None,
            large_commit_changes: None,
            recovery: Default::default(),
        };
        change(&mut config);
        let listeners = Ports::any().bind(&PortOptions::DEV).await.expect("free ports");
        let cluster = Cluster::start(config, env.clone()).await.expect("the cluster starts");
        let serving = Server::start(&cluster, LoginPolicy::trust(&env), &env, listeners)
            .expect("the ports are served");
        serving.wait_ready().await.expect("the cluster serves");
        Self { serving, cluster, data }
    }

    /// The cluster's services.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// The cluster's services, to be stopped and started.
    pub fn cluster_mut(&mut self) -> &mut Cluster {
        &mut self.cluster
    }

    /// Returns the directory with the data of the cluster's members.
    pub fn data(&self) -> &Path {
        self.data.path()
    }

    /// The address of the SQL port.
    pub fn sql_address(&self) -> SocketAddr {
        self.serving.sql_address()
    }

    /// The address of the gRPC port.
    pub fn grpc_address(&self) -> SocketAddr {
        self.serving.grpc_address()
    }

    /// The address of the HTTP port.
    pub fn http_address(&self) -> SocketAddr {
        self.serving.http_address()
    }

    /// Opens a SQL session.
    pub async fn sql(&self) -> Client {
        connect(self.sql_address()).await
    }

    /// Returns a value of `/metrics`. `name` is without `sextant_`; `labels` are as in the output.
    pub async fn figure(&self, name: &str, labels: &str) -> f64 {
        let answer = http_get(self.http_address(), "/metrics").await;
        let line = format!("sextant_{name}{{{labels}}} ");
        let value = answer.lines().find_map(|text| text.strip_prefix(&line));
        value.unwrap_or_else(|| panic!("{line:?} in {answer}")).parse().expect("a number")
    }
}

/// Returns the answer of an HTTP port, with its headers.
pub async fn http_get(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).await.expect("HTTP");
    let request = format!("GET {path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("an answer");
    answer
}

/// Opens a SQL session.
pub async fn connect(address: SocketAddr) -> Client {
    let parameters =
        format!("host={} port={} user=tester dbname=sextant", address.ip(), address.port());
    let (client, connection) =
        tokio_postgres::connect(&parameters, NoTls).await.expect("a SQL session");
    tokio::spawn(async move {
        // The connection ends with its client, or with the server, which the client notices too.
        let _ended = connection.await;
    });
    client
}

/// Returns a number from an environment variable, or `otherwise`, so that a failing run can be
/// repeated.
pub fn number_from_env(variable: &str, otherwise: u64) -> u64 {
    match std::env::var(variable) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{variable}={text} is no number")),
        Err(_) => otherwise,
    }
}

/// Calls `look` until it returns a value; panics after a time limit that allows for a busy machine.
pub async fn eventually<T, F: Future<Output = Option<T>>>(
    what: &str,
    mut look: impl FnMut() -> F,
) -> T {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(Instant::now() < deadline, "not within 60 seconds: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
