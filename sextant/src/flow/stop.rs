//! The orderly stop of a process, in the steps that clients observe.
//!
//! ```text
//! Serving ── stop signal ──▶ Draining ── all sessions and calls have ended, or 5 s ──▶ Cut ── they have told their clients ──▶ end
//! ```
//!
//! While a process drains, its ports stay open; only the gRPC port accepts no new calls.
//! `/readyz` reports `draining`, so that a load balancer sends no further clients. A new session
//! is refused with 57P03, and an idle session ends with 57P01. Statements, transactions and calls
//! continue. In the stage `Cut`, the remaining ones end with 57P01.

use std::time::Duration;

use tokio::sync::watch;

/// The time for which statements, transactions and calls may continue.
const DRAIN_WITHIN: Duration = Duration::from_secs(5);
/// The time for which sessions may send the final error to their clients after the cut.
const CUT_WITHIN: Duration = Duration::from_millis(500);

/// A stage of the stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum StopStage {
    Serving,
    Draining,
    Cut,
}

/// The present stage of a process's stop.
pub struct Stop(watch::Sender<StopStage>);

/// A receiver of the stages of the stop, for a session or a port. The process waits until all of
/// these receivers are dropped.
#[derive(Clone)]
pub struct StopWatch(watch::Receiver<StopStage>);

impl Default for Stop {
    fn default() -> Self {
        Self(watch::Sender::new(StopStage::Serving))
    }
}

impl Stop {
    /// Returns a receiver of the stages of the stop.
    pub fn watch(&self) -> StopWatch {
        StopWatch(self.0.subscribe())
    }

    /// Returns true after the process has received its stop signal.
    pub fn has_begun(&self) -> bool {
        *self.0.borrow() > StopStage::Serving
    }

    /// Drains the process. After at most five seconds, ends the remaining sessions and calls.
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
    /// Waits until the process drains its clients.
    pub async fn draining(&mut self) {
        self.wait_stage(StopStage::Draining).await;
    }

    /// Waits until the process ends its remaining sessions and calls.
    pub async fn cut(&mut self) {
        self.wait_stage(StopStage::Cut).await;
    }

    /// Waits until the stop has reached a stage.
    async fn wait_stage(&mut self, stage: StopStage) {
        if self.0.wait_for(|now| *now >= stage).await.is_err() {
            // If the stop was dropped, no stage follows: the process serves until its end.
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
    async fn a_stop_drains_and_then_cuts() {
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
    async fn an_idle_stop_is_quick_a_stuck_one_ends() {
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
