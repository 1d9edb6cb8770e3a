//! The identity of the holder of a certificate, and its name in the certificate:
//!
//! ```text
//! sextant://<cluster, 32 hex digits>/<coordinator|projector|indexer|router>/<number>     a node
//! sextant://<cluster>/operator                                                          an operator
//! sextant://<cluster>/user/<name, percent-encoded>                                      a user
//! ```
//!
//! The name is a URI among the certificate's subject alternative names. A certificate without
//! such a URI, or with several, identifies no holder. Each identity has exactly one spelling.

use std::fmt::{self, Write};

use proto::model::identity::ClusterId;
use proto::model::ids::NodeId;
use proto::model::node::Role;
use rustls::pki_types::CertificateDer;
use webpki::EndEntityCert;

/// The scheme of the URIs.
const SCHEME: &str = "sextant://";
/// The maximum length of a user's name, in bytes.
const USER_BYTES_MAX: usize = 63;

/// The identity of the holder of a certificate.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Identity {
    /// A process of the cluster.
    Node {
        /// The cluster of the node.
        cluster: ClusterId,
        /// The role of the node.
        role: Role,
        /// The number of the node.
        node: NodeId,
    },
    /// An operator, which may call the port for other processes.
    Operator {
        /// The cluster of the operator.
        cluster: ClusterId,
    },
    /// A user of SQL, gRPC or HTTP.
    User {
        /// The cluster of the user.
        cluster: ClusterId,
        /// The user's name.
        name: String,
    },
}

impl Identity {
    /// Returns the cluster of the holder.
    pub fn cluster(&self) -> ClusterId {
        match self {
            Self::Node { cluster, .. } | Self::Operator { cluster } => *cluster,
            Self::User { cluster, .. } => *cluster,
        }
    }

    /// Returns the name of a user; `None` for a node or an operator.
    pub fn user(&self) -> Option<&str> {
        match self {
            Self::User { name, .. } => Some(name),
            Self::Node { .. } | Self::Operator { .. } => None,
        }
    }

    /// Returns the name of the holder as it is written in a certificate.
    pub fn to_uri(&self) -> String {
        let cluster = self.cluster();
        match self {
            Self::Node { role, node, .. } => format!("{SCHEME}{cluster}/{}/{node}", role.name()),
            Self::Operator { .. } => format!("{SCHEME}{cluster}/operator"),
            Self::User { name, .. } => format!("{SCHEME}{cluster}/user/{}", encoded(name)),
        }
    }

    /// Parses the name of a holder. Returns `None` for other texts, and for a name that is not in
    /// its only valid spelling.
    pub fn from_uri(uri: &str) -> Option<Self> {
        let (cluster, holder) = uri.strip_prefix(SCHEME)?.split_once('/')?;
        let cluster = cluster.parse().ok()?;
        let read = match holder.split_once('/') {
            None if holder == "operator" => Self::Operator { cluster },
            Some(("user", name)) => Self::User { cluster, name: decoded(name)? },
            Some((role, number)) => {
                let roles = [Role::Coordinator, Role::Projector, Role::Indexer, Role::Router];
                let role = roles.into_iter().find(|known| known.name() == role)?;
                Self::Node { cluster, role, node: NodeId(number.parse().ok()?) }
            }
            None => return None,
        };
        let is_named = match &read {
            Self::User { name, .. } => is_user_name(name),
            _ => true,
        };
        (is_named && read.to_uri() == uri).then_some(read)
    }

    /// Returns the identity of a certificate's holder, or the reason why there is none.
    pub fn of_certificate(certificate: &CertificateDer<'_>) -> Result<Self, String> {
        let parsed = EndEntityCert::try_from(certificate)
            .map_err(|error| format!("the certificate cannot be read: {error}"))?;
        let mut names = parsed.valid_uri_names().filter(|uri| uri.starts_with("sextant:"));
        match (names.next(), names.next()) {
            (None, _) => Err("the certificate has no name of the form sextant://…".to_owned()),
            (Some(uri), None) => Self::from_uri(uri).ok_or_else(|| {
                format!(
                    "the certificate has the name {uri:?}, which is no node's, operator's or user's"
                )
            }),
            (Some(_), Some(_)) => Err("the certificate has several names sextant://…".to_owned()),
        }
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cluster = self.cluster();
        match self {
            Self::Node { role, node, .. } => {
                write!(f, "{} {node} of cluster {cluster}", role.name())
            }
            Self::Operator { .. } => write!(f, "an operator of cluster {cluster}"),
            Self::User { name, .. } => write!(f, "user {name:?} of cluster {cluster}"),
        }
    }
}

/// Returns true if a certificate can contain this name of a user.
pub fn is_user_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= USER_BYTES_MAX
}

/// Returns a user's name in percent-encoding.
fn encoded(name: &str) -> String {
    name.bytes().fold(String::new(), |mut text, byte| {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                text.push(char::from(byte));
            }
            // Writing to a string does not fail.
            _ => drop(write!(text, "%{byte:02X}")),
        }
        text
    })
}

/// Returns the user's name in a percent-encoded text; `None` if the text is invalid.
fn decoded(text: &str) -> Option<String> {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((&first, behind)) = rest.split_first() {
        rest = behind;
        if first != b'%' {
            bytes.push(first);
            continue;
        }
        let (digits, behind) = rest.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
        rest = behind;
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLUSTER: ClusterId = ClusterId(0xab);

    #[test]
    fn each_name_has_one_spelling() {
        let node = Identity::Node { cluster: CLUSTER, role: Role::Indexer, node: NodeId(201) };
        let user = |name: &str| Identity::User { cluster: CLUSTER, name: name.to_owned() };
        for identity in [
            node,
            Identity::Operator { cluster: CLUSTER },
            user("ada"),
            user("a/b%c é"),
            user("operator"),
        ] {
            let uri = identity.to_uri();
            assert!(uri.is_ascii(), "{uri}");
            assert_eq!(Identity::from_uri(&uri).as_ref(), Some(&identity), "{uri}");
        }
    }

    #[test]
    fn other_spellings_and_other_texts_are_refused() {
        let cluster = CLUSTER.to_string();
        for uri in [
            "".to_owned(),
            "sextant://".to_owned(),
            format!("sextant://{cluster}"),
            format!("sextant://{cluster}/"),
            format!("sextant://{cluster}/operator/"),
            format!("sextant://{cluster}/operator/1"),
            format!("sextant://{cluster}/user/"),
            format!("sextant://{cluster}/user/%61da"),
            format!("sextant://{cluster}/user/a%2"),
            format!("sextant://{cluster}/user/a%2f"),
            format!("sextant://{cluster}/user/%FF"),
            format!("sextant://{cluster}/user/a/b"),
            format!("sextant://{cluster}/user/{}", "a".repeat(64)),
            format!("sextant://{cluster}/indexer/"),
            format!("sextant://{cluster}/indexer/+1"),
            format!("sextant://{cluster}/indexer/01"),
            format!("sextant://{cluster}/indexer/1/"),
            format!("sextant://{cluster}/Indexer/1"),
            format!("sextant://{}/indexer/1", cluster.to_uppercase()),
            format!("sextant://{}/indexer/1", &cluster[1..]),
            format!("https://{cluster}/indexer/1"),
        ] {
            assert_eq!(Identity::from_uri(&uri), None, "{uri}");
        }
    }
}
