//! The settings.

use std::time::Duration;

/// The limits of clients in a process with ports for users.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientLimits {
    /// `login_failures_max`: failed log-ins of an address in a minute; 0 stands for any number.
    pub login_failures_max: u32,
    /// `user_sessions_max`: SQL sessions of a user, unless it has a limit of its own.
    pub user_sessions_max: u32,
    /// `user_statements_max`: statements, calls and requests of a user at once, unless it has a limit of its own.
    pub user_statements_max: u32,
    /// `statements_max`: statements, calls and requests of all clients at once.
    pub statements_max: u32,
    /// `address_connections_max`: connections of an address at all ports together. `None` is the default number, and leaves loopback
    /// addresses to the limits of the ports: behind a proxy of this machine, all clients have one.
    pub address_connections_max: Option<u32>,
    /// `definitions_max`: definitions of all users that are sent to the coordinators at once.
    pub definitions_max: u32,
    /// `user_definitions_max`: definitions of a user that the process sends at once.
    pub user_definitions_max: u32,
    /// `session_memory_total_mb`: memory of the texts of SQL sessions.
    pub session_memory_bytes: usize,
    /// `grpc_memory_total_mb`: memory of gRPC messages that arrive.
    pub grpc_memory_bytes: usize,
    /// `cursor_idle_s`: the time that a suspended result waits for its client.
    pub cursor_idle: Option<Duration>,
    /// `idle_session_s`: the default of `idle_session_timeout`.
    pub session_idle: Option<Duration>,
    /// `write_stall_s`: the time for which a socket may take nothing.
    pub write_stall: Option<Duration>,
    /// `grpc_idle_s`: the time that a gRPC connection stays without a call. Without it, only the first call has a time limit.
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
