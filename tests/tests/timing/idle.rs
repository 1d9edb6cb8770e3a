//! A process without other clients. What its client waits is due to the machine.

use std::time::Duration;

use tempfile::TempDir;
use tests::harness::process::{Dev, dev};

/// A client of the tested process may wait this many times as long as one of the idle process.
const TIMES: u32 = 4;
/// The maximum, as a multiple of the limit: a process that takes all processors slows the idle one too.
const LIMITS_MAX: u32 = 5;

/// The process, with its directory.
pub struct Idle {
    pub process: Dev,
    _data: TempDir,
}

impl Idle {
    pub fn start() -> Self {
        let data = tempfile::tempdir().expect("a temporary directory");
        let process = Dev::start_by(dev(data.path()).args(["--nodes", "1"]));
        Self { process, _data: data }
    }
}

/// The time that a client of the tested process may wait, given that a client of the idle process has waited `idle`. On a machine that has
/// time for both it is `limit`.
pub fn allowed(limit: Duration, idle: Duration) -> Duration {
    limit.max(TIMES * idle).min(LIMITS_MAX * limit)
}
