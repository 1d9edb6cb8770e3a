//! The principal: the sender of a request, whose rights are checked.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use proto::model::ids::{TokenId, UserId};

/// The sender of a request: of an SQL session, a gRPC call or an HTTP request.
///
/// Each port determines the principal when a connection or request arrives. The port then gets
/// the access of this principal ([`crate::access::AccessProvider`]), which checks the privileges
/// of the principal. There is no default principal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Principal {
    /// Any client of a process that trusts its machine (`dev` on loopback, or `--insecure`). Such
    /// a client has all privileges.
    Trusted,
    /// An authenticated user.
    User(Arc<LoggedInUser>),
}

/// A user that has logged in, with the proof of the log-in.
#[derive(Debug)]
pub struct LoggedInUser {
    /// The number of the user. If a user is dropped and created again with the same name, the new
    /// user has another number.
    pub id: UserId,
    /// The name of the user.
    pub name: String,
    /// The proof with which the user has logged in.
    pub by: Proof,
    /// The address of the client's socket.
    pub from: Option<SocketAddr>,
    /// The number ([`Proof::Password`]) of the password that the user has set in this session; 0
    /// if none. The session therefore continues after such a change.
    pub own_change: AtomicU64,
}

impl LoggedInUser {
    /// Returns a user that has logged in.
    pub fn new(id: UserId, name: String, by: Proof, from: Option<SocketAddr>) -> Self {
        Self { id, name, by, from, own_change: AtomicU64::new(0) }
    }

    /// Returns true if the session has logged in with, or has set, the password with this number.
    pub fn knows(&self, secret_no: u64) -> bool {
        self.by == Proof::Password(secret_no)
            || secret_no > 0 && self.own_change.load(Ordering::Relaxed) == secret_no
    }
}

impl PartialEq for LoggedInUser {
    fn eq(&self, other: &Self) -> bool {
        (self.id, &self.name, self.by, self.from) == (other.id, &other.name, other.by, other.from)
    }
}

impl Eq for LoggedInUser {}

/// The proof of a user's identity. If its password, token or certificate is withdrawn, the proof
/// becomes invalid and the session ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// The password with this [`User::secret_no`](proto::model::users::User::secret_no).
    Password(u64),
    /// The token with this number.
    Token(TokenId),
    /// A certificate of the user.
    Certificate,
}

impl Principal {
    /// Returns the number of the user; `None` for a trusted client.
    pub fn user_id(&self) -> Option<UserId> {
        match self {
            Self::Trusted => None,
            Self::User(who) => Some(who.id),
        }
    }

    /// Returns true if both principals are the same user, even with different proofs.
    pub fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Trusted, Self::Trusted) => true,
            (Self::User(one), Self::User(other)) => one.id == other.id,
            (Self::Trusted, Self::User(_)) | (Self::User(_), Self::Trusted) => false,
        }
    }
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Trusted => f.write_str("local superuser"),
            Self::User(user) => write!(f, "user {:?}", user.name),
        }
    }
}
