//! Runs whole histories.

use std::panic::AssertUnwindSafe;

use futures::FutureExt;

use super::driver::{Driver, Plan};

/// What a history came to.
#[derive(Clone, Copy, Debug)]
pub struct Summary {
    /// File operations of the whole history.
    pub operations: u64,
    /// How often the store was opened again.
    pub recoveries: u32,
}

/// Runs a history on a runtime of its own, whose time is simulated; the text says what went wrong and
/// what led to it.
pub fn run(plan: &Plan) -> Result<Summary, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .map_err(|error| error.to_string())?;
    runtime.block_on(async {
        let mut driver = Driver::new(plan.clone()).map_err(|finding| finding.to_string())?;
        let trace = driver.trace.clone();
        let verdict = match AssertUnwindSafe(driver.run()).catch_unwind().await {
            Ok(verdict) => verdict.map_err(|finding| finding.to_string()),
            Err(panic) => Err(format!("a panic: {}", panic_text(&*panic))),
        };
        match verdict {
            Ok(()) => {
                let (operations, recoveries) = (driver.operations(), driver.recoveries);
                Ok(Summary { operations, recoveries })
            }
            Err(what) => {
                let trace = trace.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                Err(format!("{what}\n{plan:?}\n{}", trace.join("\n")))
            }
        }
    })
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default()
}
