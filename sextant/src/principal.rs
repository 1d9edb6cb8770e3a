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
    /// Any client of a process that trusts its machine: `dev` on loopback, or `--insecure`. It may do everything.
    Trusted,
    /// An authenticated user.
    User(Arc<LoggedInUser>),
}

/// A user as it has logged in.
#[derive(Debug)]
pub struct LoggedInUser {
    /// The number of the user: a dropped and recreated user with the same name has another number.
    pub id: UserId,
    /// The name of the user.
    pub name: String,
    /// The proof.
    pub by: Proof,
    /// The address of the client's socket.
    pub from: Option<SocketAddr>,
    /// The number (see [`Proof::Password`]) of the password that the user has set in this session, which therefore continues. 0 if it has
    /// set none.
    pub own_change: AtomicU64,
}

impl LoggedInUser {
    /// A user that has logged in.
    pub fn new(id: UserId, name: String, by: Proof, from: Option<SocketAddr>) -> Self {
        Self { id, name, by, from, own_change: AtomicU64::new(0) }
    }

    /// True if the session has proved or set the password with a number.
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

/// The proof of an identity. What it rests on can be withdrawn: the session of a user whose password was changed ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// A password: [`User::secret_no`](proto::model::users::User::secret_no) at that time.
    Password(u64),
    /// A token, by its number.
    Token(TokenId),
    /// A certificate of the user.
    Certificate,
}

impl Principal {
    /// The number of the user; `None` for a client that is trusted.
    pub fn user_id(&self) -> Option<UserId> {
        match self {
            Self::Trusted => None,
            Self::User(who) => Some(who.id),
        }
    }

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
