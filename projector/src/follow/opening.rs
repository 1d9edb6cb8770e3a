//! Opens the buckets of which this projector has the only copy.
//!
//! Such a bucket is closed at first, also a new one: its directory may be an older copy, or the disk may be a new one. The
//! projector asks the coordinators with a command (`Command::OpenSource`), which compares its history with the last epoch:
//!
//! | answer | the bucket |
//! |---|---|
//! | done | is served |
//! | `Corrupt`: it lacks something, nobody has accepted that | stays closed, and tells callers what it lacks |
//! | the same, accepted by an operator (`sextant source recover --accept-loss`) | asks again with that; the bucket is rolled back and served |
//! | anything else | stays closed for now; asked again |
//!
//! The acceptance is in the data directory. It is used up when all buckets are open.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use proto::client::Retry;
use proto::model::catalog::Catalog;
use proto::rpc::command::{Command, CommandRequest, Outcome};
use proto::{ErrorCode, Result};

use super::retry::{new_retry, report};
use crate::projector::Projector;
use crate::source::bucket::Bucket;

/// The interval of questions about a bucket that lacks something. Meanwhile only an operator changes anything, who restarts the
/// projector.
const REFUSED_PAUSE: Duration = Duration::from_secs(5);

/// Opens each closed bucket of the catalogs that come. Runs until cancelled; safe to cancel at any await.
pub async fn open_sources(projector: Arc<Projector>) -> Infallible {
    let mut catalogs = projector.catalog.subscribe();
    let mut retry = new_retry();
    loop {
        let catalog = catalogs.borrow_and_update().clone();
        let Some(catalog) = catalog else {
            wait_for_change(&mut catalogs).await;
            continue;
        };
        let closed = closed(&projector, &catalog);
        let mut failed = 0;
        for bucket in &closed {
            failed += usize::from(!open_reported(&projector, bucket).await);
        }
        if failed == 0 {
            if let Err(error) = forget_acceptance(&projector).await {
                report("forgetting an accepted loss", &error);
            }
            retry.reset();
            wait_for_change(&mut catalogs).await;
        } else {
            pause(&closed, &mut retry).await;
        }
    }
}

async fn wait_for_change(catalogs: &mut tokio::sync::watch::Receiver<Option<Arc<Catalog>>>) {
    if catalogs.changed().await.is_err() {
        // The channel lives as long as the projector.
        std::future::pending::<()>().await;
    }
}

/// Waits before the next questions: long if every open question needs an operator.
async fn pause(closed: &[Arc<Bucket>], retry: &mut Retry) {
    let waits = |bucket: &Arc<Bucket>| bucket.check_open().is_err_and(|why| why.is_retry());
    match closed.iter().any(waits) {
        true => retry.pause().await,
        false => tokio::time::sleep(REFUSED_PAUSE).await,
    }
}

/// The closed buckets of a catalog.
fn closed(projector: &Projector, catalog: &Catalog) -> Vec<Arc<Bucket>> {
    let here = catalog.buckets.keys().filter_map(|bucket| projector.find(*bucket));
    here.filter(|bucket| bucket.check_open().is_err()).collect()
}

/// Asks for a bucket, and tells its callers why it stays closed. True if it is open now.
async fn open_reported(projector: &Projector, bucket: &Arc<Bucket>) -> bool {
    let error = match open(projector, bucket).await {
        Ok(()) => {
            bucket.set_closed(None);
            projector.changed_buckets.add(bucket.info.id);
            return true;
        }
        Err(error) => error,
    };
    match error.code == ErrorCode::Corrupt {
        true => {
            if bucket.check_open().is_err_and(|known| known != error) {
                tracing::error!(%error, "a bucket is not served");
            }
            bucket.set_closed(Some(error));
        }
        false => report("opening a bucket", &error),
    }
    false
}

async fn open(projector: &Projector, bucket: &Bucket) -> Result<()> {
    let refused = match ask(projector, bucket, false).await {
        Err(error) if error.code == ErrorCode::Corrupt => error,
        answer => return answer,
    };
    let store = projector.store();
    if !projector.env.blocking(move || store.accepts_loss()).await? {
        return Err(refused);
    }
    tracing::warn!(lost = %refused.message, "the loss is accepted: the bucket goes back to what is left");
    ask(projector, bucket, true).await
}

async fn ask(projector: &Projector, bucket: &Bucket, accepts_loss: bool) -> Result<()> {
    let command = Command::OpenSource {
        bucket: bucket.info.id,
        projector: projector.config.node.id,
        history: Box::new(bucket.history()),
        accepts_loss,
    };
    let request = CommandRequest { request: None, command };
    match projector.directory.coordinator().propose(request).await? {
        Outcome::Refused(error) => Err(error),
        _ => Ok(()),
    }
}

/// Forgets that an operator has accepted a loss, which later losses must not find.
async fn forget_acceptance(projector: &Projector) -> Result<()> {
    let store = projector.store();
    let forget = move || match store.accepts_loss()? {
        true => store.put_accepts_loss(false),
        false => Ok(()),
    };
    projector.env.blocking(forget).await
}
