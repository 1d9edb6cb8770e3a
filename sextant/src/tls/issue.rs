//! The certificate authority of a cluster, and the certificates that it signs. The signatures are
//! ECDSA with P-256 and SHA-256. Ed25519 is not used, because PostgreSQL's clients compute the
//! channel binding with the hash algorithm of the signature, and Ed25519 has no such algorithm.

use std::net::IpAddr;
use std::time::Duration;

use proto::model::identity::ClusterId;
use proto::{Error, ErrorCode, Result};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, PublicKeyData, SanType, date_time_ymd,
};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use webpki::EndEntityCert;

use super::identity::Identity;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// The time for which a certificate is valid.
const VALID: Duration = Duration::from_secs(365 * DAY.as_secs());
/// The time for which the authority's certificate is valid.
const AUTHORITY_VALID: Duration = Duration::from_secs(10 * 365 * DAY.as_secs());
/// The time by which a certificate is valid before it is signed, because the clocks of machines
/// differ.
const BEFORE: Duration = Duration::from_secs(60 * 60);

/// A certificate and its private key, as PEM.
pub struct IssuedCertificate {
    /// The certificate, as PEM.
    pub certificate: String,
    /// The private key.
    pub key: String,
}

/// The certificate authority of a cluster.
pub struct Authority {
    cluster: ClusterId,
    key: KeyPair,
    certificate: String,
}

/// Returns a function that adds what was being done to an error of the library.
fn issue_error(doing: &'static str) -> impl Fn(rcgen::Error) -> Error {
    move |error| Error::internal(format!("{doing}: {error}"))
}

impl Authority {
    /// Creates an authority. `now_ms` is the present time in milliseconds since 1970.
    pub fn new(cluster: ClusterId, now_ms: u64) -> Result<Self> {
        let key = KeyPair::generate().map_err(issue_error("drawing the authority's key"))?;
        let params = authority(cluster, now_ms);
        let signed = params.self_signed(&key).map_err(issue_error("signing the authority"))?;
        Ok(Self { cluster, key, certificate: signed.pem() })
    }

    /// Returns the authority with this certificate and key, both in PEM form. Returns an error if
    /// they do not belong together.
    pub fn from_pem(cluster: ClusterId, certificate: &str, key: &str) -> Result<Self> {
        let wrong = |what: String| Error::new(ErrorCode::InvalidParameter, what);
        let key = KeyPair::from_pem(key)
            .map_err(|error| wrong(format!("the authority's key cannot be read: {error}")))?;
        let der = CertificateDer::from_pem_slice(certificate.as_bytes()).map_err(|error| {
            wrong(format!("the authority's certificate cannot be read: {error}"))
        })?;
        let parsed = EndEntityCert::try_from(&der).map_err(|error| {
            wrong(format!("the authority's certificate cannot be read: {error}"))
        })?;
        if *parsed.subject_public_key_info() != key.subject_public_key_info() {
            return Err(wrong("the authority's key does not belong to its certificate".to_owned()));
        }
        Ok(Self { cluster, key, certificate: certificate.to_owned() })
    }

    /// Returns the cluster of the authority.
    pub fn cluster(&self) -> ClusterId {
        self.cluster
    }

    /// Returns the certificate of the authority in PEM form.
    pub fn certificate(&self) -> &str {
        &self.certificate
    }

    /// Returns the private key of the authority in PEM form.
    pub fn key(&self) -> String {
        self.key.serialize_pem()
    }

    /// Signs a certificate for a new key. `hosts` contains the names and addresses by which users
    /// reach a node. `now_ms` is the present time in milliseconds since 1970.
    pub fn issue(
        &self,
        identity: &Identity,
        hosts: &[String],
        now_ms: u64,
    ) -> Result<IssuedCertificate> {
        let mut params = params(&identity.to_string(), VALID, now_ms);
        let uri = identity.to_uri().try_into().map_err(issue_error("naming a certificate"))?;
        params.subject_alt_names.push(SanType::URI(uri));
        for host in hosts {
            params.subject_alt_names.push(host_name(host)?);
        }
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = match identity {
            Identity::Node { .. } => {
                vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth]
            }
            _ => vec![ExtendedKeyUsagePurpose::ClientAuth],
        };
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate().map_err(issue_error("drawing a key"))?;
        // The authority's name and key identifier follow from the cluster and the key.
        let authority_params = authority(self.cluster, now_ms);
        let authority = Issuer::from_params(&authority_params, &self.key);
        let signed =
            params.signed_by(&key, &authority).map_err(issue_error("signing a certificate"))?;
        Ok(IssuedCertificate { certificate: signed.pem(), key: key.serialize_pem() })
    }
}

/// Returns a host's name or address as the TLS library requires it.
fn host_name(host: &str) -> Result<SanType> {
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok(SanType::IpAddress(address));
    }
    let is_name = rustls::pki_types::DnsName::try_from(host).is_ok();
    let name = host.to_owned().try_into().ok().filter(|_| is_name);
    name.map(SanType::DnsName).ok_or_else(|| {
        Error::new(ErrorCode::InvalidParameter, format!("host {host:?} is no name or address"))
            .with_hint("give names and addresses without ports, separated by commas")
    })
}

/// Returns the parameters of a certificate with this name and validity.
fn params(name: &str, valid: Duration, now_ms: u64) -> CertificateParams {
    let mut params = CertificateParams::default();
    let now = date_time_ymd(1970, 1, 1) + Duration::from_secs(now_ms / 1000);
    params.not_before = now - BEFORE;
    params.not_after = now + valid;
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params
}

/// Returns the parameters of the authority's certificate. They depend only on the cluster and the
/// time.
fn authority(cluster: ClusterId, now_ms: u64) -> CertificateParams {
    let name = format!("Sextant CA of cluster {cluster}");
    let mut params = params(&name, AUTHORITY_VALID, now_ms);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}
