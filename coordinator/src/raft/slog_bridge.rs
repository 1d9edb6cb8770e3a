//! The `raft` crate logs through `slog`; its lines go where ours go, one level quieter, since what it
//! calls news happens at every election.

use slog::{Drain, Level, Logger, Never, OwnedKVList, Record, o};

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

/// A logger for the `raft` crate.
pub(super) fn logger() -> Logger {
    Logger::root(Bridge, o!())
}
