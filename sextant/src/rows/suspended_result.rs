//! Results that wait for the next read of their client.
//!
//! A client may never request the rest of a result. The scan of the result continues to run for
//! [`SUSPENDED_RUNS`], so that a client that reads steadily does not have to wait. After that the
//! scan is parked: its position and its epoch remain, but its permit is released for other scans.
//! If the client still does not read, the result is dropped
//! ([`cursor_idle`](crate::flow::ClientLimits::cursor_idle)).

use std::sync::{Arc, Mutex};
use std::time::Duration;

use proto::env::{Env, Task};
use proto::lock::lock;

use crate::flow::{ClientCapacity, Limit};

/// The time for which a scan runs while its client does not read. It is much longer than a client
/// needs to request the next rows.
pub(crate) const SUSPENDED_RUNS: Duration = Duration::from_secs(2);

/// A result that can be parked until the next read.
pub(crate) trait Park: Send + 'static {
    /// Releases permits and buffers until the next read.
    fn park(&mut self);
}

/// A result that waits for the next read.
pub(crate) struct SuspendedResult<T> {
    kept: Arc<Mutex<Option<T>>>,
    /// The task that first parks the result and later drops it. If the task is dropped, neither
    /// happens.
    _parking: Task,
}

impl<T: Park> SuspendedResult<T> {
    /// Returns a result that waits, and starts the time until it is parked.
    pub(crate) fn new(reading: T, env: &Env, flow: &Arc<ClientCapacity>) -> Self {
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

    /// Returns the result for the next read; `None` if it was already dropped.
    pub(crate) fn resume(self) -> Option<T> {
        lock(&self.kept).take()
    }
}
