//! Entry points for fuzzers of certificates, of the names of their holders, and of the files of a
//! process.

use rustls::pki_types::CertificateDer;

use super::identity::Identity;
use super::settings::{certificates, end_point, private_key, roots};

/// Reads `data` as a certificate: the identity of its holder, and the hash to which a log-in is
/// bound.
pub fn certificate(data: &[u8]) {
    let certificate = CertificateDer::from(data);
    let _ = (end_point(&certificate), Identity::of_certificate(&certificate));
}

/// Reads `data` as the name of a certificate's holder.
pub fn holder(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Some(identity) = Identity::from_uri(text) {
        assert_eq!(identity.to_uri(), text, "a name has one spelling");
    }
}

/// Reads `data` as each of the three files of a process.
pub fn pem(data: &[u8]) {
    if let Ok(read) = certificates(data, "the certificate") {
        read.iter().for_each(|one| certificate(one));
    }
    let _ = (private_key(data), roots(data));
}
