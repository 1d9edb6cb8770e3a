//! The task that maintains the store: flushes, merges, and the removal of purged segments. It
//! does one piece of work after another, off the async threads.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;

use crate::projector::Projector;

/// The pause when no maintenance is needed. A bulk load fills a memtable in about a second.
const PAUSE: Duration = Duration::from_millis(200);
/// The pause after a failure.
const RETRY: Duration = Duration::from_secs(1);

/// Maintains the store until cancelled, and notifies `failed` when the store has failed. A
/// cancelled piece of work is completed anyway, or is done again later.
pub(crate) async fn maintain(projector: Arc<Projector>, failed: Arc<Notify>) -> Infallible {
    loop {
        let store = projector.store();
        let pause = match projector.env.blocking(move || store.maintain()).await {
            Ok(true) => continue,
            Ok(false) => PAUSE,
            Err(error) => {
                tracing::warn!(%error, "the maintenance of the documents failed; retrying");
                let store = projector.store();
                if projector.env.blocking(move || store.has_failed()).await {
                    failed.notify_one();
                }
                RETRY
            }
        };
        tokio::time::sleep(pause).await;
    }
}
