//! The kinds of events in the audit, and the protocols by which requests arrive.

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// A change of buckets, indexes, or versions of data sets.
    Ddl,
    /// A change of users or of their privileges.
    Users,
    /// A change of the places of slices, vbuckets or buckets.
    Move,
    /// A change of the nodes of the cluster.
    Node,
    /// The termination of another user's transaction.
    Transaction,
    /// A log-in of a user.
    Login,
    /// The start or the end of the process.
    Process,
}

/// The protocol of the port at which a request arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortProtocol {
    /// The SQL port.
    Sql,
    /// The gRPC port.
    Grpc,
    /// The HTTP port.
    Http,
}

impl EventKind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Ddl => "ddl",
            Self::Users => "users",
            Self::Move => "move",
            Self::Node => "node",
            Self::Transaction => "transaction",
            Self::Login => "login",
            Self::Process => "process",
        }
    }
}

impl PortProtocol {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Sql => "sql",
            Self::Grpc => "grpc",
            Self::Http => "http",
        }
    }
}
