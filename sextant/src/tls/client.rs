//! The client's side of a TLS handshake, for nodes that call other nodes and for the commands of
//! users and operators.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use proto::env::Env;
use proto::model::ids::NodeId;
use proto::model::node::Role;
use proto::{Error, ErrorCode, Result};
use rustls::ClientConfig;
use rustls::client::Resumption;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::clock::EnvClock;
use super::identity::Identity;
use super::ports::Protocol;
use super::settings::{
    TlsSettings, certificates, end_point, node_client, private_key, roots, unusable_files_error,
};
use super::verify::{NodeVerifier, in_words, provider};

/// The time limit of a handshake.
const HANDSHAKE_WITHIN: Duration = Duration::from_secs(10);

/// The node that a caller expects to answer at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExpectedNode {
    /// The role of the node.
    pub role: Role,
    /// The number of the node.
    pub node: NodeId,
}

/// Performs a handshake within the time limit.
async fn handshake(
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
    stream: TcpStream,
) -> io::Result<TlsStream<TcpStream>> {
    let late = || io::Error::new(io::ErrorKind::TimedOut, "no answer to the TLS handshake");
    let shaken = TlsConnector::from(config).connect(name, stream);
    timeout(HANDSHAKE_WITHIN, shaken).await.map_err(|_| late())?.map_err(in_words)
}

/// Performs the handshake with a node. Returns an error with the name of the other node if
/// another one answers.
pub async fn connect(
    settings: &TlsSettings,
    expected: ExpectedNode,
    stream: TcpStream,
) -> io::Result<TlsStream<TcpStream>> {
    connect_with(Arc::clone(&settings.generation().client), expected, stream).await
}

/// Performs the handshake with a node, with a TLS configuration.
async fn connect_with(
    config: Arc<ClientConfig>,
    expected: ExpectedNode,
    stream: TcpStream,
) -> io::Result<TlsStream<TcpStream>> {
    // Host names are not checked, and an address is not sent as a host name.
    let name = ServerName::from(std::net::Ipv4Addr::UNSPECIFIED);
    let stream = handshake(config, name, stream).await?;
    let shown = stream.get_ref().1.peer_certificates().and_then(|chain| chain.first());
    let shown = shown.map(Identity::of_certificate).transpose().map_err(io::Error::other)?;
    match shown {
        Some(Identity::Node { role, node, .. }) if (ExpectedNode { role, node }) == expected => {
            Ok(stream)
        }
        other => {
            let other = other.map_or("nobody".to_owned(), |other| other.to_string());
            let ExpectedNode { role, node } = expected;
            Err(io::Error::other(format!(
                "the certificate that {} {node} shows is of {other}",
                role.name()
            )))
        }
    }
}

/// The TLS client of an operator's command. It checks the certificates of nodes as other nodes
/// do.
#[derive(Clone)]
pub struct OperatorTls(Arc<ClientConfig>);

impl OperatorTls {
    /// Returns a client that trusts the authority `ca` and has the operator's certificate and
    /// key. All are in PEM form.
    pub fn new(env: &Env, ca: &[u8], (certificate, key): (&[u8], &[u8])) -> Result<Self> {
        let chain = certificates(certificate, "the operator's certificate")?;
        let own =
            chain.first().ok_or_else(|| unusable_files_error("the file has no certificate"))?;
        let holder = Identity::of_certificate(own).map_err(unusable_files_error)?;
        let Identity::Operator { cluster } = holder else {
            return Err(unusable_files_error(format!("the certificate is of {holder}"))
                .with_hint("sextant cert operator makes a certificate of an operator"));
        };
        let judge = NodeVerifier::new(Arc::new(roots(ca)?), cluster);
        Ok(Self(node_client(env, judge, (chain, private_key(key)?))?))
    }

    /// Performs the handshake with a node.
    pub async fn connect(
        &self,
        expected: ExpectedNode,
        stream: TcpStream,
    ) -> io::Result<TlsStream<TcpStream>> {
        connect_with(Arc::clone(&self.0), expected, stream).await
    }
}

/// The TLS client of a user's command. It checks the certificate and the host name of a router.
#[derive(Clone)]
pub struct UserTls(Arc<ClientConfig>);

impl UserTls {
    /// Returns a client that trusts an authority, and has the user's certificate and key if there
    /// are any. All are in PEM form.
    pub fn new(
        env: &Env,
        ca: &[u8],
        own: Option<(&[u8], &[u8])>,
        protocol: Protocol,
    ) -> Result<Self> {
        let failed =
            |error: rustls::Error| unusable_files_error(format!("the user's certificate: {error}"));
        let builder = ClientConfig::builder_with_details(provider(), EnvClock::of(env))
            .with_safe_default_protocol_versions()
            .map_err(failed)?
            .with_root_certificates(roots(ca)?);
        let mut config = match own {
            None => builder.with_no_client_auth(),
            Some((certificate, key)) => builder
                .with_client_auth_cert(
                    certificates(certificate, "the user's certificate")?,
                    private_key(key)?,
                )
                .map_err(failed)?,
        };
        config.resumption = Resumption::disabled();
        config.alpn_protocols = protocol.alpn();
        Ok(Self(Arc::new(config)))
    }

    /// Performs the handshake with a host. Returns the connection and its channel binding data
    /// `tls-server-end-point`.
    pub async fn connect(
        &self,
        host: &str,
        stream: TcpStream,
    ) -> io::Result<(TlsStream<TcpStream>, Option<Vec<u8>>)> {
        let name = ServerName::try_from(host.to_owned()).map_err(|_| {
            let what = format!("host {host:?} is no name or address");
            io::Error::other(Error::new(ErrorCode::InvalidParameter, what))
        })?;
        let stream = handshake(Arc::clone(&self.0), name, stream).await?;
        let shown = stream.get_ref().1.peer_certificates().and_then(|chain| chain.first());
        let binding = shown.and_then(end_point);
        Ok((stream, binding))
    }
}
