//! The catalog and the epochs, followed from any member.
//!
//! A watch keeps no queue: it remembers what it has told and, when the state changed, tells the
//! difference. So a slow watcher holds up nobody and costs nothing; the catalogs that it missed in
//! between are skipped, the epochs are not, as long as they are kept. The catalog is told before the
//! epochs of the same state, so that nobody hears of an epoch of a bucket that he does not know.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use futures::stream;
use proto::Error;
use proto::api::{ResultStream, WatchMessage};
use proto::ids::{BucketId, Epoch};
use tokio::sync::watch;

use crate::replica::Replica;

struct Watch {
    replica: Arc<Replica>,
    changes: watch::Receiver<u64>,
    /// Closed when the member stops.
    alive: watch::Receiver<crate::raft::Role>,
    catalog_cas: Option<u64>,
    epochs: BTreeMap<BucketId, Epoch>,
    waiting: VecDeque<WatchMessage>,
}

/// A watch of a member, which ends with an error when the member stops.
pub fn watch(
    replica: Arc<Replica>,
    alive: watch::Receiver<crate::raft::Role>,
) -> ResultStream<WatchMessage> {
    let watch = Watch {
        changes: replica.changes(),
        replica,
        alive,
        catalog_cas: None,
        epochs: BTreeMap::new(),
        waiting: VecDeque::new(),
    };
    Box::pin(stream::unfold(Some(watch), |watch| async move {
        let mut watch = watch?;
        match watch.next().await {
            Ok(message) => Some((Ok(message), Some(watch))),
            Err(error) => Some((Err(error), None)),
        }
    }))
}

impl Watch {
    async fn next(&mut self) -> Result<WatchMessage, Error> {
        loop {
            if let Some(message) = self.waiting.pop_front() {
                return Ok(message);
            }
            self.gather();
            if self.waiting.is_empty() {
                self.wait().await?;
            }
        }
    }

    /// Waits for a change of the state. Changes of leadership are none of a watcher's business.
    async fn wait(&mut self) -> Result<(), Error> {
        let stopped = || Error::unavailable("this coordinator member has stopped");
        loop {
            tokio::select! {
                biased;
                changed = self.changes.changed() => return changed.map_err(|_| stopped()),
                alive = self.alive.changed() => alive.map_err(|_| stopped())?,
            }
        }
    }

    /// What the state has that was not told yet.
    fn gather(&mut self) {
        self.changes.mark_unchanged();
        let view = self.replica.view();
        if self.catalog_cas != Some(view.catalog.cas) {
            self.catalog_cas = Some(view.catalog.cas);
            self.waiting.push_back(WatchMessage::Catalog(view.catalog.clone()));
        }
        let mut marks = Vec::new();
        for (id, bucket) in view.state.buckets() {
            let told = self.epochs.entry(id).or_default();
            marks.extend(bucket.epochs.after(*told).cloned());
            *told = bucket.epochs.last().epoch;
        }
        self.epochs.retain(|bucket, _| view.state.bucket(*bucket).is_some());
        if !marks.is_empty() {
            self.waiting.push_back(WatchMessage::Epochs(marks));
        }
    }
}
