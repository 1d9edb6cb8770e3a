//! A process without other clients: the waiting times of its client show the speed of the machine.

use std::time::Duration;

use tempfile::TempDir;
use tests::harness::process::{Dev, dev};

/// The factor by which a client of the tested process may wait longer than one of the idle process.
const TIMES: u32 = 4;
/// The longest allowed time, as a multiple of the limit: a process that uses all processors slows
/// down the idle one too.
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

/// Returns the time that a client of the tested process may wait if a client of the idle process
/// has waited `idle`. On a machine with enough capacity it is `limit`.
pub fn allowed(limit: Duration, idle: Duration) -> Duration {
    limit.max(TIMES * idle).min(LIMITS_MAX * limit)
}
