//! The clean end of a process.
//!
//! Everything acknowledged is durable at any moment, so a process could simply end. But its clients would lose their sessions in mid-statement,
//! so it drains them first ([`crate::flow::Stop`]). And an indexer that ends so replays its commit log at the next start, which takes seconds, so
//! it writes its memory into fragments.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use proto::lock::lock;

use crate::flow::Flow;

/// Time limit of a clean end. Beyond it the next start replays the rest of the log.
const SHUTDOWN_WAIT: Duration = Duration::from_secs(10);

/// The work before the end of a process; cheap to clone.
#[derive(Clone, Default)]
pub struct Shutdown {
    indexers: Arc<Mutex<Vec<Arc<indexer::Indexer>>>>,
    clients: Arc<Mutex<Option<Arc<Flow>>>>,
}

impl Shutdown {
    /// Adds the clients of the ports, which are drained before anything stops.
    pub fn add_clients(&self, flow: &Arc<Flow>) {
        *lock(&self.clients) = Some(Arc::clone(flow));
    }

    /// Drains the clients, while all services go on.
    pub async fn drain(&self) {
        let flow = lock(&self.clients).take();
        if let Some(flow) = flow {
            flow.stop.run().await;
        }
    }

    /// Adds an indexer, which writes its memory into fragments before the process ends.
    pub fn add_indexer(&self, indexer: &Arc<indexer::Indexer>) {
        lock(&self.indexers).push(Arc::clone(indexer));
    }

    /// Flushes the indexers, for at most ten seconds.
    pub async fn run(self) {
        let indexers = std::mem::take(&mut *lock(&self.indexers));
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
