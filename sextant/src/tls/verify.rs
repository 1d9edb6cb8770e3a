//! The verifiers of certificates. The library verifies the chain of a certificate up to the
//! authority, and this module verifies the holder.

use std::fmt;
use std::io;
use std::sync::Arc;

use proto::model::identity::ClusterId;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, OtherError, RootCertStore,
    SignatureScheme,
};

use super::identity::Identity;
use super::ports::Clients;

/// The reason why the holder of a certificate is refused, as an error of the TLS library.
#[derive(Debug)]
struct RefusalReason(String);

impl fmt::Display for RefusalReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for RefusalReason {}

/// Returns the TLS library's error for a certificate whose holder is refused.
pub fn refused(why: String) -> rustls::Error {
    CertificateError::Other(OtherError(Arc::new(RefusalReason(why)))).into()
}

/// Converts the error of a handshake to one with a readable text, in place of the library's names
/// of variants.
pub fn in_words(error: io::Error) -> io::Error {
    let found = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    let words = match found {
        Some(rustls::Error::InvalidCertificate(certificate)) => refusal_in_words(certificate),
        Some(rustls::Error::NoCertificatesPresented) => {
            "the other side has shown no certificate".to_owned()
        }
        Some(rustls::Error::AlertReceived(alert)) => {
            format!("the other side has refused this process, its log says why ({alert:?})")
        }
        _ => return error,
    };
    io::Error::new(error.kind(), words)
}

/// Returns a readable text for the reason why a certificate is refused.
fn refusal_in_words(error: &CertificateError) -> String {
    let why = match error {
        CertificateError::Other(OtherError(why)) => return why.to_string(),
        // Authorities of one cluster have one name, so that a foreign one is detected by its signature.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "it is not signed by the authority of this cluster".to_owned()
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "it has expired".to_owned()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "it is not valid yet; compare the clocks of both machines".to_owned()
        }
        other => other.to_string(),
    };
    format!("the certificate that the other side shows is refused: {why}")
}

/// Returns the provider of cryptography. It is not set as the default of the process, because
/// another library could change that default.
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// The verifier of clients' certificates. It verifies the chain, the cluster, and the kind of the
/// holder.
pub struct ClientVerifier {
    /// The library's verifier of certificate chains.
    pub chain: Arc<dyn ClientCertVerifier>,
    /// The cluster of this process.
    pub cluster: ClusterId,
    /// The kinds of clients that the port accepts.
    pub clients: Clients,
}

impl ClientVerifier {
    /// Returns the reason if the holder of a certificate may not use the port.
    fn check_holder(&self, certificate: &CertificateDer<'_>) -> Result<(), String> {
        let holder = Identity::of_certificate(certificate)?;
        if holder.cluster() != self.cluster {
            return Err(format!("{holder} calls a process of cluster {}", self.cluster));
        }
        match (self.clients, &holder) {
            (Clients::Anyone, Identity::User { .. }) => Ok(()),
            (Clients::Nodes, Identity::Node { .. } | Identity::Operator { .. }) => Ok(()),
            (Clients::Anyone, _) => Err(format!("{holder} calls a port for users")),
            (Clients::Nodes, _) => Err(format!("{holder} calls a port for nodes")),
        }
    }
}

impl fmt::Debug for ClientVerifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ClientJudge({:?})", self.clients)
    }
}

impl ClientCertVerifier for ClientVerifier {
    fn client_auth_mandatory(&self) -> bool {
        self.clients == Clients::Nodes
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.chain.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        let verified = self.chain.verify_client_cert(end_entity, intermediates, now)?;
        self.check_holder(end_entity).map_err(refused)?;
        Ok(verified)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.chain.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.chain.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.chain.supported_verify_schemes()
    }
}

/// The verifier of the certificates of nodes that this process calls. It verifies the chain and
/// the cluster. The caller compares the number and the role of the node. Host names are not
/// verified, since nodes may be called at any address.
#[derive(Debug)]
pub struct NodeVerifier {
    roots: Arc<RootCertStore>,
    algorithms: WebPkiSupportedAlgorithms,
    cluster: ClusterId,
}

impl NodeVerifier {
    /// Returns the verifier for a cluster's nodes.
    pub fn new(roots: Arc<RootCertStore>, cluster: ClusterId) -> Self {
        let algorithms = provider().signature_verification_algorithms;
        Self { roots, algorithms, cluster }
    }

    /// Verifies the chain of a server's certificate.
    pub fn verify_chain(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<(), rustls::Error> {
        let parsed = ParsedCertificate::try_from(end_entity)?;
        let algorithms = self.algorithms.all;
        verify_server_cert_signed_by_trust_anchor(
            &parsed,
            &self.roots,
            intermediates,
            now,
            algorithms,
        )
    }
}

impl ServerCertVerifier for NodeVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        self.verify_chain(end_entity, intermediates, now)?;
        match Identity::of_certificate(end_entity).map_err(refused)? {
            Identity::Node { cluster, .. } if cluster == self.cluster => {
                Ok(ServerCertVerified::assertion())
            }
            holder => Err(refused(format!(
                "{holder} answers where a node of cluster {} should",
                self.cluster
            ))),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
