//! The task that runs the next step of each version.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use proto::model::catalog::Catalog;
use proto::model::data_set::VersionStage;
use proto::model::ids::BucketId;
use proto::rpc::command::{Command, Outcome, PartitionsLoaded, PartitionsLost, VersionFailed};
use proto::{Error, ErrorCode, Result};
use tokio::sync::watch;

use super::attempt::{Failure, LoadReport, look};
use super::load::load;
use super::plan::{StoredPart, Todo, Work, plan};
use super::propose::Proposer;
use super::recount::recount;
use super::recreation::make_anew;
use crate::projector::Projector;

/// The maximum number of versions, of different data sets, that are processed in parallel. Each has
/// some megabytes of rows in memory.
const AT_ONCE: usize = 2;
/// The first pause after a failure, and the longest one. A failed step may have read all files.
const PAUSES: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(30));

/// Loads and reports partitions, as the catalogs require. Runs until cancelled; safe to cancel at any await.
pub async fn load_versions(projector: Arc<Projector>) -> Infallible {
    let mut catalogs = projector.catalog.subscribe();
    let proposer = Proposer::new(&projector);
    let mut history = History::default();
    let mut running = FuturesUnordered::new();
    let mut busy = BTreeSet::new();
    loop {
        let catalog = catalogs.borrow_and_update().clone();
        for work in catalog.iter().flat_map(|catalog| next_work(&projector, catalog)) {
            let bucket = work.bucket;
            let has_room = busy.len() < AT_ONCE || matches!(work.todo, Todo::Lost(_));
            if has_room && !history.given_up.contains(&bucket) && busy.insert(bucket) {
                let pause = history.pause(bucket);
                let (projector, proposer) = (&projector, &proposer);
                running.push(async move {
                    tokio::time::sleep(pause).await;
                    (bucket, run(projector, proposer, work).await)
                });
            }
        }
        if let Some(catalog) = &catalog {
            history.keep(catalog);
            projector.loads.keep(catalog);
        }
        tokio::select! {
            biased;
            Some((bucket, ended)) = running.next(), if !running.is_empty() => {
                busy.remove(&bucket);
                if matches!(ended, StepOutcome::Done) {
                    projector.loads.remove(bucket);
                }
                history.note(bucket, ended);
            }
            () = changed(&mut catalogs) => {}
        }
    }
}

async fn changed(catalogs: &mut watch::Receiver<Option<Arc<Catalog>>>) {
    if catalogs.changed().await.is_err() {
        // The channel lives as long as the projector.
        std::future::pending::<()>().await;
    }
}

fn next_work(projector: &Projector, catalog: &Catalog) -> Vec<Work> {
    plan(catalog, projector.me(), |bucket| match projector.find(bucket) {
        _ if projector.is_foreign(bucket) => StoredPart::Nothing,
        Some(found) => StoredPart::Whole(found.whole()),
        None if projector.damaged.get(bucket).is_some() => StoredPart::Damaged,
        None => StoredPart::Nothing,
    })
}

/// The outcome of a step.
enum StepOutcome {
    /// The step is complete, or was not needed any more.
    Done,
    /// This process can do no more for the version.
    GaveUp,
    /// The step must be repeated after a pause.
    Again,
}

/// The failed steps of each version.
#[derive(Default)]
struct History {
    given_up: BTreeSet<BucketId>,
    failures: BTreeMap<BucketId, u32>,
}

impl History {
    fn note(&mut self, bucket: BucketId, ended: StepOutcome) {
        match ended {
            StepOutcome::Done => drop(self.failures.remove(&bucket)),
            StepOutcome::GaveUp => drop(self.given_up.insert(bucket)),
            StepOutcome::Again => *self.failures.entry(bucket).or_default() += 1,
        }
    }

    fn pause(&self, bucket: BucketId) -> Duration {
        let (min, max) = PAUSES;
        let doubled = |failures: &u32| min.saturating_mul(1 << (failures - 1).min(16)).min(max);
        self.failures.get(&bucket).map_or(Duration::ZERO, doubled)
    }

    /// Removes the versions that are not in the catalog.
    fn keep(&mut self, catalog: &Catalog) {
        self.given_up.retain(|bucket| catalog.buckets.contains_key(bucket));
        self.failures.retain(|bucket, _| catalog.buckets.contains_key(bucket));
    }
}

/// Runs one step for a version.
async fn run(projector: &Arc<Projector>, proposer: &Proposer, work: Work) -> StepOutcome {
    let Work { bucket, todo } = work;
    let told = match todo {
        Todo::Lost(partitions) => {
            tracing::warn!(%bucket, ?partitions, "this projector does not have these partitions any more");
            let node = projector.me();
            let command = Command::PartitionsLost(PartitionsLost { bucket, node, partitions });
            return told(projector, proposer, (bucket, command)).await;
        }
        Todo::MakeAnew => match make_anew(projector, bucket).await {
            Ok(()) => return StepOutcome::Done,
            Err(error) => Err(Failure::Here(error)),
        },
        Todo::Load(partitions) => match projector.find(bucket) {
            Some(found) => load(projector, &found, partitions).await,
            None => Err(Failure::Gone),
        },
        Todo::Tell(partitions) => match projector.find(bucket) {
            Some(found) => recount(projector, &found, &partitions).await,
            None => Err(Failure::Gone),
        },
    };
    match told {
        Ok(loaded) => tell(projector, proposer, (bucket, loaded)).await,
        Err(Failure::Gone) => StepOutcome::Done,
        Err(Failure::Files(error)) => fail(projector, proposer, (bucket, error)).await,
        Err(Failure::Differs(loaded)) => {
            differs(projector, proposer, (bucket, loaded)).await;
            StepOutcome::GaveUp
        }
        Err(Failure::Here(_)) if projector.find(bucket).is_none_or(|found| found.is_removed()) => {
            StepOutcome::Done
        }
        Err(Failure::Here(error)) => {
            tracing::warn!(%bucket, %error, "loading partitions failed here; retrying");
            projector.loads.trouble(bucket, &error);
            StepOutcome::Again
        }
    }
}

/// Reports the whole partitions of this projector to the coordinators.
async fn tell(
    projector: &Arc<Projector>,
    proposer: &Proposer,
    (bucket, LoadReport { contents, read }): (BucketId, LoadReport),
) -> StepOutcome {
    let (node, partitions) = (projector.me(), contents.into_iter().collect());
    let command = Command::PartitionsLoaded(PartitionsLoaded { bucket, node, partitions, read });
    told(projector, proposer, (bucket, command)).await
}

/// Reports contents that differ from those of another projector. The report ends a version that is
/// not current yet; a current version continues without this projector.
async fn differs(
    projector: &Arc<Projector>,
    proposer: &Proposer,
    (bucket, loaded): (BucketId, LoadReport),
) {
    let what = "partitions contain other documents here than at other projectors";
    let error = Error::new(ErrorCode::WrongState, what).with_hint(
        "all projectors must see the same files, and nothing may change them during a load",
    );
    tracing::warn!(%bucket, %error, "a version cannot be loaded");
    projector.loads.trouble(bucket, &error);
    if look(projector, bucket).is_ok_and(|known| known.stage == VersionStage::Loading) {
        tell(projector, proposer, (bucket, loaded)).await;
    }
}

/// Ends a version whose files cannot be loaded. A version that is current already continues without
/// this projector.
async fn fail(
    projector: &Arc<Projector>,
    proposer: &Proposer,
    (bucket, error): (BucketId, Error),
) -> StepOutcome {
    tracing::warn!(%bucket, %error, "a version cannot be loaded");
    projector.loads.trouble(bucket, &error);
    if look(projector, bucket).is_ok_and(|known| known.stage != VersionStage::Loading) {
        return StepOutcome::GaveUp;
    }
    let command = Command::VersionFailed(VersionFailed { bucket, node: projector.me(), error });
    told(projector, proposer, (bucket, command)).await;
    StepOutcome::GaveUp
}

/// Proposes a command until it is answered or the version is dropped, and then waits, with a time
/// limit, for the result in the catalog.
async fn told(
    projector: &Arc<Projector>,
    proposer: &Proposer,
    (bucket, command): (BucketId, Command),
) -> StepOutcome {
    let mut pause = PAUSES.0;
    loop {
        match proposer.propose(projector, command.clone()).await {
            Ok(Outcome::Refused(error)) => {
                tracing::warn!(%bucket, %error, "the coordinators refused what this projector says of a version");
                projector.loads.trouble(bucket, &error);
                return StepOutcome::GaveUp;
            }
            Ok(_) => {
                if let Err(error) = wait_for_catalog(projector, bucket).await {
                    tracing::debug!(%error, "a version has changed");
                }
                return StepOutcome::Done;
            }
            Err(error) => {
                tracing::debug!(%bucket, %error, "the coordinators do not answer; retrying")
            }
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(PAUSES.1);
        let catalog = projector.catalog.borrow().clone();
        if catalog.is_some_and(|catalog| catalog.version(bucket).is_none()) {
            return StepOutcome::Done;
        }
    }
}

/// Waits, with a time limit, until the catalog requires no more steps of this kind.
async fn wait_for_catalog(projector: &Arc<Projector>, bucket: BucketId) -> Result<()> {
    let is_settled = |catalog: &Catalog| {
        let work = next_work(projector, catalog);
        let asks = |work: &Work| {
            work.bucket == bucket && matches!(work.todo, Todo::Tell(_) | Todo::Lost(_))
        };
        !work.iter().any(asks)
    };
    let look =
        |catalog: Option<&Catalog>| catalog.filter(|catalog| is_settled(catalog)).map(|_| ());
    let missing =
        || Error::unavailable("the catalog does not show the partitions of this projector yet");
    projector.wait_for(look, missing).await
}
