//! The task that loads the versions of data sets: runs the next step of each version, as
//! [`super::plan`] determines it.

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

use super::attempt::{LoadFailure, LoadReport, current_version};
use super::load::load;
use super::plan::{NextStep, StoredPart, Work, plan};
use super::propose::Proposer;
use super::recount::recount;
use super::recreation::recreate_empty;
use crate::projector::Projector;

/// The maximum number of versions, each of another data set, for which steps run in parallel.
/// Each has some megabytes of rows in memory.
const AT_ONCE: usize = 2;
/// The pause after the first failed step of a version, and the longest pause. A failed step may
/// have read all files.
const PAUSES: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(30));

/// Loads and reports the partitions that the catalogs assign to this projector. Runs until
/// cancelled; safe to cancel at any await.
pub async fn load_versions(projector: Arc<Projector>) -> Infallible {
    let mut catalogs = projector.catalog.subscribe();
    let proposer = Proposer::new(&projector);
    let mut history = FailedSteps::default();
    let mut running = FuturesUnordered::new();
    let mut busy = BTreeSet::new();
    loop {
        let catalog = catalogs.borrow_and_update().clone();
        for work in catalog.iter().flat_map(|catalog| next_work(&projector, catalog)) {
            let bucket = work.bucket;
            let has_room = busy.len() < AT_ONCE || matches!(work.todo, NextStep::Lost(_));
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
            history.retain_listed(catalog);
            projector.loads.retain_listed(catalog);
        }
        tokio::select! {
            biased;
            Some((bucket, ended)) = running.next(), if !running.is_empty() => {
                busy.remove(&bucket);
                if matches!(ended, StepOutcome::Done) {
                    projector.loads.remove(bucket);
                }
                history.record_outcome(bucket, ended);
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

/// Returns the steps that this projector must take under a catalog.
fn next_work(projector: &Projector, catalog: &Catalog) -> Vec<Work> {
    plan(catalog, projector.node_id(), |bucket| match projector.find(bucket) {
        _ if projector.is_foreign(bucket) => StoredPart::Nothing,
        Some(found) => StoredPart::Whole(found.whole_vbuckets()),
        None if projector.damaged.get(bucket).is_some() => StoredPart::Damaged,
        None => StoredPart::Nothing,
    })
}

/// The outcome of a step for a version.
enum StepOutcome {
    /// The step is complete, or was not needed any more.
    Done,
    /// This process can do no more for the version.
    GaveUp,
    /// The step must be repeated after a pause.
    Again,
}

/// The steps that have failed, by version.
#[derive(Default)]
struct FailedSteps {
    given_up: BTreeSet<BucketId>,
    failures: BTreeMap<BucketId, u32>,
}

impl FailedSteps {
    fn record_outcome(&mut self, bucket: BucketId, ended: StepOutcome) {
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

    /// Removes the records of versions that are not in the catalog.
    fn retain_listed(&mut self, catalog: &Catalog) {
        self.given_up.retain(|bucket| catalog.buckets.contains_key(bucket));
        self.failures.retain(|bucket, _| catalog.buckets.contains_key(bucket));
    }
}

/// Runs one step for a version.
async fn run(projector: &Arc<Projector>, proposer: &Proposer, work: Work) -> StepOutcome {
    let Work { bucket, todo } = work;
    let told = match todo {
        NextStep::Lost(partitions) => {
            tracing::warn!(%bucket, ?partitions, "this projector does not have these partitions any more");
            let node = projector.node_id();
            let command = Command::PartitionsLost(PartitionsLost { bucket, node, partitions });
            return send_command(projector, proposer, (bucket, command)).await;
        }
        NextStep::MakeAnew => match recreate_empty(projector, bucket).await {
            Ok(()) => return StepOutcome::Done,
            Err(error) => Err(LoadFailure::Here(error)),
        },
        NextStep::Load(partitions) => match projector.find(bucket) {
            Some(found) => load(projector, &found, partitions).await,
            None => Err(LoadFailure::Gone),
        },
        NextStep::Tell(partitions) => match projector.find(bucket) {
            Some(found) => recount(projector, &found, &partitions).await,
            None => Err(LoadFailure::Gone),
        },
    };
    match told {
        Ok(loaded) => report_partitions(projector, proposer, (bucket, loaded)).await,
        Err(LoadFailure::Gone) => StepOutcome::Done,
        Err(LoadFailure::Files(error)) => {
            report_failure(projector, proposer, (bucket, error)).await
        }
        Err(LoadFailure::Differs(loaded)) => {
            report_difference(projector, proposer, (bucket, loaded)).await;
            StepOutcome::GaveUp
        }
        Err(LoadFailure::Here(_))
            if projector.find(bucket).is_none_or(|found| found.is_removed()) =>
        {
            StepOutcome::Done
        }
        Err(LoadFailure::Here(error)) => {
            tracing::warn!(%bucket, %error, "loading partitions failed here; retrying");
            projector.loads.record_error(bucket, &error);
            StepOutcome::Again
        }
    }
}

/// Reports to the coordinators which partitions this projector has completely stored.
async fn report_partitions(
    projector: &Arc<Projector>,
    proposer: &Proposer,
    (bucket, LoadReport { contents, read }): (BucketId, LoadReport),
) -> StepOutcome {
    let (node, partitions) = (projector.node_id(), contents.into_iter().collect());
    let command = Command::PartitionsLoaded(PartitionsLoaded { bucket, node, partitions, read });
    send_command(projector, proposer, (bucket, command)).await
}

/// Reports partitions whose contents differ from those of another projector. The report ends a
/// version that is not current yet; a current version continues without this projector.
async fn report_difference(
    projector: &Arc<Projector>,
    proposer: &Proposer,
    (bucket, loaded): (BucketId, LoadReport),
) {
    let what = "partitions contain other documents here than at other projectors";
    let error = Error::new(ErrorCode::WrongState, what).with_hint(
        "all projectors must see the same files, and nothing may change them during a load",
    );
    tracing::warn!(%bucket, %error, "a version cannot be loaded");
    projector.loads.record_error(bucket, &error);
    if current_version(projector, bucket).is_ok_and(|known| known.stage == VersionStage::Loading) {
        report_partitions(projector, proposer, (bucket, loaded)).await;
    }
}

/// Ends a version whose files cannot be loaded. A version that is current already continues without
/// this projector.
async fn report_failure(
    projector: &Arc<Projector>,
    proposer: &Proposer,
    (bucket, error): (BucketId, Error),
) -> StepOutcome {
    tracing::warn!(%bucket, %error, "a version cannot be loaded");
    projector.loads.record_error(bucket, &error);
    if current_version(projector, bucket).is_ok_and(|known| known.stage != VersionStage::Loading) {
        return StepOutcome::GaveUp;
    }
    let command =
        Command::VersionFailed(VersionFailed { bucket, node: projector.node_id(), error });
    send_command(projector, proposer, (bucket, command)).await;
    StepOutcome::GaveUp
}

/// Sends a command until it is answered or the version is dropped. Then waits, with a time limit,
/// until the catalog shows the result.
async fn send_command(
    projector: &Arc<Projector>,
    proposer: &Proposer,
    (bucket, command): (BucketId, Command),
) -> StepOutcome {
    let mut pause = PAUSES.0;
    loop {
        match proposer.propose(projector, command.clone()).await {
            Ok(Outcome::Refused(error)) => {
                tracing::warn!(%bucket, %error, "the coordinators refused what this projector says of a version");
                projector.loads.record_error(bucket, &error);
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

/// Waits, with a time limit, until the catalog shows the result of a step, so that the step is
/// not needed any more.
async fn wait_for_catalog(projector: &Arc<Projector>, bucket: BucketId) -> Result<()> {
    let is_settled = |catalog: &Catalog| {
        let work = next_work(projector, catalog);
        let asks = |work: &Work| {
            work.bucket == bucket && matches!(work.todo, NextStep::Tell(_) | NextStep::Lost(_))
        };
        !work.iter().any(asks)
    };
    let look =
        |catalog: Option<&Catalog>| catalog.filter(|catalog| is_settled(catalog)).map(|_| ());
    let missing =
        || Error::unavailable("the catalog does not show the partitions of this projector yet");
    projector.wait_for(look, missing).await
}
