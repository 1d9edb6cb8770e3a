//! The orderly stop of a process, in the steps that clients observe.
//!
//! ```text
//! Serving ── stop signal ──▶ Draining ── all sessions and calls have ended, or 5 s ──▶ Cut ── they have told their clients ──▶ end
//! ```
//!
//! While a process drains, its ports stay open, except gRPC's, which accepts no new calls: `/readyz` reports `draining`, so that a load
//! balancer sends no further clients; a new session is refused with 57P03, and an idle one ends with 57P01. Statements, transactions and
//! calls continue. A cut ends the remaining ones with 57P01.

use std::time::Duration;

use tokio::sync::watch;

/// The time for which statements, transactions and calls may continue.
const DRAIN_WITHIN: Duration = Duration::from_secs(5);
/// The time for which sessions may send the error of the cut to their clients.
const CUT_WITHIN: Duration = Duration::from_millis(500);

/// A stage of the stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum StopStage {
    Serving,
    Draining,
    Cut,
}

/// The stop of a process.
pub struct Stop(watch::Sender<StopStage>);

/// The stop from the view of a session or a port. The process waits until all of these are dropped.
#[derive(Clone)]
pub struct StopWatch(watch::Receiver<StopStage>);

impl Default for Stop {
    fn default() -> Self {
        Self(watch::Sender::new(StopStage::Serving))
    }
}

impl Stop {
    /// Returns a watch of the stop.
    pub fn watch(&self) -> StopWatch {
        StopWatch(self.0.subscribe())
    }

    /// True after the process has received its stop signal.
    pub fn has_begun(&self) -> bool {
        *self.0.borrow() > StopStage::Serving
    }

    /// Drains the process, and ends the remaining sessions and calls after five seconds.
    pub async fn run(&self) {
        for (stage, within) in [(StopStage::Draining, DRAIN_WITHIN), (StopStage::Cut, CUT_WITHIN)] {
            self.0.send_replace(stage);
            if tokio::time::timeout(within, self.0.closed()).await.is_ok() {
                return;
            }
        }
    }
}

impl StopWatch {
    /// Waits until the process drains.
    pub async fn draining(&mut self) {
        self.reaches(StopStage::Draining).await;
    }

    /// Waits until the process ends its remaining sessions and calls.
    pub async fn cut(&mut self) {
        self.reaches(StopStage::Cut).await;
    }

    async fn reaches(&mut self, stage: StopStage) {
        if self.0.wait_for(|now| *now >= stage).await.is_err() {
            // A process that has no stop any more serves to its end.
            std::future::pending().await
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_stop_waits_for_what_runs_and_cuts_it_in_the_end() {
        let stop = Arc::new(Stop::default());
        let (mut idle, mut busy) = (stop.watch(), stop.watch());
        assert!(!stop.has_begun());
        let begun = Instant::now();
        let idle = async move { idle.draining().await };
        let busy = async move { busy.cut().await };
        tokio::join!(stop.run(), idle, busy);
        assert!(stop.has_begun());
        assert_eq!(begun.elapsed(), DRAIN_WITHIN, "the busy one ends with the cut");
    }

    #[tokio::test(start_paused = true)]
    async fn a_stop_without_anything_that_runs_is_quick_and_one_that_hangs_has_an_end() {
        let (stop, begun) = (Stop::default(), Instant::now());
        let mut idle = stop.watch();
        tokio::join!(stop.run(), async move { idle.draining().await });
        assert_eq!(begun.elapsed(), Duration::ZERO);
        let (stop, begun) = (Stop::default(), Instant::now());
        let _hangs = stop.watch();
        stop.run().await;
        assert_eq!(begun.elapsed(), DRAIN_WITHIN + CUT_WITHIN);
    }
}
