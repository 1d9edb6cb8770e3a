//! The limits of clients, as configured by settings.

use std::time::Duration;

/// The limits of clients in a process with ports for users.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientLimits {
    /// `login_failures_max`: the maximum number of failed log-ins per minute from one address; 0
    /// for no limit.
    pub login_failures_max: u32,
    /// `user_sessions_max`: the maximum number of SQL sessions of a user, unless the user has an
    /// individual limit.
    pub user_sessions_max: u32,
    /// `user_statements_max`: the maximum number of statements, calls and requests that a user
    /// runs at the same time, unless the user has an individual limit.
    pub user_statements_max: u32,
    /// `statements_max`: the maximum number of statements, calls and requests that all clients
    /// together run at the same time.
    pub statements_max: u32,
    /// `address_connections_max`: the maximum number of connections of an address at all ports
    /// together. `None` means the default, and no limit for loopback addresses, since a proxy on
    /// this machine gives all its clients one address.
    pub address_connections_max: Option<u32>,
    /// `definitions_max`: the maximum number of definitions of all users that are sent to the
    /// coordinators at the same time.
    pub definitions_max: u32,
    /// `user_definitions_max`: the maximum number of definitions of one user that are sent to the
    /// coordinators at the same time.
    pub user_definitions_max: u32,
    /// `session_memory_total_mb`: the memory limit of the texts of all SQL sessions, in bytes.
    pub session_memory_bytes: usize,
    /// `grpc_memory_total_mb`: the memory limit of arriving gRPC messages, in bytes.
    pub grpc_memory_bytes: usize,
    /// `cursor_idle_s`: the time for which a suspended result waits for its client; `None` for no
    /// limit.
    pub cursor_idle: Option<Duration>,
    /// `idle_session_s`: the default of `idle_session_timeout`; `None` for no limit.
    pub session_idle: Option<Duration>,
    /// `write_stall_s`: the time after which a client is disconnected if its socket accepts no
    /// bytes; `None` for no limit.
    pub write_stall: Option<Duration>,
    /// `grpc_idle_s`: the time for which a gRPC connection may have no call. With `None`, only
    /// the first call has a time limit.
    pub grpc_idle: Option<Duration>,
}

impl ClientLimits {
    /// The default of `address_connections_max`.
    pub const ADDRESS_CONNECTIONS_MAX: u32 = 256;
}

impl Default for ClientLimits {
    fn default() -> Self {
        Self {
            login_failures_max: 10,
            user_sessions_max: 200,
            user_statements_max: 100,
            statements_max: 1000,
            address_connections_max: None,
            definitions_max: 16,
            user_definitions_max: 4,
            session_memory_bytes: 512 << 20,
            grpc_memory_bytes: 256 << 20,
            cursor_idle: Some(Duration::from_secs(600)),
            session_idle: None,
            write_stall: Some(Duration::from_secs(300)),
            grpc_idle: Some(Duration::from_secs(600)),
        }
    }
}
