//! Results between two reads of their client.
//!
//! A client may never come back for the next piece of a result. For [`SUSPENDED_RUNS`] the scan keeps running, so that a
//! client that reads steadily is served without a pause. Then it is parked: it keeps its position and its epoch, and
//! releases its permit for other scans. In the end it is given up ([`cursor_idle`](crate::flow::ClientLimits::cursor_idle)).

use std::sync::{Arc, Mutex};
use std::time::Duration;

use proto::env::{Env, Task};
use proto::lock::lock;

use crate::flow::{Flow, Limit};

/// The time that a scan keeps running while its client does not read: many times longer than a client needs to request
/// the next rows.
pub(crate) const SUSPENDED_RUNS: Duration = Duration::from_secs(2);

/// A result that can be parked until the next read.
pub(crate) trait Park: Send + 'static {
    /// Releases permits and buffers.
    fn park(&mut self);
}

/// A result that waits for the next read.
pub(crate) struct SuspendedResult<T> {
    kept: Arc<Mutex<Option<T>>>,
    /// Parks the result after a while, and then gives it up; dropping the task prevents that.
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

    /// Takes the result for the next read; `None` if it was given up.
    pub(crate) fn resume(self) -> Option<T> {
        lock(&self.kept).take()
    }
}
