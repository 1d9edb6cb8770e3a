//! The clean end of a process.
//!
//! Everything acknowledged is durable at any moment, so a process could end at once. It still does
//! two things before: it drains its clients, which would otherwise lose their sessions during a
//! statement ([`crate::flow::Stop`]); and an indexer writes its memory into fragments, so that the
//! next start does not replay the commit log, which takes seconds.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use proto::lock::lock;

use crate::flow::Flow;

/// The time limit of a clean end. If it is exceeded, the next start replays the commit log.
const SHUTDOWN_WAIT: Duration = Duration::from_secs(10);

/// The work before the end of a process; cheap to clone.
#[derive(Clone, Default)]
pub struct Shutdown {
    indexers: Arc<Mutex<Vec<Arc<indexer::Indexer>>>>,
    clients: Arc<Mutex<Option<Arc<Flow>>>>,
}

impl Shutdown {
    /// Adds the clients of the ports, which are drained before the services stop.
    pub fn add_clients(&self, flow: &Arc<Flow>) {
        *lock(&self.clients) = Some(Arc::clone(flow));
    }

    /// Drains the clients, while all services continue.
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
