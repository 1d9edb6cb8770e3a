//! What is read piece by piece, between two pieces.
//!
//! Nobody knows whether a client comes back for the next piece. For [`SUSPENDED_RUNS`] the scan keeps all that it
//! has, so that a client which takes its rows steadily is served without a pause; then it is parked: it keeps its
//! place and its epoch, and others get its place at the router.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use proto::env::{Env, Task};
use proto::{Error, Result};

/// How long a scan that nobody reads keeps running: many times what a client needs to ask for the next rows.
pub(crate) const SUSPENDED_RUNS: Duration = Duration::from_secs(2);

/// Something that can be laid aside until it is read on.
pub(crate) trait Park: Send + 'static {
    /// Lets go of what others may want.
    fn park(&mut self);
}

/// Something that waits for being read on.
pub(crate) struct Suspended<T> {
    kept: Arc<Mutex<Option<T>>>,
    /// Parks it after a while. Cancelled: it runs on.
    _parking: Task,
}

impl<T: Park> Suspended<T> {
    pub(crate) fn new(reading: T, env: &Env) -> Self {
        let kept = Arc::new(Mutex::new(Some(reading)));
        let parked = Arc::clone(&kept);
        let parking = env.spawn("park", async move {
            tokio::time::sleep(SUSPENDED_RUNS).await;
            if let Some(reading) = &mut *parked.lock().unwrap_or_else(PoisonError::into_inner) {
                reading.park();
            }
        });
        Self { kept, _parking: parking }
    }

    /// It is read on.
    pub(crate) fn resume(self) -> Result<T> {
        let reading = self.kept.lock().unwrap_or_else(PoisonError::into_inner).take();
        reading.ok_or_else(|| Error::internal("a suspended scan without its rows"))
    }
}
