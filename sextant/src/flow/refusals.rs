//! The limits of clients, and the number of refusals by each limit for `/metrics`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use proto::{Error, ErrorCode};

/// A limit of clients; each one has a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// The limit of failed log-ins of an address.
    LoginFailures,
    /// The session limit of one user.
    UserSessions,
    /// The limit of statements that a user runs at the same time.
    UserStatements,
    /// The limit of statements that all clients run at the same time.
    Statements,
    /// The connection limit of one address.
    AddressConnections,
    /// The memory limit of sessions.
    SessionMemory,
    /// The memory limit of gRPC messages.
    GrpcMemory,
    /// The time limit of a suspended result (one that waits until its client requests more rows).
    CursorIdle,
    /// The time limit of a session without a statement.
    SessionIdle,
    /// The time limit of a socket that accepts no bytes.
    WriteStall,
    /// The time limit of a gRPC connection without calls.
    GrpcIdle,
    /// The limit of definitions of all users that are sent at the same time.
    Definitions,
    /// The limit of definitions of one user that are sent at the same time.
    UserDefinitions,
}

impl Limit {
    /// All limits, in the order of their index in [`Refusals`].
    pub const ALL: [Self; 13] = [
        Self::LoginFailures,
        Self::UserSessions,
        Self::UserStatements,
        Self::Statements,
        Self::AddressConnections,
        Self::SessionMemory,
        Self::GrpcMemory,
        Self::CursorIdle,
        Self::SessionIdle,
        Self::WriteStall,
        Self::GrpcIdle,
        Self::Definitions,
        Self::UserDefinitions,
    ];

    /// Returns the name of the limit's setting.
    pub fn setting(self) -> &'static str {
        match self {
            Self::LoginFailures => "login_failures_max",
            Self::UserSessions => "user_sessions_max",
            Self::UserStatements => "user_statements_max",
            Self::Statements => "statements_max",
            Self::AddressConnections => "address_connections_max",
            Self::SessionMemory => "session_memory_total_mb",
            Self::GrpcMemory => "grpc_memory_total_mb",
            Self::CursorIdle => "cursor_idle_s",
            Self::SessionIdle => "idle_session_s",
            Self::WriteStall => "write_stall_s",
            Self::GrpcIdle => "grpc_idle_s",
            Self::Definitions => "definitions_max",
            Self::UserDefinitions => "user_definitions_max",
        }
    }
}

/// The number of refusals by each limit. Clones share the counters.
#[derive(Clone, Debug, Default)]
pub struct Refusals(Arc<[AtomicU64; Limit::ALL.len()]>);

impl Refusals {
    /// Counts a refusal.
    pub fn count(&self, limit: Limit) {
        self.0[limit as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a refusal and returns its error, whose hint contains the name of the setting.
    pub fn refuse(&self, limit: Limit, code: ErrorCode, what: String) -> Error {
        self.count(limit);
        Error::new(code, what)
            .with_hint(format!("try again later; the setting {} is the limit", limit.setting()))
    }

    /// Returns the number of refusals by setting.
    pub fn by_setting(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        Limit::ALL
            .iter()
            .zip(&*self.0)
            .map(|(limit, count)| (limit.setting(), count.load(Ordering::Relaxed)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_count_by_setting() {
        let refusals = Refusals::default();
        for (n, limit) in Limit::ALL.into_iter().enumerate() {
            assert_eq!(limit as usize, n, "the list is in the order of the numbers");
            let error = refusals.refuse(limit, ErrorCode::TooBusy, "too many".into());
            assert!(error.hint.is_some_and(|hint| hint.contains(limit.setting())));
        }
        refusals.count(Limit::UserDefinitions);
        let counts: Vec<_> = refusals.by_setting().collect();
        assert_eq!(counts.last(), Some(&("user_definitions_max", 2)));
        assert!(counts[..counts.len() - 1].iter().all(|(_, count)| *count == 1));
    }
}
