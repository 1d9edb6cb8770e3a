//! Runs of whole histories, and sweeps in which a crash or a failure occurs at each file operation
//! of a history.

use std::future::Future;
use std::panic::AssertUnwindSafe;

use futures::FutureExt;
use proto::lock::lock;

use super::compare::Verdict;
use super::driver::Driver;
use super::plan::Plan;
use super::simulated_time;

/// The result of a history.
#[derive(Clone, Copy, Debug)]
pub struct Summary {
    /// The number of file operations in the history.
    pub operations: u64,
    /// The number of times that the store was reopened.
    pub recoveries: u32,
    /// The number of interruptions of blocking work.
    pub interrupted: u64,
    /// The number of epochs that were applied at the second attempt.
    pub tried_again: u64,
}

/// Runs a history to its end; the error describes the violation and the previous steps.
pub fn run(plan: &Plan) -> Result<Summary, String> {
    let driver = drive(plan, async |driver| driver.run().await)?;
    let interrupted = driver.turns.as_ref().map_or(0, |turns| turns.switches());
    let (operations, recoveries) = (driver.operations(), driver.recoveries);
    let tried_again = driver.tried_again;
    Ok(Summary { operations, recoveries, interrupted, tried_again })
}

/// Calls a function with a new driver, on a runtime with simulated time.
pub fn drive(
    plan: &Plan,
    work: impl for<'a> AsyncFnOnce(&'a mut Driver) -> Verdict,
) -> Result<Driver, String> {
    simulated_time()?.block_on(async {
        let mut driver = Driver::new(plan.clone()).map_err(|finding| finding.to_string())?;
        let trace = driver.trace.clone();
        match caught(work(&mut driver)).await {
            Ok(()) => Ok(driver),
            Err(what) => {
                let trace = lock(&trace);
                Err(format!("{what}\n{plan:?}\n{}", trace.join("\n")))
            }
        }
    })
}

/// Returns the verdict as a result, in which a panic is an error too.
async fn caught(work: impl Future<Output = Verdict>) -> Result<(), String> {
    match AssertUnwindSafe(work).catch_unwind().await {
        Ok(verdict) => verdict.map_err(|finding| finding.to_string()),
        Err(panic) => {
            let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
            let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
            Err(format!("a panic: {}", text.unwrap_or_default()))
        }
    }
}

/// The kind of fault of a sweep.
#[derive(Clone, Copy, Debug)]
pub enum Fault {
    /// A crash of the machine, and up to two more crashes during the recovery.
    Crash,
    /// A file operation that fails once.
    Error,
    /// A file operation that fails once during the application of an epoch, which is then repeated
    /// on the open store.
    ErrorOfEpoch,
}

/// The result of a sweep.
#[derive(Clone, Copy, Debug)]
pub struct Swept {
    /// The number of runs.
    pub runs: u64,
    /// The number of epochs that were applied at the second attempt.
    pub tried_again: u64,
}

/// Runs a workload once without a fault, and then with a fault at each of its file operations, or
/// at `places_max` of them in equal distances.
pub fn sweep(workload: &Plan, fault: Fault, places_max: u64) -> Result<Swept, String> {
    let operations = run(workload)?.operations;
    let places = operations.min(places_max.max(1));
    let mut random = fastrand::Rng::with_seed(workload.seed);
    let mut tried_again = 0;
    for n in 0..places {
        // One place in each of `places` equal parts; with as many parts as operations, all of them.
        let (from, to) = (operations * n / places, operations * (n + 1) / places);
        let at = Some(random.u64(from..to) + 1);
        let plan = match fault {
            Fault::Crash => {
                let recovery_crashes = random.u32(0..3);
                Plan { crash_at: at, recovery_crashes, ..workload.clone() }
            }
            Fault::Error => Plan { fail_at: at, ..workload.clone() },
            Fault::ErrorOfEpoch => Plan { fail_at: at, tries_again: true, ..workload.clone() },
        };
        tried_again += run(&plan)?.tried_again;
    }
    Ok(Swept { runs: places + 1, tried_again })
}
