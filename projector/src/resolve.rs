//! The tasks that resolve late commits ([`proto::model::open_commit`]): commits that their
//! session or producer has not ended in time.
//!
//! - If a transaction has been prepared for a while, the bucket that decides its outcome is
//!   queried. If that bucket was dropped, the other buckets decide together: the transaction is
//!   committed if all of them have prepared or committed it, since its session may have been
//!   informed of the commit. A deciding bucket that does not know the transaction answers that it
//!   will never commit (presumed abort). The bucket remembers the number of the transaction, so
//!   that a late call cannot begin it.
//! - If a commit has been open for a while, the other participants are queried for their parts of
//!   the commit. A bucket that has only prepared its part is informed of the outcome. The commit
//!   no longer waits for a part that is lost.
//!
//! Usually the next epochs show that all parts are durable, and no query is needed. No answer is
//! needed for correctness. All steps can be repeated, and are repeated while a participant does
//! not answer.

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
use proto::model::joint::{JointCommit, PreparedTransaction};
use proto::model::open_commit::{OpenCommit, PartState, Participant};
use proto::model::pushed_commit::PushedCommit;
use proto::plant::{self, Plant};
use proto::rpc::api::{Decision, ProjectorApi, PushedStateQuery, TransactionState};
use proto::{Error, Result};
use tokio::time::timeout;

use crate::projector::Projector;
use crate::source::commits::open::LATE_AFTER;
use crate::source::view::bucket::Bucket;

/// The pause between two rounds of queries about the late commits.
const TURN_EVERY: Duration = Duration::from_millis(250);
/// The time limit of a query.
const ANSWER_WAIT: Duration = Duration::from_secs(2);
/// The number of concurrent queries.
const QUERIES_MAX: usize = 16;
/// The limit of open commits of a bucket that one round queries; the next rounds query the
/// others.
const COMMITS_MAX: usize = 64;

/// The kinds of late commits. Each kind is resolved by a separate task, so that a participant
/// that does not answer delays no other kind.
#[derive(Clone, Copy)]
pub(crate) enum LateKind {
    /// Prepared transactions whose outcome is not known. They lock documents.
    Prepared,
    /// Open commits of transactions over several buckets (joint commits).
    Joint,
    /// Open commits of producers.
    Pushed,
}

/// Resolves the late commits of all buckets of one kind until it is cancelled; safe to cancel at
/// any await.
pub(crate) async fn resolve_late(projector: Arc<Projector>, kind: LateKind) -> Infallible {
    loop {
        tokio::time::sleep(TURN_EVERY).await;
        let turn = QueryRound { projector: Arc::clone(&projector), silent: Mutex::default() };
        match kind {
            LateKind::Prepared => turn.end_all_prepared().await,
            LateKind::Joint => turn.query_open(SourceKind::Embedded).await,
            LateKind::Pushed => turn.query_open(SourceKind::Push).await,
        }
    }
}

/// The answer of another bucket that was queried about a transaction.
enum BucketAnswer {
    /// The fate of the transaction in that bucket.
    Fate(TransactionState),
    /// The other bucket was dropped.
    Dropped,
    /// The other bucket does not answer.
    Silent,
}

/// A process that is queried about its parts of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Respondent {
    /// The leader of another bucket.
    Leader(BucketId),
    /// The owner of other vbuckets.
    Owner(NodeId),
}

/// One round of queries about all late commits of a kind.
struct QueryRound {
    projector: Arc<Projector>,
    /// The processes that have not answered, and are not queried again in this round.
    silent: Mutex<BTreeSet<Respondent>>,
}

impl QueryRound {
    /// Iterates over the served buckets of a source kind that this process leads, if they have
    /// prepared transactions or open commits.
    fn buckets(&self, source: SourceKind) -> impl Iterator<Item = Arc<Bucket>> {
        let ids = self.projector.bucket_ids().into_iter();
        let buckets = ids.filter_map(|id| self.projector.find(id));
        let of_kind = buckets.filter(move |bucket| bucket.info.source == source);
        let unsettled = of_kind.filter(|bucket| bucket.has_unsettled() && bucket.is_led());
        unsettled.filter(|bucket| bucket.check_open().is_ok()).inspect(|bucket| bucket.start_ages())
    }

    /// Queries the outcome of all late prepared transactions, and ends those whose outcome is
    /// known.
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

    /// Queries the participants of late open commits, and records their answers.
    async fn query_open(&self, source: SourceKind) {
        let mut queries = Vec::new();
        for bucket in self.buckets(source) {
            for (commit, participants) in bucket.commits_to_query(COMMITS_MAX) {
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
                            self.query_part_in_bucket(&bucket, joint, other).await
                        }
                        (OpenCommit::Pushed(pushed), Respondent::Owner(owner)) => {
                            self.query_parts_at_owner(&bucket, pushed, (owner, vbuckets)).await
                        }
                        _ => return,
                    };
                    bucket.record_parts(&commit, &parts);
                },
            )
            .await;
    }

    /// Queries another bucket about its part of a joint commit. Returns the state of the part if
    /// that state is final. If the bucket has only prepared the commit, informs it of the
    /// outcome.
    async fn query_part_in_bucket(
        &self,
        bucket: &Bucket,
        joint: &JointCommit,
        other: BucketId,
    ) -> Vec<(Participant, PartState)> {
        let transaction = joint.committed.transaction;
        let has_changes = joint.at().is_some();
        let state = match self.query_fate(other, transaction).await {
            // An epoch there has it, as after a rollback of that bucket, and it is not named any more.
            BucketAnswer::Fate(TransactionState::Committed { is_open: false, .. }) => {
                Some(PartState::Shown)
            }
            BucketAnswer::Fate(TransactionState::Unknown) if has_changes => Some(PartState::Lost),
            // A bucket may forget an old commit, so this answer proves nothing about a commit without changes here.
            BucketAnswer::Fate(TransactionState::Unknown) | BucketAnswer::Dropped => {
                (!has_changes).then_some(PartState::Shown)
            }
            BucketAnswer::Fate(TransactionState::Prepared) => {
                let participants = joint.participants.clone();
                let ended =
                    self.send_decision(other, transaction, Decision::Commit { participants }).await;
                log_end_error(bucket, transaction, ended);
                None
            }
            BucketAnswer::Fate(TransactionState::Committed { .. } | TransactionState::Open)
            | BucketAnswer::Silent => None,
        };
        state.map(|state| (Participant::Bucket(other), state)).into_iter().collect()
    }

    /// Queries another owner of vbuckets about its parts of a producer's commit, and returns
    /// their states.
    async fn query_parts_at_owner(
        &self,
        bucket: &Bucket,
        commit: &PushedCommit,
        (owner, wanted): (NodeId, VbucketSet),
    ) -> Vec<(Participant, PartState)> {
        let catalog = self.projector.catalog.borrow().clone();
        let node = catalog.and_then(|catalog| catalog.nodes.get(&owner).cloned());
        let is_silent = lock(&self.silent).contains(&Respondent::Owner(owner));
        let Some(node) = node.filter(|_| !is_silent) else { return Vec::new() };
        let look = PushedStateQuery { bucket: bucket.info.id, commit: commit.clone(), wanted };
        let answer = self.projector.directory.projector(&node);
        match timeout(ANSWER_WAIT, answer.pushed_part_states(look)).await {
            Ok(Ok(parts)) => {
                parts.into_iter().map(|(at, state)| (Participant::Vbucket(at), state)).collect()
            }
            Ok(Err(_)) | Err(_) => {
                lock(&self.silent).insert(Respondent::Owner(owner));
                Vec::new()
            }
        }
    }

    /// Ends a prepared transaction, if its outcome can be determined.
    async fn end_prepared(&self, bucket: &Bucket, prepared: Arc<PreparedTransaction>) {
        let transaction = prepared.transaction;
        let Some(decider) = prepared.decider() else { return };
        let decision = match self.query_fate(decider, transaction).await {
            BucketAnswer::Fate(TransactionState::Committed { participants, .. })
                if !plant::is(Plant::RolledBackDecided) =>
            {
                Decision::Commit { participants }
            }
            BucketAnswer::Fate(TransactionState::Committed { .. } | TransactionState::Unknown) => {
                Decision::RollBack
            }
            BucketAnswer::Fate(_) | BucketAnswer::Silent => return,
            BucketAnswer::Dropped => {
                match self.outcome_without_decider(bucket.info.id, &prepared).await {
                    Some(decision) => decision,
                    None => return,
                }
            }
        };
        let commits = matches!(decision, Decision::Commit { .. });
        tracing::info!(bucket = %bucket.info.name, %transaction, commits, "a prepared transaction ends without its session");
        log_end_error(
            bucket,
            transaction,
            self.send_decision(bucket.info.id, transaction, decision).await,
        );
    }

    /// Determines the outcome of a transaction whose deciding bucket was dropped; `None` while
    /// the outcome is not known.
    async fn outcome_without_decider(
        &self,
        bucket: BucketId,
        prepared: &PreparedTransaction,
    ) -> Option<Decision> {
        let (mut left, mut is_open, mut is_unknown) = (vec![bucket], false, false);
        for other in prepared.participants.iter().filter(|other| **other != bucket) {
            match self.query_fate(*other, prepared.transaction).await {
                // This answer counts, whatever the other buckets answer.
                BucketAnswer::Fate(TransactionState::Committed { participants, .. }) => {
                    return Some(Decision::Commit { participants });
                }
                BucketAnswer::Fate(TransactionState::Prepared) => left.push(*other),
                BucketAnswer::Fate(TransactionState::Unknown) => is_unknown = true,
                BucketAnswer::Fate(TransactionState::Open) | BucketAnswer::Silent => is_open = true,
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

    /// Queries another bucket about the fate of a transaction.
    async fn query_fate(&self, bucket: BucketId, transaction: TransactionId) -> BucketAnswer {
        let source = match self.bucket_client(bucket) {
            Some(source) => source,
            None => return BucketAnswer::Dropped,
        };
        if lock(&self.silent).contains(&Respondent::Leader(bucket)) {
            return BucketAnswer::Silent;
        }
        let Ok(source) = source else { return BucketAnswer::Silent };
        match timeout(ANSWER_WAIT, source.transaction_state(bucket, transaction)).await {
            Ok(Ok(fate)) => BucketAnswer::Fate(fate),
            Ok(Err(_)) | Err(_) => {
                lock(&self.silent).insert(Respondent::Leader(bucket));
                BucketAnswer::Silent
            }
        }
    }

    /// Informs another bucket of the outcome of a transaction.
    async fn send_decision(
        &self,
        bucket: BucketId,
        transaction: TransactionId,
        decision: Decision,
    ) -> Result<()> {
        let Some(source) = self.bucket_client(bucket) else { return Ok(()) };
        let told =
            timeout(ANSWER_WAIT, source?.end_prepared_transaction(bucket, transaction, decision))
                .await;
        told.map_or(Ok(()), |told| told.map(drop))
    }

    /// Returns a client of a bucket's projectors; `None` if the bucket was dropped. An error if
    /// the bucket is newer than the catalog of this process.
    fn bucket_client(&self, bucket: BucketId) -> Option<Result<Arc<dyn ProjectorApi>>> {
        let catalog = self.projector.catalog.borrow().clone();
        let Some(catalog) = catalog else { return Some(Err(unknown_bucket_error(bucket))) };
        match catalog.buckets.get(&bucket) {
            Some(info) => Some(source_of(&*self.projector.directory, info, |node| {
                catalog.nodes.get(&node).cloned()
            })),
            None if catalog.is_dropped(bucket) => None,
            None => Some(Err(unknown_bucket_error(bucket))),
        }
    }
}

/// Returns the processes to query about the parts of these participants, each with its vbuckets.
/// For a process that leads a bucket, the set of vbuckets is empty.
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

fn unknown_bucket_error(bucket: BucketId) -> Error {
    Error::unavailable(format!("the catalog of this projector does not have bucket {bucket} yet"))
}

/// Logs an error of ending a transaction.
fn log_end_error(bucket: &Bucket, transaction: TransactionId, ended: Result<()>) {
    if let Err(error) = ended {
        let bucket = &bucket.info.name;
        tracing::warn!(%bucket, %transaction, %error, "a joint commit does not end yet");
    }
}
