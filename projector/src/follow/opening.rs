//! Opens the embedded buckets that this projector leads.
//!
//! Such a bucket is not served at first, even if it is new: its directory may be an older copy,
//! or the disk may be new. The projector sends a command (`Command::OpenSource`) to the
//! coordinators, which compare the bucket's history with the last epoch. The command also names
//! the branches that the projector will begin. The projector stores these branches only after the
//! answer. So no branch begins in a bucket that another copy leads. If the process ends before
//! the answer, the next process sends other branches; no mutation was written on the first ones.
//! The answers have these effects:
//!
//! | answer | the bucket |
//! |---|---|
//! | opened | begins its branches, and is served |
//! | mutations are missing | stays closed; the error for callers names the loss, which is noted in the data directory with its epoch |
//! | mutations are missing, and an operator has accepted this loss (`sextant source recover --accept-loss`) | the command is repeated with the acceptance; the bucket is rolled back and served |
//! | a refusal that needs an operator | stays closed and returns the error to callers; the command is repeated |
//! | any other error | stays closed for now; the command is repeated |

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use proto::client::Retry;
use proto::model::catalog::Catalog;
use proto::model::copies::Copies;
use proto::model::history::{Branches, FailoverLogs};
use proto::model::ids::{BucketId, Epoch};
use proto::rpc::command::{Command, OpenSource, Outcome};
use proto::{Error, ErrorCode, Result};
use tokio::time::Instant;

use super::retry::{log_failure, new_retry};
use crate::projector::Projector;
use crate::source::KnownLoss;
use crate::source::registry::source_of_kind;
use crate::source::view::bucket::Bucket;

/// The interval at which the command is repeated for a bucket that has lost mutations. The answer
/// changes only after an operator has acted and restarted the projector.
const REFUSED_PAUSE: Duration = Duration::from_secs(30);

/// Opens the buckets of each new catalog that are not served yet. Runs until cancelled; safe to
/// cancel at any await.
pub async fn open_sources(projector: Arc<Projector>) -> Infallible {
    let mut catalogs = projector.catalog.subscribe();
    let mut roles = projector.roles.watch();
    let mut retry = new_retry();
    loop {
        roles.borrow_and_update();
        let catalog = catalogs.borrow_and_update().clone();
        let Some(catalog) = catalog else {
            wait_for_change(&mut catalogs).await;
            continue;
        };
        let mut asks_again = OpeningRetry::Never;
        for bucket in closed_buckets(&projector, &catalog) {
            asks_again = asks_again.max(open_and_report(&projector, &bucket).await);
        }
        if asks_again != OpeningRetry::Soon {
            retry.reset();
        }
        tokio::select! {
            biased;
            () = wait_for_change(&mut catalogs) => {}
            () = wait_for_role_change(&mut roles) => {}
            () = asks_again.pause(&mut retry) => {}
        }
    }
}

/// The time at which the command for a bucket is repeated, according to the last answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum OpeningRetry {
    /// The bucket is open.
    Never,
    /// After [`REFUSED_PAUSE`]: an operator must act, and then restarts the projector.
    Later,
    /// After a short pause: the coordinators could not answer.
    Soon,
}

impl OpeningRetry {
    async fn pause(self, retry: &mut Retry) {
        match self {
            Self::Never => std::future::pending().await,
            Self::Later => tokio::time::sleep(REFUSED_PAUSE).await,
            Self::Soon => retry.pause().await,
        }
    }
}

async fn wait_for_role_change(roles: &mut tokio::sync::watch::Receiver<u64>) {
    if roles.changed().await.is_err() {
        std::future::pending::<()>().await;
    }
}

async fn wait_for_change(catalogs: &mut tokio::sync::watch::Receiver<Option<Arc<Catalog>>>) {
    if catalogs.changed().await.is_err() {
        // The channel lives as long as the projector.
        std::future::pending::<()>().await;
    }
}

/// Returns the buckets of a catalog that this projector leads and does not serve yet.
fn closed_buckets(projector: &Projector, catalog: &Catalog) -> Vec<Arc<Bucket>> {
    let here = catalog.buckets.keys().filter_map(|bucket| projector.find(*bucket));
    here.filter(|bucket| bucket.is_closed() && projector.leads(bucket)).collect()
}

/// The answer of the coordinators to the command that opens a bucket.
enum OpeningAnswer {
    /// The bucket may be served, under this configuration and with these branches.
    Opened(Option<Copies>, Vec<Branches>),
    Lacks(KnownLoss, Error),
}

/// Sends the command that opens a bucket, and applies the answer. While the bucket is not served,
/// its callers get the error that explains why.
async fn open_and_report(projector: &Projector, bucket: &Arc<Bucket>) -> OpeningRetry {
    match request_opening(projector, bucket).await {
        Ok(OpeningAnswer::Opened(copies, branches)) => {
            match begin_leading(projector, bucket, copies, branches).await {
                Ok(()) => OpeningRetry::Never,
                Err(error) => {
                    log_failure("beginning a term", &error);
                    OpeningRetry::Soon
                }
            }
        }
        Ok(OpeningAnswer::Lacks(_, error)) => {
            if bucket.check_open().is_err_and(|known| known != error) {
                tracing::error!(%error, "a bucket is not served");
            }
            bucket.set_refusal(error);
            OpeningRetry::Later
        }
        Err(error) => {
            log_failure("opening a bucket", &error);
            if !error.is_retry() {
                bucket.set_refusal(error);
            }
            OpeningRetry::Soon
        }
    }
}

/// Begins to lead the bucket with these branches. Does nothing if another copy leads now.
async fn begin_leading(
    projector: &Projector,
    bucket: &Arc<Bucket>,
    copies: Option<Copies>,
    branches: Vec<Branches>,
) -> Result<()> {
    let (id, me) = (bucket.info.id, projector.node_id());
    let copies = copies.unwrap_or_else(|| Copies::single(me));
    projector.record_copies(id, &copies);
    projector
        .run_exclusively(Arc::clone(bucket), move |writer, bucket| {
            writer.begin_term(bucket, branches)
        })
        .await?;
    let newest = projector.copies_of(id).unwrap_or(copies);
    if !projector.leads(bucket) || !bucket.links.set_configuration(&newest, me, Instant::now()) {
        return Err(bucket.led_elsewhere_error(newest.leader));
    }
    if !bucket.open() {
        return Err(bucket.led_elsewhere_error(newest.leader));
    }
    projector.changed_buckets.add(id);
    Ok(())
}

/// Sends the command that opens a bucket. If an operator has accepted the bucket's loss of
/// mutations, sends it again with the acceptance.
async fn request_opening(projector: &Projector, bucket: &Bucket) -> Result<OpeningAnswer> {
    let id = bucket.info.id;
    let store = projector.store();
    let known = projector.env.blocking(move || store.losses()).await?.get(&id).copied();
    let (loss, error) = match send_open_command(projector, bucket, None).await? {
        OpeningAnswer::Lacks(loss, error) => (loss, error),
        opened => {
            record_loss(projector, id, known, None).await?;
            return Ok(opened);
        }
    };
    if known != Some(KnownLoss { is_accepted: true, ..loss }) {
        record_loss(projector, id, known, Some(loss)).await?;
        return Ok(OpeningAnswer::Lacks(loss, error));
    }
    tracing::warn!(lost = %error.message, "the loss is accepted: the bucket goes back to what is left");
    let answer = send_open_command(projector, bucket, Some(loss.epoch)).await?;
    if matches!(answer, OpeningAnswer::Opened(..)) {
        record_loss(projector, id, known, None).await?;
    }
    Ok(answer)
}

/// Returns the error for callers when a coordinator could not answer; it contains no details. A
/// coordinator whose disk fails stops, and another one answers the next command.
fn coordinator_error(error: Error) -> Error {
    match error.code {
        ErrorCode::Io | ErrorCode::Corrupt => {
            let what = format!("a coordinator could not answer: {}", error.message);
            Error::unavailable(what)
        }
        _ => error,
    }
}

/// Records a bucket's loss of mutations in the data directory, unless it is recorded already.
async fn record_loss(
    projector: &Projector,
    bucket: BucketId,
    known: Option<KnownLoss>,
    loss: Option<KnownLoss>,
) -> Result<()> {
    if known == loss {
        return Ok(());
    }
    let store = projector.store();
    projector.env.blocking(move || store.put_loss(bucket, loss)).await
}

/// Sends the command that opens a bucket to the coordinators. `accepted` is the epoch whose loss
/// an operator has accepted.
async fn send_open_command(
    projector: &Projector,
    bucket: &Bucket,
    accepted: Option<Epoch>,
) -> Result<OpeningAnswer> {
    let mut history = bucket.history();
    let known = history.logs.iter().map(|(_, branches)| branches.clone()).collect();
    let source = source_of_kind(bucket.info.source);
    let branches = source.begin(known, &history.durable, &*projector.env.random);
    history.logs = Arc::new(FailoverLogs::new(branches.clone()));
    let command = Command::OpenSource(OpenSource {
        bucket: bucket.info.id,
        projector: projector.node_id(),
        history: Box::new(history),
        accepted,
    });
    let answer = projector.directory.coordinator().propose(command.into()).await;
    match answer.map_err(coordinator_error)?.outcome {
        Outcome::Refused(error) => Err(error),
        Outcome::Lacks { epoch, error } => {
            Ok(OpeningAnswer::Lacks(KnownLoss { epoch, is_accepted: false }, error))
        }
        Outcome::Opened(copies) => Ok(OpeningAnswer::Opened(Some(copies), branches)),
        _ => Ok(OpeningAnswer::Opened(None, branches)),
    }
}
