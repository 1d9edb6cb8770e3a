//! Opens the embedded buckets that this projector leads.
//!
//! Such a bucket is closed at first, even a new one: its directory may be an older copy, or the
//! disk may be new. The projector sends a command (`Command::OpenSource`) to the coordinators,
//! which compare its history with the last epoch. The command contains the branches that the
//! projector will begin, and the projector stores them when it has the answer. So no branch begins
//! in a bucket that another copy leads. If the process ends in between, the next process sends
//! other branches; no mutation was written on the first ones:
//!
//! | answer | the bucket |
//! |---|---|
//! | opened | begins its branches, and is served |
//! | mutations are missing | stays closed; the error for callers names the loss, which is noted in the data directory with its epoch |
//! | mutations are missing, and an operator has accepted this loss (`sextant source recover --accept-loss`) | the command is repeated with the acceptance; the bucket is rolled back and served |
//! | a refusal that needs an operator | stays closed and returns the error to callers; the command is repeated |
//! | anything else | stays closed for now; the command is repeated |

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

use super::retry::{new_retry, report};
use crate::projector::Projector;
use crate::source::KnownLoss;
use crate::source::registry::source_of_kind;
use crate::source::view::bucket::Bucket;

/// The interval of commands for a bucket that has lost mutations. Only an operator can change that,
/// by a restart of the projector.
const REFUSED_PAUSE: Duration = Duration::from_secs(30);

/// Opens each closed bucket of the catalogs that arrive. Runs until cancelled; safe to cancel at
/// any await.
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
        let mut asks_again = AsksAgain::Never;
        for bucket in closed(&projector, &catalog) {
            asks_again = asks_again.max(open_reported(&projector, &bucket).await);
        }
        if asks_again != AsksAgain::Soon {
            retry.reset();
        }
        tokio::select! {
            biased;
            () = wait_for_change(&mut catalogs) => {}
            () = changed(&mut roles) => {}
            () = asks_again.pause(&mut retry) => {}
        }
    }
}

/// The time at which the command for a bucket is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum AsksAgain {
    /// The bucket is open.
    Never,
    /// After [`REFUSED_PAUSE`]: an operator must act, and then restarts the projector.
    Later,
    /// After a short pause: the coordinators could not answer.
    Soon,
}

impl AsksAgain {
    async fn pause(self, retry: &mut Retry) {
        match self {
            Self::Never => std::future::pending().await,
            Self::Later => tokio::time::sleep(REFUSED_PAUSE).await,
            Self::Soon => retry.pause().await,
        }
    }
}

async fn changed(roles: &mut tokio::sync::watch::Receiver<u64>) {
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

/// Returns the closed buckets of a catalog.
fn closed(projector: &Projector, catalog: &Catalog) -> Vec<Arc<Bucket>> {
    let here = catalog.buckets.keys().filter_map(|bucket| projector.find(*bucket));
    here.filter(|bucket| bucket.is_closed() && projector.leads(bucket)).collect()
}

/// The answer of the coordinators.
enum Answer {
    /// The bucket may be served, under this configuration and with these branches.
    Opened(Option<Copies>, Vec<Branches>),
    Lacks(KnownLoss, Error),
}

/// Sends the command for a bucket, and sets the error for its callers while it stays closed.
async fn open_reported(projector: &Projector, bucket: &Arc<Bucket>) -> AsksAgain {
    match open(projector, bucket).await {
        Ok(Answer::Opened(copies, branches)) => {
            match begin(projector, bucket, copies, branches).await {
                Ok(()) => AsksAgain::Never,
                Err(error) => {
                    report("beginning a term", &error);
                    AsksAgain::Soon
                }
            }
        }
        Ok(Answer::Lacks(_, error)) => {
            if bucket.check_open().is_err_and(|known| known != error) {
                tracing::error!(%error, "a bucket is not served");
            }
            bucket.refuse(error);
            AsksAgain::Later
        }
        Err(error) => {
            report("opening a bucket", &error);
            if !error.is_retry() {
                bucket.refuse(error);
            }
            AsksAgain::Soon
        }
    }
}

/// Begins to lead the bucket; does nothing if another copy leads by now.
async fn begin(
    projector: &Projector,
    bucket: &Arc<Bucket>,
    copies: Option<Copies>,
    branches: Vec<Branches>,
) -> Result<()> {
    let (id, me) = (bucket.info.id, projector.me());
    let copies = copies.unwrap_or_else(|| Copies::single(me));
    projector.learn_copies(id, &copies);
    projector
        .exclusively(Arc::clone(bucket), move |writer, bucket| writer.begin_term(bucket, branches))
        .await?;
    let newest = projector.copies_of(id).unwrap_or(copies);
    if !projector.leads(bucket) || !bucket.links.lead(&newest, me, Instant::now()) {
        return Err(bucket.led_elsewhere(newest.leader));
    }
    if !bucket.open() {
        return Err(bucket.led_elsewhere(newest.leader));
    }
    projector.changed_buckets.add(id);
    Ok(())
}

async fn open(projector: &Projector, bucket: &Bucket) -> Result<Answer> {
    let id = bucket.info.id;
    let store = projector.store();
    let known = projector.env.blocking(move || store.losses()).await?.get(&id).copied();
    let (loss, error) = match ask(projector, bucket, None).await? {
        Answer::Lacks(loss, error) => (loss, error),
        opened => {
            note(projector, id, known, None).await?;
            return Ok(opened);
        }
    };
    if known != Some(KnownLoss { is_accepted: true, ..loss }) {
        note(projector, id, known, Some(loss)).await?;
        return Ok(Answer::Lacks(loss, error));
    }
    tracing::warn!(lost = %error.message, "the loss is accepted: the bucket goes back to what is left");
    let answer = ask(projector, bucket, Some(loss.epoch)).await?;
    if matches!(answer, Answer::Opened(..)) {
        note(projector, id, known, None).await?;
    }
    Ok(answer)
}

/// Returns the error of a coordinator that could not answer, without details for callers. A
/// coordinator whose disk fails stops, and another one answers the next command.
fn of_member(error: Error) -> Error {
    match error.code {
        ErrorCode::Io | ErrorCode::Corrupt => {
            let what = format!("a coordinator could not answer: {}", error.message);
            Error::unavailable(what)
        }
        _ => error,
    }
}

/// Records a loss in the data directory, unless it is recorded already.
async fn note(
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

async fn ask(projector: &Projector, bucket: &Bucket, accepted: Option<Epoch>) -> Result<Answer> {
    let mut history = bucket.history();
    let known = history.logs.iter().map(|(_, branches)| branches.clone()).collect();
    let source = source_of_kind(bucket.info.source);
    let branches = source.begin(known, &history.durable, &*projector.env.random);
    history.logs = Arc::new(FailoverLogs::new(branches.clone()));
    let command = Command::OpenSource(OpenSource {
        bucket: bucket.info.id,
        projector: projector.me(),
        history: Box::new(history),
        accepted,
    });
    let answer = projector.directory.coordinator().propose(command.into()).await;
    match answer.map_err(of_member)?.outcome {
        Outcome::Refused(error) => Err(error),
        Outcome::Lacks { epoch, error } => {
            Ok(Answer::Lacks(KnownLoss { epoch, is_accepted: false }, error))
        }
        Outcome::Opened(copies) => Ok(Answer::Opened(Some(copies), branches)),
        _ => Ok(Answer::Opened(None, branches)),
    }
}
