//! The authentication of other processes. Certificates authenticate them; without certificates,
//! all processes must run on one machine.
//!
//! `dev`, the simulation and `--insecure` check no certificates.

use std::path::Path;
use std::sync::Arc;

use proto::env::{DirectoryIdentity, Env, Task};
use proto::model::identity::ClusterId;
use proto::model::node::NodeInfo;
use proto::{Error, ErrorCode, Result};
use tokio::net::TcpListener;

use crate::limited::PortTls;
use crate::listen::check_loopback;
use crate::tls::{Clients, Identity, TlsFiles, TlsSettings};
use crate::wire::{Connect, PeerTrust, loopback_connect, tls_connect};

/// The settings of a role that determine how it authenticates other processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecuritySettings {
    /// Other processes are authenticated by certificates. The files contain the certificate of
    /// this process.
    Certificates(TlsFiles),
    /// `--insecure`: other processes are not authenticated. Only processes of this machine can
    /// call the process.
    Insecure,
}

/// The authentication of other processes in a running process.
pub(super) enum Security {
    /// Other processes are authenticated by certificates. Contains the certificate of this
    /// process, and the task that reads changed files.
    Certificates(
        Arc<TlsSettings>,
        #[expect(dead_code, reason = "it runs until it is dropped")] Task,
    ),
    /// Other processes are not authenticated.
    Insecure,
}

/// Returns the error for settings or a certificate that cannot be used.
fn security_error(what: String) -> Error {
    Error::new(ErrorCode::InvalidParameter, what)
}

impl Security {
    /// Reads the certificate of a node. Checks that it belongs to the node, and to the cluster of
    /// the node's data directory.
    pub async fn of(
        settings: &SecuritySettings,
        node: &NodeInfo,
        (data, forced): (&Path, bool),
        env: &Env,
    ) -> Result<Self> {
        let SecuritySettings::Certificates(files) = settings else { return Ok(Self::Insecure) };
        let tls = TlsSettings::of_files(env, files.clone()).await?;
        let own = tls.identity();
        let cluster = own.cluster();
        let named = Identity::Node { cluster, role: node.role, node: node.id };
        if own != named {
            let path = files.certificate.display();
            let (role, id) = (node.role.name(), node.id);
            return Err(security_error(format!("{path} is of {own}, this process is {role} {id}"))
                .with_hint(format!(
                    "sextant cert node --role {role} --id {id} makes its certificate"
                )));
        }
        if !data.as_os_str().is_empty() {
            check_directory(env, data, cluster, forced).await?;
        }
        let follows = tls.follow(env);
        Ok(Self::Certificates(tls, follows))
    }

    /// Returns the certificates of this process, if it has any.
    pub fn tls(&self) -> Option<&Arc<TlsSettings>> {
        match self {
            Self::Certificates(tls, _) => Some(tls),
            Self::Insecure => None,
        }
    }

    /// Returns the function that opens connections to other nodes, with or without TLS.
    pub fn connect(&self) -> Connect {
        match self {
            Self::Certificates(tls, _) => tls_connect(Arc::clone(tls)),
            Self::Insecure => loopback_connect(),
        }
    }

    /// Returns the reason why callers of the port for other processes are trusted.
    pub fn trust(&self) -> PeerTrust {
        match self {
            Self::Certificates(..) => PeerTrust::Certificates,
            Self::Insecure => PeerTrust::Insecure,
        }
    }

    /// Returns the TLS settings of a port for nodes and operators; `None` if there are no
    /// certificates.
    pub fn port(&self) -> Option<PortTls> {
        match self {
            Self::Certificates(tls, _) => {
                Some(PortTls { settings: Arc::clone(tls), clients: Clients::Nodes })
            }
            Self::Insecure => None,
        }
    }

    /// Returns an error if other processes are not authenticated and a listener has an address
    /// that is not loopback.
    pub fn check(&self, listener: &TcpListener, option: &str) -> Result<()> {
        match self {
            Self::Certificates(..) => Ok(()),
            Self::Insecure => check_loopback(listener, option),
        }
    }
}

/// Checks that a data directory belongs to the cluster of the certificate. A new cluster that
/// replaces a lost one must have another id, so that it refuses the data of the lost cluster.
async fn check_directory(env: &Env, data: &Path, cluster: ClusterId, forced: bool) -> Result<()> {
    let (its_env, dir) = (env.clone(), data.to_owned());
    let found = env.blocking(move || DirectoryIdentity::read(&*its_env.fs, &dir)).await?;
    let Some(joined) = found.and_then(|identity| identity.cluster) else { return Ok(()) };
    let path = DirectoryIdentity::path(data);
    let path = path.display();
    match (joined == cluster, forced) {
        (true, false) | (false, true) => Ok(()),
        (false, false) => Err(security_error(format!(
            "{path} names cluster {joined}, the certificate of this process cluster {cluster}"
        ))
        .with_hint(format!(
            "sextant cert init --cluster {joined} makes an authority for the cluster of the directory"
        ))),
        (true, true) => Err(security_error(format!(
            "--force-new-cluster begins another cluster than {joined}, of which the certificate is"
        ))
        .with_hint("make an authority and certificates for the new cluster: sextant cert init")),
    }
}

#[cfg(test)]
mod tests {
    use proto::model::ids::NodeId;
    use proto::model::node::Role;

    use super::*;
    use crate::tls::{Authority, write_private};

    const CLUSTER: ClusterId = ClusterId(7);

    fn node(role: Role, id: u64) -> NodeInfo {
        NodeInfo { id: NodeId(id), role, address: "h:1".to_owned(), zone: String::new() }
    }

    async fn started(node: &NodeInfo, data: &Path, forced: bool) -> Result<()> {
        let env = Env::real();
        let dir = tempfile::tempdir().unwrap();
        let authority = Authority::new(CLUSTER, env.clock.unix_ms()).unwrap();
        let own = Identity::Node { cluster: CLUSTER, role: Role::Indexer, node: NodeId(201) };
        let issued = authority.issue(&own, &[], env.clock.unix_ms()).unwrap();
        let [certificate, key, ca] = ["n.pem", "n.key", "ca.pem"].map(|name| dir.path().join(name));
        write_private(&*env.fs, &certificate, &issued.certificate).unwrap();
        write_private(&*env.fs, &key, &issued.key).unwrap();
        write_private(&*env.fs, &ca, authority.certificate()).unwrap();
        let settings = SecuritySettings::Certificates(TlsFiles { certificate, key, ca });
        Security::of(&settings, node, (data, forced), &env).await.map(drop)
    }

    #[tokio::test]
    async fn a_certificate_belongs_to_its_node_and_to_the_cluster_of_its_directory() {
        let env = Env::real();
        let data = tempfile::tempdir().unwrap();
        let own = node(Role::Indexer, 201);
        started(&own, data.path(), false).await.expect("a new directory");
        for other in [node(Role::Indexer, 202), node(Role::Projector, 201)] {
            let error = started(&other, data.path(), false).await.unwrap_err();
            let text = &error.message;
            assert!(text.contains("indexer 201"), "{error}");
            assert!(text.contains(&format!("{} {}", other.role.name(), other.id)), "{error}");
        }
        for (cluster, right, forced_right) in [(CLUSTER, true, false), (ClusterId(8), false, true)]
        {
            let who = (Role::Indexer, NodeId(201));
            let opened = DirectoryIdentity::open(&*env.fs, data.path(), who, &*env.random, false);
            let mut identity = opened.unwrap();
            identity.cluster = Some(cluster);
            identity.write(&*env.fs, data.path()).unwrap();
            assert_eq!(started(&own, data.path(), false).await.is_ok(), right, "{cluster}");
            assert_eq!(started(&own, data.path(), true).await.is_ok(), forced_right, "{cluster}");
        }
    }

    #[tokio::test]
    async fn an_insecure_port_needs_loopback() {
        let insecure = Security::Insecure;
        let local = TcpListener::bind("[::1]:0").await;
        let local = match local {
            Ok(local) => local,
            Err(_) => TcpListener::bind("127.0.0.1:0").await.unwrap(),
        };
        insecure.check(&local, "--peer-listen").unwrap();
        let everywhere = TcpListener::bind("0.0.0.0:0").await.unwrap();
        let error = insecure.check(&everywhere, "--peer-listen").unwrap_err();
        assert!(error.message.contains("--peer-listen 0.0.0.0:"), "{error}");
    }
}
