//! A process whose service panics ends with status 1 and a line that names task, place and message. The test starts itself
//! as that process.
#![allow(clippy::disallowed_methods, reason = "a test that runs a process")]

use std::convert::Infallible;
use std::future::pending;
use std::process::Command;
use std::time::Duration;

use proto::env::{Env, remember_panic_places};

/// Set in the process that is to end.
const ENDS: &str = "SEXTANT_TEST_ENDS";

#[test]
fn a_process_whose_service_panics_ends_with_one_line() {
    if std::env::var_os(ENDS).is_some() {
        return end();
    }
    let program = std::env::current_exe().expect("the path of this test");
    let mut command = Command::new(program);
    command.args(["--exact", "a_process_whose_service_panics_ends_with_one_line"]);
    let ran = command.env(ENDS, "1").output().expect("the process runs");
    let told = String::from_utf8_lossy(&ran.stderr);
    assert_eq!(ran.status.code(), Some(1), "{told}");
    let line = told.lines().find(|line| line.starts_with("sextant: task")).unwrap_or_default();
    let place = "panicked at proto/tests/end_of_process.rs:";
    for part in ["\"the loop\"", place, "the disk of 7 sides", "the process ends", "start it again"]
    {
        assert!(line.contains(part), "{part:?} in {told:?}");
    }
}

/// Runs a service whose blocking work panics, for longer than the test lasts.
fn end() {
    remember_panic_places();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let env = Env::real();
        let own = env.clone();
        let _service = env.spawn_service("the loop", async move {
            own.blocking(|| panic!("the disk of {} sides", 7)).await;
            pending::<Infallible>().await
        });
        tokio::time::sleep(Duration::from_secs(60)).await;
    });
}
