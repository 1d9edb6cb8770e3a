//! The principal: the sender of a request.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use proto::model::ids::{TokenId, UserId};

/// The sender of a request: of an SQL session, a gRPC call or an HTTP request.
///
/// Each port determines the principal where a connection or request comes in, and makes the backend of this principal
/// ([`crate::sql::backend::Backends`]), which decides what it may do. There is no principal by default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Principal {
    /// Anyone who reaches a port of a process that trusts its machine: `dev` on loopback, or `--insecure`. It may do everything.
    Trusted,
    /// A user who has proved to be one.
    User(Arc<Identified>),
}

/// A user as it has logged in.
#[derive(Debug)]
pub struct Identified {
    /// The number: a user that is made anew under the name is another one.
    pub id: UserId,
    /// The name.
    pub name: String,
    /// The proof.
    pub by: Proof,
    /// The address of the client's socket.
    pub from: Option<SocketAddr>,
    /// The password that the user has set in this very session, as [`Proof::Password`] numbers it: the session goes on with it. 0 if it
    /// has set none.
    pub own_change: AtomicU64,
}

impl Identified {
    /// A user that has logged in.
    pub fn new(id: UserId, name: String, by: Proof, from: Option<SocketAddr>) -> Self {
        Self { id, name, by, from, own_change: AtomicU64::new(0) }
    }

    /// True if the session knows the password with a number.
    pub fn knows(&self, secret_no: u64) -> bool {
        self.by == Proof::Password(secret_no)
            || secret_no > 0 && self.own_change.load(Ordering::Relaxed) == secret_no
    }
}

impl PartialEq for Identified {
    fn eq(&self, other: &Self) -> bool {
        (self.id, &self.name, self.by, self.from) == (other.id, &other.name, other.by, other.from)
    }
}

impl Eq for Identified {}

/// The proof of an identity. What it rests on can be withdrawn: the session of a user whose password was changed ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// A password: [`User::secret_no`](proto::model::users::User::secret_no) at that time.
    Password(u64),
    /// A token.
    Token(TokenId),
    /// A certificate.
    Certificate,
}

impl Principal {
    /// True if both are the same user, whatever each has proved it with.
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
