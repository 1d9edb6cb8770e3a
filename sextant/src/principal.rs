//! The principal: the sender of a request.

use std::fmt;

/// The sender of a request: of an SQL session, a gRPC call or an HTTP request.
///
/// Each port determines the principal where a request comes in, and passes it on through its backend
/// ([`crate::sql::backend::Backends`]) to the calls of other services. There is no authentication and no authorization
/// yet, so there is one principal, which may do everything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Principal {
    /// Anyone who reaches a port: the addresses to listen on limit the access.
    #[default]
    LocalSuperuser,
    /// Somebody else, for tests of what a principal may not see.
    #[cfg(test)]
    Stranger,
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::LocalSuperuser => "local superuser",
            #[cfg(test)]
            Self::Stranger => "stranger",
        })
    }
}
