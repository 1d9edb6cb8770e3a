//! The TLS settings of a process: the present certificate, key and authority, ready for use.

use std::sync::{Arc, Mutex};

use arc_swap::ArcSwap;
use proto::env::Env;
use proto::model::identity::ClusterId;
use proto::{Error, ErrorCode, Result};
use rustls::client::Resumption;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use sha2::{Digest, Sha256, Sha384, Sha512};
use x509_parser::prelude::{FromDer, X509Certificate};

use super::clock::{EnvClock, now};
use super::files::{Pem, TlsFiles};
use super::identity::Identity;
use super::issue::Authority;
use super::ports::{Clients, Protocol};
use super::verify::{ClientVerifier, NodeVerifier, provider};

/// A certificate with its key and the authority, in the form that handshakes use. New files
/// create a new value.
pub struct CertificateSet {
    /// The holder of the certificate, which is this process.
    pub identity: Identity,
    /// The TLS configuration for calls to other nodes.
    pub client: Arc<ClientConfig>,
    /// The channel binding data `tls-server-end-point` of the certificate; `None` if its signature
    /// algorithm has no hash.
    pub end_point: Option<Vec<u8>>,
    /// The expiry of the certificate, in seconds since 1970.
    pub not_after: i64,
    /// The TLS configurations of ports: first those for users, then those for nodes. Each array
    /// has one item for each protocol.
    servers: [[Arc<ServerConfig>; 3]; 2],
}

impl CertificateSet {
    /// Returns the TLS configuration of a port.
    pub fn server(&self, clients: Clients, protocol: Protocol) -> Arc<ServerConfig> {
        Arc::clone(&self.servers[clients as usize][protocol as usize])
    }

    /// Prepares the contents of the files for use. Returns an error with the reason if they
    /// cannot be used.
    pub(super) fn from_pem(env: &Env, pem: &Pem) -> Result<Self> {
        let chain = certificates(&pem.certificate, "the certificate")?;
        let own = chain
            .first()
            .ok_or_else(|| unusable_files_error("the certificate: the file has none"))?;
        let roots = Arc::new(roots(&pem.ca)?);
        let identity = Identity::of_certificate(own).map_err(unusable_files_error)?;
        let Identity::Node { cluster, .. } = identity else {
            return Err(unusable_files_error(format!("the certificate is of {identity}"))
                .with_hint("a process needs a certificate of a node: sextant cert node"));
        };
        // A set with one new and one old file is refused here.
        let judge = NodeVerifier::new(Arc::clone(&roots), cluster);
        let time = now(&*env.clock);
        judge.verify_chain(own, &chain[1..], time).map_err(|error| {
            unusable_files_error(format!("the certificate of {identity} is refused: {error}"))
        })?;
        let (_, parsed) = X509Certificate::from_der(own).map_err(|error| {
            unusable_files_error(format!("the certificate of {identity}: {error}"))
        })?;
        let not_after = parsed.validity().not_after.timestamp();
        let key = || private_key(&pem.key);
        let servers = [Clients::Anyone, Clients::Nodes].map(|clients| {
            let config = server(env, &roots, cluster, clients, (&chain, key()?))?;
            Ok::<_, Error>(Protocol::ALL.map(|protocol| {
                let mut config = config.clone();
                config.alpn_protocols = protocol.alpn();
                Arc::new(config)
            }))
        });
        let [users, nodes] = servers;
        let end_point = end_point(own);
        let client = node_client(env, judge, (chain.clone(), key()?))?;
        Ok(Self { identity, client, end_point, not_after, servers: [users?, nodes?] })
    }
}

/// Returns the error for files that cannot be used.
pub(super) fn unusable_files_error(why: impl Into<String>) -> Error {
    Error::new(ErrorCode::InvalidParameter, why)
}

/// Parses the certificates in a file.
pub(super) fn certificates(pem: &[u8], what: &str) -> Result<Vec<CertificateDer<'static>>> {
    CertificateDer::pem_slice_iter(pem)
        .collect::<std::result::Result<_, _>>()
        .map_err(|error| unusable_files_error(format!("{what} cannot be read: {error}")))
}

/// Parses the private key in a file.
pub(super) fn private_key(pem: &[u8]) -> Result<PrivateKeyDer<'static>> {
    PrivateKeyDer::from_pem_slice(pem)
        .map_err(|error| unusable_files_error(format!("the private key cannot be read: {error}")))
}

/// Returns the certificates of the authorities in a file.
pub(super) fn roots(pem: &[u8]) -> Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(pem, "the authority's certificate")? {
        roots.add(certificate).map_err(|error| {
            unusable_files_error(format!("the authority's certificate cannot be used: {error}"))
        })?;
    }
    match roots.is_empty() {
        true => Err(unusable_files_error("the authority's certificate: the file has none")),
        false => Ok(roots),
    }
}

/// Returns the TLS configuration of a port. TLS sessions are never resumed, so each connection
/// uses the certificate that is present at that time.
fn server(
    env: &Env,
    roots: &Arc<RootCertStore>,
    cluster: ClusterId,
    clients: Clients,
    (chain, key): (&[CertificateDer<'static>], PrivateKeyDer<'static>),
) -> Result<ServerConfig> {
    let chains = WebPkiClientVerifier::builder_with_provider(Arc::clone(roots), provider()).build();
    let chains = chains.map_err(|error| unusable_files_error(format!("the authority: {error}")))?;
    let judge = ClientVerifier { chain: chains, cluster, clients };
    let failed =
        |error| unusable_files_error(format!("the certificate and the private key: {error}"));
    let mut config = ServerConfig::builder_with_details(provider(), EnvClock::of(env))
        .with_safe_default_protocol_versions()
        .map_err(failed)?
        .with_client_cert_verifier(Arc::new(judge))
        .with_single_cert(chain.to_vec(), key)
        .map_err(failed)?;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(config)
}

/// Returns the TLS configuration for calls to nodes.
pub(super) fn node_client(
    env: &Env,
    judge: NodeVerifier,
    (chain, key): (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>),
) -> Result<Arc<ClientConfig>> {
    let failed =
        |error| unusable_files_error(format!("the certificate and the private key: {error}"));
    let mut config = ClientConfig::builder_with_details(provider(), EnvClock::of(env))
        .with_safe_default_protocol_versions()
        .map_err(failed)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(judge))
        .with_client_auth_cert(chain, key)
        .map_err(failed)?;
    config.resumption = Resumption::disabled();
    config.alpn_protocols = Protocol::Grpc.alpn();
    Ok(Arc::new(config))
}

/// Returns the channel binding data `tls-server-end-point` (RFC 5929). It is a hash of the
/// certificate, by the algorithm of its signature, or by SHA-256 in place of MD5 and SHA-1.
/// Returns `None` if the algorithm of the signature has no hash.
pub(super) fn end_point(certificate: &CertificateDer<'_>) -> Option<Vec<u8>> {
    const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01];
    const ECDSA: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04];
    let (_, parsed) = X509Certificate::from_der(certificate).ok()?;
    let algorithm = parsed.signature_algorithm.algorithm.as_bytes();
    let by_rsa = algorithm.strip_prefix(RSA);
    match (by_rsa, algorithm.strip_prefix(ECDSA)) {
        (Some([4 | 5 | 11]), _) | (_, Some([1] | [3, 2])) => {
            Some(Sha256::digest(certificate).to_vec())
        }
        (Some([12]), _) | (_, Some([3, 3])) => Some(Sha384::digest(certificate).to_vec()),
        (Some([13]), _) | (_, Some([3, 4])) => Some(Sha512::digest(certificate).to_vec()),
        _ => None,
    }
}

/// The TLS settings of a process.
pub struct TlsSettings {
    pub(super) env: Env,
    /// The files; `None` if the certificate exists only in memory.
    pub(super) files: Option<TlsFiles>,
    pub(super) generation: ArcSwap<CertificateSet>,
    /// The contents of the files at the last read, or the error of this read. Unchanged contents
    /// are not checked again.
    pub(super) seen: Mutex<Option<std::result::Result<Pem, String>>>,
}

impl TlsSettings {
    /// Returns settings that are read from three files.
    pub async fn of_files(env: &Env, files: TlsFiles) -> Result<Arc<Self>> {
        let pem = files.read(env).await?;
        let generation =
            CertificateSet::from_pem(env, &pem).map_err(|error| files.with_file_names(error))?;
        Ok(Self::new(env, Some((files, pem)), generation))
    }

    /// Returns settings from three texts in PEM form: certificate, key, authority.
    pub fn of_pem(env: &Env, certificate: &str, key: &str, ca: &str) -> Result<Arc<Self>> {
        let bytes = |text: &str| text.as_bytes().to_vec();
        let pem = Pem { certificate: bytes(certificate), key: bytes(key), ca: bytes(ca) };
        Ok(Self::new(env, None, CertificateSet::from_pem(env, &pem)?))
    }

    /// Returns settings with a new certificate, which is signed by an authority in this process.
    pub fn new_signed(
        env: &Env,
        authority: &Authority,
        identity: &Identity,
        hosts: &[String],
    ) -> Result<Arc<Self>> {
        let issued = authority.issue(identity, hosts, env.clock.unix_ms())?;
        Self::of_pem(env, &issued.certificate, &issued.key, authority.certificate())
    }

    /// Returns settings with this certificate and, if they come from files, the contents of the
    /// files.
    fn new(env: &Env, files: Option<(TlsFiles, Pem)>, generation: CertificateSet) -> Arc<Self> {
        let (files, seen) = files.map(|(files, pem)| (files, Ok(pem))).unzip();
        let generation = ArcSwap::from_pointee(generation);
        Arc::new(Self { env: env.clone(), files, generation, seen: Mutex::new(seen) })
    }

    /// Returns the present certificate, key and authority.
    pub fn generation(&self) -> Arc<CertificateSet> {
        self.generation.load_full()
    }

    /// Returns the holder of the certificate, which is this process.
    pub fn identity(&self) -> Identity {
        self.generation.load().identity.clone()
    }

    /// Returns the expiry of the certificate, in seconds since 1970.
    pub fn not_after_unix_s(&self) -> i64 {
        self.generation.load().not_after
    }

    /// Returns the cluster of the certificate.
    pub fn cluster(&self) -> ClusterId {
        self.generation.load().identity.cluster()
    }
}
