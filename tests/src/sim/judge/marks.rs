//! The published epochs and their cuts, which must never change.
//!
//! A new watch sends the retained epochs. An epoch that is published and removed while the judge
//! reconnects is never received, so that a scan of this epoch cannot be judged.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt;
use proto::model::cut::Cut;
use proto::model::ids::{BucketId, Epoch};
use proto::rpc::api::{Directory, WatchKind, WatchMessage};
use tokio::time::sleep;

use crate::sim::client::workload::now;
use crate::sim::{Shared, violation};

/// The cuts of all epochs that were published.
pub type Marks = Arc<Mutex<BTreeMap<(BucketId, Epoch), Arc<Cut>>>>;

/// Records the published epochs until the future is dropped.
pub async fn watch(directory: Arc<dyn Directory>, marks: Marks, summary: Shared) {
    loop {
        if let Ok(mut messages) = directory.coordinator().watch(WatchKind::CatalogAndEpochs).await {
            while let Some(Ok(message)) = messages.next().await {
                if let WatchMessage::Epochs(epochs) = message {
                    let mut marks = marks.lock().expect("not poisoned");
                    for mark in epochs {
                        let of = (mark.bucket, mark.epoch);
                        let known = marks.insert(of, Arc::clone(&mark.cut));
                        if known.as_ref().is_some_and(|known| *known != mark.cut) {
                            let text = format!("epoch {} was used for two cuts", mark.epoch);
                            violation(&summary, text);
                        }
                        // Without a rollback each epoch follows the last number.
                        let rolled_back = mark.parent.0 + 1 < mark.epoch.0;
                        if known.is_none() && rolled_back {
                            let mut summary = summary.lock().expect("not poisoned");
                            summary.rollbacks += 1;
                            summary.rolled_back.push((mark.bucket, mark.epoch, now()));
                        }
                    }
                }
            }
        }
        sleep(Duration::from_millis(50)).await;
    }
}

/// Returns the cut of an epoch. Waits for a short time, because the watch may lag; `None` if the
/// epoch does not arrive.
pub async fn cut_of(marks: &Marks, bucket: BucketId, epoch: Epoch) -> Option<Arc<Cut>> {
    for _ in 0..600 {
        if let Some(cut) = marks.lock().expect("not poisoned").get(&(bucket, epoch)) {
            return Some(Arc::clone(cut));
        }
        sleep(Duration::from_millis(50)).await;
    }
    None
}
