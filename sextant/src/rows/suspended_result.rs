//! Results that wait for the next read of their client.
//!
//! A client may never request more of a result. The scan continues to run for [`SUSPENDED_RUNS`],
//! so that a client that reads steadily does not have to wait. After that it is parked: it keeps
//! its position and its epoch, and releases its permit for other scans. At last it is dropped
//! ([`cursor_idle`](crate::flow::ClientLimits::cursor_idle)).

use std::sync::{Arc, Mutex};
use std::time::Duration;

use proto::env::{Env, Task};
use proto::lock::lock;

use crate::flow::{Flow, Limit};

/// The time for which a scan runs while its client does not read: much longer than a client needs
/// to request the next rows.
pub(crate) const SUSPENDED_RUNS: Duration = Duration::from_secs(2);

/// A result that can be parked until the next read.
pub(crate) trait Park: Send + 'static {
    /// Releases permits and buffers until the next read.
    fn park(&mut self);
}

/// A result that waits for the next read.
pub(crate) struct SuspendedResult<T> {
    kept: Arc<Mutex<Option<T>>>,
    /// The task that parks the result after a time and drops it later, unless the task is dropped
    /// before.
    _parking: Task,
}

impl<T: Park> SuspendedResult<T> {
    pub(crate) fn new(reading: T, env: &Env, flow: &Arc<Flow>) -> Self {
        let kept = Arc::new(Mutex::new(Some(reading)));
        let (parked, flow) = (Arc::clone(&kept), Arc::clone(flow));
        let parking = env.spawn_request("park", async move {
            tokio::time::sleep(SUSPENDED_RUNS).await;
            if let Some(reading) = &mut *lock(&parked) {
                reading.park();
            }
            let Some(idle) = flow.limits.cursor_idle else { return };
            tokio::time::sleep(idle.saturating_sub(SUSPENDED_RUNS)).await;
            if lock(&parked).take().is_some() {
                flow.refusals.count(Limit::CursorIdle);
            }
        });
        Self { kept, _parking: parking }
    }

    /// Returns the result for the next read; `None` if it was dropped already.
    pub(crate) fn resume(self) -> Option<T> {
        lock(&self.kept).take()
    }
}
