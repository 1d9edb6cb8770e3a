//! The clean end of a process.
//!
//! Everything acknowledged is durable at any moment, so a process could simply end. But an indexer that ends so replays
//! its commit log at the next start, which takes seconds. So it writes its memory into fragments first.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use proto::lock::lock;

/// Time limit of a clean end. Beyond it the next start replays the rest of the log.
const SHUTDOWN_WAIT: Duration = Duration::from_secs(10);

/// The work before the end of a process; cheap to clone.
#[derive(Clone, Default)]
pub struct Shutdown(Arc<Mutex<Vec<Arc<indexer::Indexer>>>>);

impl Shutdown {
    /// Adds an indexer, which writes its memory into fragments before the process ends.
    pub fn add_indexer(&self, indexer: &Arc<indexer::Indexer>) {
        lock(&self.0).push(Arc::clone(indexer));
    }

    /// Flushes the indexers, for at most ten seconds.
    pub async fn run(self) {
        let indexers = std::mem::take(&mut *lock(&self.0));
        let flushes = indexers.iter().map(|indexer| async move {
            if let Err(error) = indexer.flush().await {
                tracing::warn!(%error, "an indexer could not flush at its end; its next start replays the log");
            }
        });
        let all = futures::future::join_all(flushes);
        if tokio::time::timeout(SHUTDOWN_WAIT, all).await.is_err() {
            tracing::warn!(
                "the flush at the end took too long; the next start replays the rest of the log"
            );
        }
    }
}
