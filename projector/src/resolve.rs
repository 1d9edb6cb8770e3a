//! Ends joint commits whose session has ended ([`proto::model::joint`] explains them).
//!
//! - A transaction that has been prepared for a while asks the bucket that decides. If that bucket was dropped, the others decide together:
//!   it is committed if all of them have prepared or committed it, since its session may have learned that it was.
//! - For a joint commit that has been open for a while, its other buckets are checked: a bucket that has only prepared it gets the outcome,
//!   and a bucket that has lost its part is no longer waited for.
//!
//! All steps can be repeated, and are repeated while a bucket does not answer.
//!
//! A deciding bucket that does not know the transaction answers that it never commits (presumed abort). It remembers the number, so that a
//! late call does not begin the transaction.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt;
use futures::stream;
use proto::client::source::source_of;
use proto::lock::lock;
use proto::model::ids::{BucketId, TransactionId};
use proto::model::joint::{JointCommit, Prepared};
use proto::plant::{self, Plant};
use proto::rpc::api::{Decision, ProjectorApi, TransactionFate};
use proto::{Error, Result};
use tokio::time::timeout;

use crate::projector::Projector;
use crate::source::view::bucket::Bucket;

/// The pause between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// A session ends what it has prepared sooner than this.
const PREPARED_AFTER: Duration = Duration::from_secs(1);
/// The age from which an open joint commit is checked; its epoch is usually published sooner.
const OPEN_AFTER: Duration = Duration::from_secs(2);
/// The time limit of a question.
const ANSWER_WAIT: Duration = Duration::from_secs(2);
/// Questions at once.
const ASKED_MAX: usize = 16;
/// Open joint commits of a bucket that are checked at once; the others follow later.
const OPEN_MAX: usize = 64;

/// The answer of another bucket about a transaction.
enum BucketAnswer {
    /// The fate of the transaction in the bucket.
    Fate(TransactionFate),
    /// The bucket was dropped.
    Dropped,
    /// The bucket does not answer.
    Silent,
}

/// Looks at the joint commits of all buckets until it is cancelled; safe to cancel at any await.
pub(crate) async fn end_joint_commits(projector: Arc<Projector>) -> Infallible {
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let buckets = projector.bucket_ids().into_iter().filter_map(|id| projector.find(id));
        let led = buckets.filter(|bucket| bucket.has_joint() && bucket.is_led());
        let (mut all_prepared, mut all_open) = (Vec::new(), Vec::new());
        for bucket in led.filter(|bucket| bucket.check_open().is_ok()) {
            let (prepared, open) = bucket.old_joint(PREPARED_AFTER, OPEN_AFTER);
            all_prepared.extend(prepared.into_iter().map(|one| (Arc::clone(&bucket), one)));
            let open = open.into_iter().take(OPEN_MAX);
            all_open.extend(open.map(|one| (Arc::clone(&bucket), one)));
        }
        let pass = &Pass { projector: Arc::clone(&projector), silent: Mutex::default() };
        // Prepared transactions hold documents, so they come first.
        stream::iter(all_prepared)
            .for_each_concurrent(ASKED_MAX, |(bucket, one)| async move {
                pass.end_prepared(&bucket, one).await;
            })
            .await;
        stream::iter(all_open)
            .for_each_concurrent(ASKED_MAX, |(bucket, one)| async move {
                pass.look_after(&bucket, one).await;
            })
            .await;
    }
}

/// One pass over all late transactions.
struct Pass {
    projector: Arc<Projector>,
    /// The buckets that have not answered, and are not queried again in this pass.
    silent: Mutex<BTreeSet<BucketId>>,
}

impl Pass {
    async fn end_prepared(&self, bucket: &Bucket, prepared: Arc<Prepared>) {
        let transaction = prepared.transaction;
        let Some(decider) = prepared.decider() else { return };
        let decision = match self.fate_in(decider, transaction).await {
            BucketAnswer::Fate(TransactionFate::Committed { participants, .. })
                if !plant::is(Plant::RolledBackDecided) =>
            {
                Decision::Commit { participants }
            }
            BucketAnswer::Fate(TransactionFate::Committed { .. } | TransactionFate::Unknown) => {
                Decision::RollBack
            }
            BucketAnswer::Fate(_) | BucketAnswer::Silent => return,
            BucketAnswer::Dropped => match self.without_decider(bucket.info.id, &prepared).await {
                Some(decision) => decision,
                None => return,
            },
        };
        let commits = matches!(decision, Decision::Commit { .. });
        tracing::info!(bucket = %bucket.info.name, %transaction, commits, "a prepared transaction ends without its session");
        note(bucket, transaction, self.tell(bucket.info.id, transaction, decision).await);
    }

    /// The outcome of a transaction whose deciding bucket was dropped; `None` while it is not known.
    async fn without_decider(&self, bucket: BucketId, prepared: &Prepared) -> Option<Decision> {
        let (mut left, mut is_open, mut is_unknown) = (vec![bucket], false, false);
        for other in prepared.participants.iter().filter(|other| **other != bucket) {
            match self.fate_in(*other, prepared.transaction).await {
                // This answer counts, whatever the other buckets answer.
                BucketAnswer::Fate(TransactionFate::Committed { participants, .. }) => {
                    return Some(Decision::Commit { participants });
                }
                BucketAnswer::Fate(TransactionFate::Prepared) => left.push(*other),
                BucketAnswer::Fate(TransactionFate::Unknown) => is_unknown = true,
                BucketAnswer::Fate(TransactionFate::Open) | BucketAnswer::Silent => is_open = true,
                BucketAnswer::Dropped => {}
            }
        }
        left.sort_unstable();
        match (is_open, is_unknown) {
            (true, _) => None,
            (false, true) => Some(Decision::RollBack),
            (false, false) => Some(Decision::Commit { participants: left }),
        }
    }

    async fn look_after(&self, bucket: &Bucket, joint: JointCommit) {
        let transaction = joint.committed.transaction;
        let mut are_done = true;
        for other in joint.participants.iter().filter(|other| **other != bucket.info.id) {
            match self.fate_in(*other, transaction).await {
                BucketAnswer::Fate(TransactionFate::Committed { is_open: true, .. }) => {
                    are_done = false
                }
                // An epoch there has it, as after a rollback of that bucket, and it is not named any more.
                BucketAnswer::Fate(TransactionFate::Committed { .. }) => {
                    bucket.leave_out(transaction, *other, false);
                }
                BucketAnswer::Fate(TransactionFate::Prepared) => {
                    are_done = false;
                    let participants = joint.participants.clone();
                    let told = self.tell(*other, transaction, Decision::Commit { participants });
                    note(bucket, transaction, told.await);
                }
                // A bucket may forget an old commit, so this answer proves nothing about a commit without changes here.
                BucketAnswer::Fate(TransactionFate::Unknown) if joint.at().is_some() => {
                    bucket.leave_out(transaction, *other, true);
                }
                BucketAnswer::Fate(TransactionFate::Unknown) | BucketAnswer::Dropped => {}
                BucketAnswer::Fate(TransactionFate::Open) | BucketAnswer::Silent => {
                    are_done = false
                }
            }
        }
        if are_done && joint.at().is_none() {
            bucket.settle(transaction);
        }
    }

    async fn fate_in(&self, bucket: BucketId, transaction: TransactionId) -> BucketAnswer {
        let source = match self.source(bucket) {
            Some(source) => source,
            None => return BucketAnswer::Dropped,
        };
        if lock(&self.silent).contains(&bucket) {
            return BucketAnswer::Silent;
        }
        let Ok(source) = source else { return BucketAnswer::Silent };
        match timeout(ANSWER_WAIT, source.fate(bucket, transaction)).await {
            Ok(Ok(fate)) => BucketAnswer::Fate(fate),
            Ok(Err(_)) | Err(_) => {
                lock(&self.silent).insert(bucket);
                BucketAnswer::Silent
            }
        }
    }

    async fn tell(
        &self,
        bucket: BucketId,
        transaction: TransactionId,
        decision: Decision,
    ) -> Result<()> {
        let Some(source) = self.source(bucket) else { return Ok(()) };
        let told = timeout(ANSWER_WAIT, source?.decide(bucket, transaction, decision)).await;
        told.map_or(Ok(()), |told| told.map(drop))
    }

    /// The projectors of a bucket; `None` if it was dropped. A bucket that is younger than the catalog of this process does not answer yet.
    fn source(&self, bucket: BucketId) -> Option<Result<Arc<dyn ProjectorApi>>> {
        let catalog = self.projector.catalog.borrow().clone();
        let Some(catalog) = catalog else { return Some(Err(not_known(bucket))) };
        match catalog.buckets.get(&bucket) {
            Some(info) => Some(source_of(&*self.projector.directory, info, |node| {
                catalog.nodes.get(&node).cloned()
            })),
            None if catalog.is_dropped(bucket) => None,
            None => Some(Err(not_known(bucket))),
        }
    }
}

fn not_known(bucket: BucketId) -> Error {
    Error::unavailable(format!("the catalog of this projector does not have bucket {bucket} yet"))
}

fn note(bucket: &Bucket, transaction: TransactionId, ended: Result<()>) {
    if let Err(error) = ended {
        let bucket = &bucket.info.name;
        tracing::warn!(%bucket, %transaction, %error, "a joint commit does not end yet");
    }
}
