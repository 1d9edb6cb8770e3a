//! Forwards the `slog` lines of the `raft` crate to `tracing`, one level lower, because the crate logs each election at
//! a high level.

use slog::{Drain, Level, Logger, Never, OwnedKVList, Record, o};

/// Forwards each line of `slog` to `tracing`.
struct Bridge;

impl Drain for Bridge {
    type Ok = ();
    type Err = Never;

    fn log(&self, record: &Record<'_>, _values: &OwnedKVList) -> Result<(), Never> {
        match record.level() {
            Level::Critical | Level::Error => tracing::error!(target: "raft", "{}", record.msg()),
            Level::Warning => tracing::warn!(target: "raft", "{}", record.msg()),
            Level::Info => tracing::debug!(target: "raft", "{}", record.msg()),
            Level::Debug | Level::Trace => tracing::trace!(target: "raft", "{}", record.msg()),
        }
        Ok(())
    }
}

/// Returns a logger for the `raft` crate.
pub(super) fn logger() -> Logger {
    Logger::root(Bridge, o!())
}
