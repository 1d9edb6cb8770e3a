//! Resolves late commits ([`proto::model::open_commit`]), which their session or producer has not
//! ended in time.
//!
//! - For a transaction that has been prepared for a while, the deciding bucket is queried. If that
//!   bucket was dropped, the others decide together: it is committed if all of them have prepared
//!   or committed it, since its session may have been told so. A deciding bucket that does not know
//!   the transaction answers that it never commits (presumed abort). It remembers the number, so
//!   that a late call does not begin the transaction.
//! - For a commit that has been open for a while, the other participants are queried for the state
//!   of their parts. A bucket that has only prepared a joint commit gets the outcome. A part that
//!   is lost is no longer waited for.
//!
//! Usually the next epochs show the states, and no answer is needed for correctness. All steps can
//! be repeated, and are repeated while a participant does not answer.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt;
use futures::stream;
use proto::client::source::source_of;
use proto::lock::lock;
use proto::model::assignment::VbucketSet;
use proto::model::bucket::SourceKind;
use proto::model::ids::{BucketId, NodeId, TransactionId};
use proto::model::joint::{JointCommit, Prepared};
use proto::model::open_commit::{OpenCommit, PartState, Participant};
use proto::model::pushed_commit::PushedCommit;
use proto::plant::{self, Plant};
use proto::rpc::api::{Decision, ProjectorApi, PushedLook, TransactionFate};
use proto::{Error, Result};
use tokio::time::timeout;

use crate::projector::Projector;
use crate::source::commits::open::LATE_AFTER;
use crate::source::view::bucket::Bucket;

/// The pause between two turns over the late commits.
const TURN_EVERY: Duration = Duration::from_millis(250);
/// The time limit of a query.
const ANSWER_WAIT: Duration = Duration::from_secs(2);
/// The number of concurrent queries.
const QUERIES_MAX: usize = 16;
/// The limit of open commits of a bucket that are queried in one turn; the others follow in the
/// next turns.
const COMMITS_MAX: usize = 64;

/// The late commits that a task resolves. Each kind has a task, so that a participant that does not answer delays no other kind.
#[derive(Clone, Copy)]
pub(crate) enum LateKind {
    /// Prepared transactions. They lock documents.
    Prepared,
    /// Open joint commits.
    Joint,
    /// Open commits of producers.
    Pushed,
}

/// Resolves the late commits of all buckets of one kind until it is cancelled; safe to cancel at
/// any await.
pub(crate) async fn resolve_late(projector: Arc<Projector>, kind: LateKind) -> Infallible {
    loop {
        tokio::time::sleep(TURN_EVERY).await;
        let turn = Turn { projector: Arc::clone(&projector), silent: Mutex::default() };
        match kind {
            LateKind::Prepared => turn.end_all_prepared().await,
            LateKind::Joint => turn.query_open(SourceKind::Embedded).await,
            LateKind::Pushed => turn.query_open(SourceKind::Push).await,
        }
    }
}

/// The answer of another bucket about a transaction.
enum BucketAnswer {
    /// The fate of the transaction in the bucket.
    Fate(TransactionFate),
    /// The other bucket was dropped.
    Dropped,
    /// The other bucket does not answer.
    Silent,
}

/// A process that is queried for the parts of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Respondent {
    /// The leader of another bucket.
    Leader(BucketId),
    /// The owner of other vbuckets.
    Owner(NodeId),
}

/// One turn over all late commits of a kind.
struct Turn {
    projector: Arc<Projector>,
    /// The respondents that have not answered, and are not queried again in this turn.
    silent: Mutex<BTreeSet<Respondent>>,
}

impl Turn {
    /// Iterates over the served buckets of a kind that this process leads and that have prepared
    /// transactions or open commits.
    fn buckets(&self, source: SourceKind) -> impl Iterator<Item = Arc<Bucket>> {
        let ids = self.projector.bucket_ids().into_iter();
        let buckets = ids.filter_map(|id| self.projector.find(id));
        let of_kind = buckets.filter(move |bucket| bucket.info.source == source);
        let unsettled = of_kind.filter(|bucket| bucket.has_unsettled() && bucket.is_led());
        unsettled.filter(|bucket| bucket.check_open().is_ok()).inspect(|bucket| bucket.count_ages())
    }

    async fn end_all_prepared(&self) {
        let mut late = Vec::new();
        for bucket in self.buckets(SourceKind::Embedded) {
            let prepared = bucket.prepared_for(LATE_AFTER).into_iter();
            late.extend(prepared.map(|one| (Arc::clone(&bucket), one)));
        }
        stream::iter(late)
            .for_each_concurrent(QUERIES_MAX, |(bucket, one)| async move {
                self.end_prepared(&bucket, one).await;
            })
            .await;
    }

    async fn query_open(&self, source: SourceKind) {
        let mut queries = Vec::new();
        for bucket in self.buckets(source) {
            for (commit, participants) in bucket.to_query(COMMITS_MAX) {
                let commit = Arc::new(commit);
                let respondents = respondents(&bucket, participants).into_iter();
                queries
                    .extend(respondents.map(|of| (Arc::clone(&bucket), Arc::clone(&commit), of)));
            }
        }
        stream::iter(queries)
            .for_each_concurrent(
                QUERIES_MAX,
                |(bucket, commit, (respondent, vbuckets))| async move {
                    let parts = match (&*commit, respondent) {
                        (OpenCommit::Joint(joint), Respondent::Leader(other)) => {
                            self.part_in(&bucket, joint, other).await
                        }
                        (OpenCommit::Pushed(pushed), Respondent::Owner(owner)) => {
                            self.parts_at(&bucket, pushed, (owner, vbuckets)).await
                        }
                        _ => return,
                    };
                    bucket.note_parts(&commit, &parts);
                },
            )
            .await;
    }

    /// Returns the states of another bucket's part in a joint commit, if they are final. A bucket
    /// that has only prepared the commit gets the outcome.
    async fn part_in(
        &self,
        bucket: &Bucket,
        joint: &JointCommit,
        other: BucketId,
    ) -> Vec<(Participant, PartState)> {
        let transaction = joint.committed.transaction;
        let has_changes = joint.at().is_some();
        let state = match self.fate_in(other, transaction).await {
            // An epoch there has it, as after a rollback of that bucket, and it is not named any more.
            BucketAnswer::Fate(TransactionFate::Committed { is_open: false, .. }) => {
                Some(PartState::Shown)
            }
            BucketAnswer::Fate(TransactionFate::Unknown) if has_changes => Some(PartState::Lost),
            // A bucket may forget an old commit, so this answer proves nothing about a commit without changes here.
            BucketAnswer::Fate(TransactionFate::Unknown) | BucketAnswer::Dropped => {
                (!has_changes).then_some(PartState::Shown)
            }
            BucketAnswer::Fate(TransactionFate::Prepared) => {
                let participants = joint.participants.clone();
                let ended = self.tell(other, transaction, Decision::Commit { participants }).await;
                note(bucket, transaction, ended);
                None
            }
            BucketAnswer::Fate(TransactionFate::Committed { .. } | TransactionFate::Open)
            | BucketAnswer::Silent => None,
        };
        state.map(|state| (Participant::Bucket(other), state)).into_iter().collect()
    }

    /// Returns the states of the parts of a producer's commit in the vbuckets of another owner.
    async fn parts_at(
        &self,
        bucket: &Bucket,
        commit: &PushedCommit,
        (owner, wanted): (NodeId, VbucketSet),
    ) -> Vec<(Participant, PartState)> {
        let catalog = self.projector.catalog.borrow().clone();
        let node = catalog.and_then(|catalog| catalog.nodes.get(&owner).cloned());
        let is_silent = lock(&self.silent).contains(&Respondent::Owner(owner));
        let Some(node) = node.filter(|_| !is_silent) else { return Vec::new() };
        let look = PushedLook { bucket: bucket.info.id, commit: commit.clone(), wanted };
        let answer = self.projector.directory.projector(&node);
        match timeout(ANSWER_WAIT, answer.look_at_pushed(look)).await {
            Ok(Ok(parts)) => {
                parts.into_iter().map(|(at, state)| (Participant::Vbucket(at), state)).collect()
            }
            Ok(Err(_)) | Err(_) => {
                lock(&self.silent).insert(Respondent::Owner(owner));
                Vec::new()
            }
        }
    }

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

    /// Returns the outcome of a transaction whose deciding bucket was dropped; `None` while it is
    /// not known.
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

    async fn fate_in(&self, bucket: BucketId, transaction: TransactionId) -> BucketAnswer {
        let source = match self.source(bucket) {
            Some(source) => source,
            None => return BucketAnswer::Dropped,
        };
        if lock(&self.silent).contains(&Respondent::Leader(bucket)) {
            return BucketAnswer::Silent;
        }
        let Ok(source) = source else { return BucketAnswer::Silent };
        match timeout(ANSWER_WAIT, source.fate(bucket, transaction)).await {
            Ok(Ok(fate)) => BucketAnswer::Fate(fate),
            Ok(Err(_)) | Err(_) => {
                lock(&self.silent).insert(Respondent::Leader(bucket));
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

    /// Returns a client of a bucket's projectors; `None` if the bucket was dropped, or an error if
    /// it is younger than the catalog of this process.
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

/// Returns the processes to query for the parts of these participants, each with its vbuckets (none
/// for a bucket).
fn respondents(
    bucket: &Bucket,
    participants: Vec<Participant>,
) -> BTreeMap<Respondent, VbucketSet> {
    let (assignment, mut found) = (bucket.assignment(), BTreeMap::<_, VbucketSet>::new());
    for participant in participants {
        match participant {
            Participant::Bucket(other) => drop(found.entry(Respondent::Leader(other)).or_default()),
            Participant::Vbucket(vbucket) => {
                if let Some(owner) = assignment.owner(vbucket) {
                    found.entry(Respondent::Owner(owner)).or_default().insert(vbucket);
                }
            }
        }
    }
    found
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
