//! Answers the calls of sessions' transactions.
//!
//! A call reads documents as of the transaction's snapshot. A purge may run during the read, so
//! the call checks the purge points after the read. The snapshot is stored in the transaction, so
//! only its first call looks up the epoch.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use proto::env::Bulk;
use proto::model::commits::{CommittedTransaction, TransactionOutcome};
use proto::model::cut::WritePosition;
use proto::model::ids::{Epoch, TransactionId, TransactionPlace, vbucket_of};
use proto::plant::{self, Plant};
use proto::rpc::api::{
    CheckedWrites, Documents, DocumentsRequest, FoundCommits, OWNER_BYTES_MAX, TransactionCommit,
    TransactionWrite, TransactionWritten, WriteReply,
};
use proto::{Error, ErrorCode, Result};
use tokio::time::Instant;

use super::checks::{GET_BYTES_MAX, INLINE_BYTES_MAX, check_read};
use crate::projector::Projector;
use crate::source::DocumentStore;
use crate::source::embedded::look_up;
use crate::source::kind::WriteCall;
use crate::source::view::bucket::Bucket;
use crate::source::writer::Work;
use crate::transactions::committing::CommitInProgress;
use crate::transactions::document_lookups::LOOK_UP_ABOVE;
use crate::transactions::limits::Limits;
use crate::transactions::open::{OwnDocuments, WriteIn};
use crate::transactions::snapshot::Snapshot;
use crate::transactions::state::not_open_error;
use crate::transactions::transaction::YOUNG;

/// The longest time for which a call waits for the stability timestamp of its snapshot. The
/// caller has already received the timestamp, so it will arrive soon.
const EPOCH_WAIT: Duration = Duration::from_secs(3);

/// The number of changes up to which a commit collects them on its caller's thread: less than a
/// millisecond of work.
const INLINE_CHANGES_MAX: u64 = 1000;

impl Projector {
    /// Makes the writes of a request in a transaction; see
    /// [`proto::rpc::api::ProjectorApi::write_in`].
    pub(super) async fn write_in_transaction(
        &self,
        request: TransactionWrite,
    ) -> Result<TransactionWritten> {
        let TransactionWrite { bucket, transaction, after, owner, snapshot, writes } = request;
        if owner.len() > OWNER_BYTES_MAX {
            let what = format!("the owner of a transaction has {} bytes", owner.len());
            return Err(Error::new(ErrorCode::OverLimit, what));
        }
        let bucket = self.bucket_for_call(bucket, WriteCall::Documents).await?;
        writes.check_lengths(self.config.document_bytes_max)?;
        let at = (transaction, after);
        let unknown = bucket.transactions.documents_to_look_up(at, &writes, Instant::now())?;
        let snapshot = self.snapshot(&bucket, Some(transaction), snapshot).await?;
        let is_bulk = writes.document_bytes() > INLINE_BYTES_MAX;
        let is_quick = unknown.is_empty() && !is_bulk;
        let (store, of) = (self.store(), Arc::clone(&bucket));
        let limits = self.transaction_limits.clone();
        let writing = move || {
            let writing = OpenWrite { at, owner: &owner, snapshot, writes: &writes, unknown };
            write(&*store, &of, writing, &limits)
        };
        let written = match (is_quick, is_bulk) {
            (true, _) => writing(),
            (false, true) => self.env.bulk(Bulk::Queued, writing).await,
            (false, false) => self.env.blocking(writing).await,
        };
        self.schedule_young_wake(&bucket);
        // A leader whose lease has ended meanwhile may have read what is no longer the newest.
        bucket.check_open()?;
        written
    }

    /// Schedules a notification of the bucket's streams for the time at which a young transaction
    /// is old enough that its changes are sent.
    pub(super) fn schedule_young_wake(&self, bucket: &Arc<Bucket>) {
        if !bucket.transactions.must_schedule_wake() {
            return;
        }
        let of = Arc::clone(&bucket.transactions);
        let wake = async move {
            tokio::time::sleep(YOUNG).await;
            while of.wake_for_young(Instant::now()) {
                tokio::time::sleep(YOUNG).await;
            }
        };
        self.env.spawn_request("young transactions", wake).detach();
    }

    /// Commits a transaction; see [`proto::rpc::api::ProjectorApi::commit`]. The transaction has
    /// ended when this function returns, with two exceptions: another call of the transaction is
    /// in progress, or the transaction is not at the place that the caller has named.
    pub(super) async fn commit_transaction(
        &self,
        request: TransactionCommit,
    ) -> Result<WriteReply> {
        let TransactionCommit { bucket, transaction, behind, .. } = request;
        let bucket = self.bucket_for_call(bucket, WriteCall::Documents).await?;
        let begun = match self.begin_commit(&bucket, request).await {
            // A transaction ends with its commit, so a transaction that is not open has an outcome.
            Err(_) if !bucket.transactions.is_open(transaction) => {
                return repeated_answer(&bucket, (transaction, behind));
            }
            begun => begun?,
        };
        let Some(begun) = begun else {
            let position = WritePosition { bucket: bucket.info.id, positions: Vec::new() };
            return Ok(WriteReply { affected: 0, position });
        };
        let committed = self.commit_begun(bucket, begun).await;
        self.transaction_counts.commit_ended(&committed);
        committed
    }

    async fn commit_begun(&self, bucket: Arc<Bucket>, begun: BegunCommit) -> Result<WriteReply> {
        let committing = self.do_early_commit_work(&bucket, begun).await?;
        // A prepared transaction that holds one of its documents ends soon. If not, the check of the commit refuses it.
        bucket
            .wait_until_unlocked(committing.changes.iter().map(|changed| &*changed.mutation.id))
            .await
            .ok();
        let bytes = committing.bytes();
        // The bytes of the commit are in memory already.
        let work = |reply| Work::Commit(Box::new(committing), reply);
        self.queue_unreserved(bucket, bytes, work).await
    }

    /// Begins the commit of a transaction: the transaction accepts no further call. `None` if it
    /// has no changes. If an error is returned, the commit was not begun.
    pub(super) async fn begin_commit(
        &self,
        bucket: &Arc<Bucket>,
        request: TransactionCommit,
    ) -> Result<Option<BegunCommit>> {
        let TransactionCommit { transaction, place, snapshot, participants, .. } = request;
        if place.0 > 0 && !bucket.transactions.is_open(transaction) {
            return Err(not_open_error(transaction, place));
        }
        let snapshot = self.snapshot(bucket, Some(transaction), snapshot).await;
        let (snapshot, failed) = match snapshot {
            Ok(snapshot) => (snapshot, None),
            Err(error) => (None, Some(error)),
        };
        let of = Arc::clone(&bucket.transactions);
        let large_changes = self.config.large_commit_changes;
        let begin =
            move || of.commit((transaction, place), snapshot, (Instant::now(), large_changes));
        let committing = match place.0 > INLINE_CHANGES_MAX {
            true => self.env.bulk(Bulk::Queued, begin).await,
            false => begin(),
        };
        let begun = |committing: CommitInProgress| BegunCommit {
            committing: committing.with_participants(participants),
            failed,
        };
        Ok(committing?.map(begun))
    }

    /// Does the work for a commit that is possible before the bucket's writer numbers it. Any
    /// error refuses the commit and ends the transaction.
    pub(super) async fn do_early_commit_work(
        &self,
        bucket: &Arc<Bucket>,
        begun: BegunCommit,
    ) -> Result<CommitInProgress> {
        let transaction = begun.committing.transaction;
        let ready = self.make_ready(bucket, begun).await;
        if ready.is_err() {
            // A leader whose lease has ended meanwhile refuses nothing.
            bucket.check_open()?;
        }
        ready.map_err(|error| match error.code.refuses_commit() {
            true => error,
            false => {
                let what = format!("transaction {transaction} was rolled back: {}", error.message);
                Error::new(ErrorCode::Conflict, what).with_hint("begin the transaction again")
            }
        })
    }

    async fn make_ready(
        &self,
        bucket: &Arc<Bucket>,
        BegunCommit { committing, failed }: BegunCommit,
    ) -> Result<CommitInProgress> {
        if let Some(error) = failed {
            return Err(error);
        }
        let committing = self.with_look_up(bucket, committing).await?;
        self.wait_for_timestamp(bucket, || false).await?;
        Ok(committing)
    }

    /// Looks up the documents of a large commit, and creates its mutations, before the bucket's
    /// writer numbers them.
    async fn with_look_up(
        &self,
        bucket: &Arc<Bucket>,
        mut committing: CommitInProgress,
    ) -> Result<CommitInProgress> {
        if committing.changes.len() <= LOOK_UP_ABOVE {
            return Ok(committing);
        }
        let (store, of) = (self.store(), Arc::clone(bucket));
        let look_up = move || {
            committing.sort();
            committing.looked_up = Some(look_up(&*store, &of, &committing)?);
            if committing.participants.is_empty() {
                committing.make_mutations();
            }
            Ok(committing)
        };
        self.env.bulk(Bulk::Queued, look_up).await
    }

    /// Reads documents in a transaction; see [`proto::rpc::api::ProjectorApi::get_for_transaction`].
    pub(super) async fn get_in_transaction(&self, request: DocumentsRequest) -> Result<Documents> {
        let DocumentsRequest { bucket, ids, snapshot, own } = request;
        let bucket = self.bucket(bucket).await?;
        let found = match own {
            Some(own) => bucket.transactions.own_documents(own, &ids, Instant::now())?,
            None => vec![None; ids.len()],
        };
        let transaction = own.map(|own| own.transaction);
        // The documents of a version never change.
        let snapshot = snapshot.filter(|_| bucket.info.source.reports_position());
        let snapshot = self.snapshot(&bucket, transaction, snapshot).await?;
        let (store, of, wanted) = (self.store(), Arc::clone(&bucket), ids.clone());
        let read = move || complete_documents(&*store, &of, &wanted, snapshot.as_ref(), found);
        let documents = self.env.blocking(read).await?;
        check_read(&bucket, &ids)?;
        Ok(documents)
    }

    /// Searches for the commit of a transaction in all served buckets; see
    /// [`proto::rpc::api::ProjectorApi::committed`].
    pub(super) fn find_commit(&self, transaction: TransactionId) -> FoundCommits {
        let buckets = self.bucket_ids().into_iter().filter_map(|id| self.find(id));
        let mut found = FoundCommits::default();
        for bucket in buckets.filter(|bucket| bucket.is_led() && bucket.check_open().is_ok()) {
            let committed = bucket.committed(transaction);
            // Order matters: another copy may lead by now, and have commits that this one lacks.
            if bucket.check_open().is_ok() {
                found.looked_at.push(bucket.info.id);
                found.commits.extend(committed.map(|committed| reply_of(&bucket, committed)));
            }
        }
        found
    }

    /// Returns the snapshot that a transaction reads: its stored one, or the snapshot of the
    /// requested epoch, which may need a short wait. `None` without an epoch.
    async fn snapshot(
        &self,
        bucket: &Bucket,
        transaction: Option<TransactionId>,
        epoch: Option<Epoch>,
    ) -> Result<Option<Snapshot>> {
        let Some(epoch) = epoch else { return Ok(None) };
        let known = transaction.and_then(|id| bucket.transactions.snapshot_of(id, Instant::now()));
        if let Some(known) = known.filter(|known| known.epoch == epoch) {
            return Ok(Some(known));
        }
        let mut turned = bucket.watch_without_mutations();
        let find = async {
            loop {
                match bucket.snapshot_at(epoch) {
                    Ok(Some(found)) => return Ok(Some(found)),
                    Err(error) => {
                        return self.retained_snapshot(bucket, epoch, error).await.map(Some);
                    }
                    Ok(None) => {}
                }
                if bucket.is_removed() || turned.changed().await.is_err() {
                    return Err(bucket.removed_error());
                }
            }
        };
        tokio::time::timeout(EPOCH_WAIT, find).await.unwrap_or_else(|_| {
            let name = &bucket.info.name;
            let what = format!("bucket {name}: epoch {epoch} has not come to its projector");
            Err(Error::unavailable(what).with_hint("begin the transaction again"))
        })
    }
}

impl Projector {
    /// Returns the snapshot of an epoch whose timestamp this projector does not have any more.
    /// The coordinators retain the timestamp while a lease of the transaction protects it. If
    /// they do not, the error is `unknown`.
    async fn retained_snapshot(
        &self,
        bucket: &Bucket,
        epoch: Epoch,
        unknown: Error,
    ) -> Result<Snapshot> {
        let mark = self.directory.coordinator().epoch_mark(bucket.info.id, epoch).await?;
        mark.map_or(Err(unknown), |mark| bucket.snapshot_of_mark(&mark))
    }
}

/// Returns the outcome of a transaction that is not open any more, for a repeated call. An error
/// if the outcome is not a commit, or is unknown.
pub(super) fn repeated_answer(
    bucket: &Bucket,
    (transaction, behind): (TransactionId, u64),
) -> Result<WriteReply> {
    let fate = bucket.fate(transaction, behind);
    // A leader whose lease has ended may lack commits of its successor.
    bucket.check_open()?;
    match fate {
        TransactionOutcome::Committed(committed) => Ok(reply_of(bucket, committed)),
        TransactionOutcome::RolledBack => {
            let what = format!(
                "transaction {transaction} was rolled back: an earlier call to commit it was refused, or its projector was restarted or gave it up"
            );
            Err(Error::new(ErrorCode::Conflict, what).with_hint("begin the transaction again"))
        }
        TransactionOutcome::Forgotten => {
            let name = &bucket.info.name;
            let what = format!(
                "bucket {name} does not remember if transaction {transaction} was committed"
            );
            Err(Error::new(ErrorCode::InDoubt, what).with_hint("look at the data"))
        }
    }
}

pub(super) fn reply_of(bucket: &Bucket, committed: CommittedTransaction) -> WriteReply {
    let CommittedTransaction { affected, positions, .. } = committed;
    WriteReply { affected, position: WritePosition { bucket: bucket.info.id, positions } }
}

/// A commit that has begun. The transaction ends when this value is dropped.
pub(super) struct BegunCommit {
    committing: CommitInProgress,
    /// The error with which the commit must be refused, because the transaction's snapshot cannot
    /// be used.
    failed: Option<Error>,
}

/// The writes of one request in an open transaction.
struct OpenWrite<'w> {
    at: (TransactionId, TransactionPlace),
    owner: &'w str,
    snapshot: Option<Snapshot>,
    writes: &'w CheckedWrites,
    /// The ids of the documents that must be looked up, because the effect of a write depends on
    /// whether the document exists.
    unknown: BTreeSet<String>,
}

/// Makes the writes of a request in a transaction, after looking up the documents on whose
/// existence they depend.
fn write(
    store: &dyn DocumentStore,
    bucket: &Bucket,
    writing: OpenWrite<'_>,
    limits: &Limits,
) -> Result<TransactionWritten> {
    let OpenWrite { at, owner, snapshot, writes, unknown } = writing;
    let mut known = BTreeMap::new();
    for id in unknown {
        let exists = match &snapshot {
            None => store.contains(bucket.info.id, &id)?,
            Some(Snapshot { seqnos, .. }) => {
                let one = std::slice::from_ref(&id);
                store.get_at(bucket.info.id, one, seqnos, usize::MAX)?.iter().any(Option::is_some)
            }
        };
        known.insert(id, exists);
    }
    check_kept(store, bucket, snapshot.as_ref(), known.keys())?;
    let behind = bucket.commit_count();
    let request = WriteIn { at, owner, snapshot, writes, known: &known, behind };
    bucket.transactions.write(&bucket.info, request, limits, Instant::now())
}

/// Returns documents as a transaction sees them: its own changes, and for all other documents
/// those of its snapshot.
fn complete_documents(
    store: &dyn DocumentStore,
    bucket: &Bucket,
    ids: &[String],
    snapshot: Option<&Snapshot>,
    own: OwnDocuments,
) -> Result<Documents> {
    let missing = ids.iter().zip(&own).filter(|(_, own)| own.is_none());
    let missing: Vec<String> = missing.map(|(id, _)| id.clone()).collect();
    let bytes = own.iter().flatten().flatten().map(Bytes::len).sum();
    let left = GET_BYTES_MAX.checked_sub(bytes).ok_or_else(|| {
        let what = format!("{} documents together exceed {GET_BYTES_MAX} bytes", ids.len());
        Error::new(ErrorCode::OverLimit, what).with_hint("ask for fewer documents at once")
    })?;
    let found = match snapshot.filter(|_| !plant::is(Plant::DocumentsAtPresent)) {
        None => store.get(bucket.info.id, &missing, left)?,
        Some(Snapshot { seqnos, .. }) => store.get_at(bucket.info.id, &missing, seqnos, left)?,
    };
    check_kept(store, bucket, snapshot, &missing)?;
    let mut found = found.into_iter();
    Ok(own.into_iter().map(|own| own.unwrap_or_else(|| found.next().flatten())).collect())
}

/// Returns an error if the versions that a snapshot needs were purged from the log while
/// documents were read.
fn check_kept<'i>(
    store: &dyn DocumentStore,
    bucket: &Bucket,
    snapshot: Option<&Snapshot>,
    ids: impl IntoIterator<Item = &'i String>,
) -> Result<()> {
    let Some(snapshot) = snapshot else { return Ok(()) };
    let vbuckets = ids.into_iter().map(|id| vbucket_of(id, bucket.info.vbuckets));
    bucket.check_not_purged(store, snapshot, vbuckets)
}
