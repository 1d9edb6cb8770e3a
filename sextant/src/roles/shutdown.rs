//! The clean end of a process.
//!
//! Everything that was acknowledged is durable, so a process could end at once. Two steps come
//! first. The process drains its clients, which would otherwise lose their sessions during a
//! statement ([`crate::flow::Stop`]). Then an indexer writes its memory into fragments; otherwise
//! the next start would replay the commit log, which takes seconds.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use proto::lock::lock;

use crate::flow::ClientCapacity;

/// The time limit of the clean end. After it, the process ends anyway, and the next start replays
/// the commit log.
const SHUTDOWN_WAIT: Duration = Duration::from_secs(10);

/// The work that is necessary before the end of a process. A clone is cheap and shares the work.
#[derive(Clone, Default)]
pub struct Shutdown {
    indexers: Arc<Mutex<Vec<Arc<indexer::Indexer>>>>,
    clients: Arc<Mutex<Option<Arc<ClientCapacity>>>>,
}

impl Shutdown {
    /// Adds the clients of the ports. They are drained before the services stop.
    pub fn add_clients(&self, flow: &Arc<ClientCapacity>) {
        *lock(&self.clients) = Some(Arc::clone(flow));
    }

    /// Drains the clients. Meanwhile all services continue.
    pub async fn drain(&self) {
        let flow = lock(&self.clients).take();
        if let Some(flow) = flow {
            flow.stop.run().await;
        }
    }

    /// Adds an indexer. It writes its memory into fragments before the process ends.
    pub fn add_indexer(&self, indexer: &Arc<indexer::Indexer>) {
        lock(&self.indexers).push(Arc::clone(indexer));
    }

    /// Makes the indexers write their memory into fragments, for at most ten seconds.
    pub async fn flush_indexers(self) {
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
