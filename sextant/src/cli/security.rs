//! The settings of a role that determine how it authenticates other processes.

use std::path::PathBuf;

use proto::model::node::Role;
use proto::{Error, ErrorCode, Result};

use crate::roles::SecuritySettings;
use crate::tls::TlsFiles;

/// The security settings as they are given by flags or in the settings file.
pub struct GivenSettings {
    /// `tls_cert`
    pub certificate: Option<PathBuf>,
    /// `tls_key`
    pub key: Option<PathBuf>,
    /// `tls_ca`
    pub ca: Option<PathBuf>,
    /// `insecure`
    pub insecure: Option<bool>,
}

/// Checks the security settings. Either all three files of a certificate or `insecure` must be
/// given, because a process that does not authenticate others must be configured explicitly.
pub fn security(role: Role, given: GivenSettings) -> Result<SecuritySettings> {
    let GivenSettings { certificate, key, ca, insecure } = given;
    let bad = |what: String| Error::new(ErrorCode::InvalidParameter, what);
    let role = role.name();
    let has_any = certificate.is_some() || key.is_some() || ca.is_some();
    match (certificate, key, ca) {
        _ if insecure == Some(true) && has_any => {
            Err(bad(format!("this {role} has either a certificate or --insecure"))
                .with_hint("with a certificate it checks all callers; leave out --insecure"))
        }
        _ if insecure == Some(true) => Ok(SecuritySettings::Insecure),
        (Some(certificate), Some(key), Some(ca)) => {
            Ok(SecuritySettings::Certificates(TlsFiles { certificate, key, ca }))
        }
        (certificate, key, ca) => {
            let given = [("--tls-cert", certificate), ("--tls-key", key), ("--tls-ca", ca)];
            let missing: Vec<_> =
                given.iter().filter(|(_, path)| path.is_none()).map(|(flag, _)| *flag).collect();
            Err(bad(format!("this {role} needs a certificate: {} is missing", missing.join(", ")))
                .with_hint(
                    "sextant cert makes certificates; --insecure goes without them, on loopback addresses only",
                ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(files: [Option<&str>; 3], insecure: Option<bool>) -> Result<SecuritySettings> {
        let [certificate, key, ca] = files.map(|path| path.map(PathBuf::from));
        security(Role::Indexer, GivenSettings { certificate, key, ca, insecure })
    }

    #[test]
    fn certificate_or_insecure_is_required() {
        let all = [Some("c"), Some("k"), Some("a")];
        assert!(matches!(given(all, None), Ok(SecuritySettings::Certificates(_))));
        assert!(matches!(given(all, Some(false)), Ok(SecuritySettings::Certificates(_))));
        assert_eq!(given([None; 3], Some(true)).unwrap(), SecuritySettings::Insecure);
        let both = given(all, Some(true)).unwrap_err();
        assert!(both.message.contains("either"), "{both}");
        let none = given([None; 3], None).unwrap_err();
        assert!(none.message.contains("--tls-cert, --tls-key, --tls-ca is missing"), "{none}");
        assert!(none.hint.unwrap_or_default().contains("--insecure"));
        let part = given([Some("c"), None, Some("a")], Some(false)).unwrap_err();
        assert!(part.message.contains(": --tls-key is missing"), "{part}");
    }
}
