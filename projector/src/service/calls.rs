//! Answers the incoming calls: implements [`ProjectorApi`] for a projector.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::future::join_all;
use proto::flow::byte_channel;
use proto::lock::lock;
use proto::model::assignment::VbucketSet;
use proto::model::catalog::Catalog;
use proto::model::history::{SourceHistory, SourcePlace};
use proto::model::ids::{
    BucketId, ProducerTransactionId, Seqno, TransactionId, TransactionPlace, VbucketId, vbucket_of,
};
use proto::model::index::IndexInfo;
use proto::model::open_commit::PartState;
use proto::rpc::api::{
    CheckedWrites, CopyAnswer, CopyRequest, Decision, Documents, DocumentsRequest, FoundCommits,
    HandOverPiece, HandOverRequest, KnownPlace, MOMENT_HOLD_MS, Places, ProjectorApi, PushReply,
    PushRequest, PushedCommitRequest, PushedStateQuery, ResultStream, TransactionCommit,
    TransactionPush, TransactionPushed, TransactionState, TransactionStatus, TransactionWrite,
    TransactionWritten, WriteReply, WriteRequest,
};
use proto::rpc::mutation::{BackfillMessage, BackfillRequest, StreamMessage, SubscribeRequest};
use proto::{Error, ErrorCode, Result};
use tokio::time::Instant;

use super::checks::{GET_BYTES_MAX, check_read};
use super::sample::sample;
use crate::copies;
use crate::feed::{Backfill, BackfillContent, MaintenanceStream, TaskStream};
use crate::hand_over;
use crate::projector::Projector;
use crate::source::DocumentStore;
use crate::source::check::queue_bytes;
use crate::source::kind::WriteCall;
use crate::source::push::branches::begin_branches;
use crate::source::view::bucket::Bucket;
use crate::source::writer::{Work, Writer};

/// The time limit of the wait for the outcome of prepared transactions, before the end of one
/// bucket is read.
const DECIDED_WAIT: Duration = Duration::from_secs(30);
/// The time limit of the same wait before the ends of all buckets are read. It is shorter than
/// the caller's time limit, since one bucket delays all.
const PLACES_WAIT: Duration = Duration::from_millis(MOMENT_HOLD_MS / 2);

/// The longest time for which a read waits for the missing parts of a producer's commit. A write
/// waits as long for the outcome of a prepared transaction.
const INCOMPLETE_WAIT: Duration = Duration::from_secs(5);

/// The number of attempts to read documents that change during the read while a commit may be
/// incomplete.
const READS_MAX: usize = 16;

/// Returns the ids of the documents that the writes of a request change.
fn ids_of(writes: &CheckedWrites) -> impl Iterator<Item = &str> + Clone {
    writes.writes().iter().map(|write| &**write.id())
}

#[async_trait]
impl ProjectorApi for Projector {
    async fn write(&self, request: WriteRequest) -> Result<WriteReply> {
        let WriteRequest { bucket, writes } = request;
        let bucket = self.bucket_for_call(bucket, WriteCall::Documents).await?;
        writes.check_lengths(self.config.document_bytes_max)?;
        bucket.wait_until_unlocked(ids_of(&writes)).await?;
        self.submit_when_covered(bucket, queue_bytes(&writes), |reply| Work::Write(writes, reply))
            .await
    }

    async fn get(&self, bucket: BucketId, ids: Vec<String>) -> Result<Vec<Option<Bytes>>> {
        let bucket = self.bucket(bucket).await?;
        let (mut changed, until) = (bucket.watch(), Instant::now() + INCOMPLETE_WAIT);
        let wanted: Arc<[String]> = ids.into();
        loop {
            let (store, at) = (Arc::clone(&self.streams.store), Arc::clone(&bucket));
            let ids = Arc::clone(&wanted);
            let by = match self.env.blocking(move || read_documents(&*store, &at, &ids)).await? {
                Ok(found) => return check_read(&bucket, &wanted).map(|()| found),
                Err(by) => by,
            };
            let waited = tokio::time::timeout_at(until, changed.changed()).await;
            if !matches!(waited, Ok(Ok(()))) {
                return Err(bucket.incomplete_error(by));
            }
        }
    }

    async fn write_for_transaction(&self, request: TransactionWrite) -> Result<TransactionWritten> {
        self.write_in_transaction(request).await
    }

    async fn roll_back_to(
        &self,
        bucket: BucketId,
        transaction: TransactionId,
        to: TransactionPlace,
    ) -> Result<TransactionPlace> {
        let bucket = self.bucket_for_call(bucket, WriteCall::Documents).await?;
        bucket.transactions.roll_back_to((transaction, to), Instant::now())
    }

    async fn transactions(&self) -> Result<Vec<TransactionStatus>> {
        let buckets = self.bucket_ids().into_iter().filter_map(|id| self.find(id));
        let list = |bucket: Arc<Bucket>| {
            let open = bucket.transactions.list(bucket.info.id, Instant::now());
            open.into_iter().chain(bucket.list_prepared()).chain(bucket.list_pushed())
        };
        Ok(buckets.flat_map(list).collect())
    }

    async fn committed(&self, transaction: TransactionId) -> Result<FoundCommits> {
        Ok(self.find_commit(transaction))
    }

    async fn commit(&self, request: TransactionCommit) -> Result<WriteReply> {
        self.commit_transaction(request).await
    }

    async fn prepare(&self, joint: TransactionId, request: TransactionCommit) -> Result<u64> {
        self.prepare_transaction(joint, request).await
    }

    async fn end_prepared_transaction(
        &self,
        bucket: BucketId,
        transaction: TransactionId,
        decision: Decision,
    ) -> Result<WriteReply> {
        self.decide_transaction(bucket, transaction, decision).await
    }

    async fn transaction_state(
        &self,
        bucket: BucketId,
        transaction: TransactionId,
    ) -> Result<TransactionState> {
        self.fate_of_transaction(bucket, transaction).await
    }

    async fn abort(&self, bucket: BucketId, transaction: TransactionId) -> Result<()> {
        let bucket = self.bucket(bucket).await?;
        if bucket.transactions.abort(transaction)? {
            self.transaction_counts.add_aborted();
            return Ok(());
        }
        self.give_up_missing_parts(bucket, ProducerTransactionId(transaction.0)).await
    }

    async fn keep_open(
        &self,
        bucket: BucketId,
        transactions: Vec<TransactionId>,
    ) -> Result<Vec<TransactionId>> {
        let bucket = self.bucket_for_call(bucket, WriteCall::Documents).await?;
        Ok(bucket.transactions.keep_open(transactions, Instant::now()))
    }

    async fn get_for_transaction(&self, request: DocumentsRequest) -> Result<Documents> {
        self.get_in_transaction(request).await
    }

    async fn push(&self, request: PushRequest) -> Result<PushReply> {
        let bucket = self.bucket_for_call(request.bucket, WriteCall::Mutations).await?;
        let begun: Vec<_> = request.branches.iter().map(|(vbucket, _)| *vbucket).collect();
        if !request.branches.is_empty() {
            // A new branch is not refused for lack of room: it may end a wait of epochs, and contains no mutations.
            let branches = request.branches;
            let begin =
                move |writer: &Writer, bucket: &Bucket| begin_branches(writer, bucket, &branches);
            self.run_exclusively(Arc::clone(&bucket), begin).await?;
        }
        let (mutations, error, bytes) = self.checked_pushes(&bucket, request.mutations).await;
        let at = Arc::clone(&bucket);
        self.wait_for_push(&bucket, &mutations).await?;
        let push = |reply| Work::Push(mutations, error, reply);
        let mut durable = self.queue(bucket, bytes, push).await?.durable;
        for vbucket in begun {
            if let Err(place) = durable.binary_search_by_key(&vbucket, |(known, _)| *known) {
                durable.insert(place, (vbucket, at.durable().get(vbucket)));
            }
        }
        Ok(PushReply { durable })
    }

    async fn push_for_transaction(&self, request: TransactionPush) -> Result<TransactionPushed> {
        self.push_in_transaction(request).await
    }

    async fn commit_pushed(&self, request: PushedCommitRequest) -> Result<PushReply> {
        self.commit_pushed_parts(request).await
    }

    async fn pushed_part_states(
        &self,
        look: PushedStateQuery,
    ) -> Result<Vec<(VbucketId, PartState)>> {
        self.look_at_pushed_parts(look).await
    }

    async fn abort_pushed(
        &self,
        bucket: BucketId,
        transaction: ProducerTransactionId,
    ) -> Result<()> {
        self.abort_pushed_transaction(bucket, transaction).await
    }

    async fn place(&self, bucket: BucketId) -> Result<SourcePlace> {
        let bucket = self.bucket(bucket).await?;
        bucket.wait_for_decisions(DECIDED_WAIT).await?;
        bucket.place()
    }

    /// Returns the ends of the durable histories of all served buckets. A bucket that is not
    /// served, or that waits for the outcome of a transaction for long, is listed as unanswered,
    /// since it would delay the others.
    async fn places(&self, known: Vec<KnownPlace>) -> Result<Places> {
        let mut places = Places::default();
        let has_catalog = self.catalog.borrow().is_some();
        // A prepared transaction may be committed already, and its writer may know it.
        let buckets: Vec<_> = known.iter().map(|known| self.find(known.bucket)).collect();
        let decided = buckets.iter().map(async |bucket| match bucket {
            Some(bucket) if bucket.has_late() => false,
            Some(bucket) => bucket.wait_for_decisions(PLACES_WAIT).await.is_ok(),
            None => true,
        });
        let decided = join_all(decided).await;
        let _showing = lock(&self.writer.showing);
        for ((known, found), is_decided) in known.into_iter().zip(buckets).zip(decided) {
            match found {
                Some(found) if is_decided => places.add(known, found.place_with_report()),
                // A bucket that this projector has not created yet has no mutations.
                None if has_catalog && self.may_be_new(known.bucket) => {}
                _ => places.unanswered.push(known.bucket),
            }
        }
        Ok(places)
    }

    async fn history(&self, bucket: BucketId) -> Result<SourceHistory> {
        let bucket = self.bucket(bucket).await?;
        let history = bucket.history();
        bucket.check_open()?;
        Ok(history)
    }

    async fn subscribe(&self, request: SubscribeRequest) -> Result<ResultStream<StreamMessage>> {
        let bucket = self.bucket(request.bucket).await?;
        let (out, messages) = byte_channel(self.config.stream_bytes_max);
        let context = Arc::clone(&self.streams);
        let catalog = self.catalog.subscribe();
        let stream = MaintenanceStream::new(context, bucket, catalog, &request, out)?;
        let task = self.env.spawn_request("maintenance stream", stream.run());
        Ok(Box::pin(TaskStream::new(messages, task)))
    }

    async fn backfill(&self, request: BackfillRequest) -> Result<ResultStream<BackfillMessage>> {
        let index = self.index(&request).await?;
        let bucket = self.bucket(index.bucket).await?;
        bucket.check_open()?;
        let vbuckets = request.vbuckets.unwrap_or_else(|| VbucketSet::all(bucket.info.vbuckets));
        let kept = bucket.ownership();
        if let Some(vbucket) = vbuckets.iter().find(|vbucket| !kept.owned.contains(*vbucket)) {
            return Err(bucket.not_owned(vbucket));
        }
        let (out, messages) = byte_channel(self.config.stream_bytes_max);
        let wanted = Arc::new(BackfillContent { node: request.node, index, vbuckets });
        let backfill = Backfill { wanted, out };
        let task = self.readings.join(&self.streams, &bucket, backfill);
        Ok(Box::pin(TaskStream::shared(messages, task)))
    }

    async fn sample(&self, bucket: BucketId) -> Result<Vec<Bytes>> {
        let bucket = self.bucket(bucket).await?;
        let store = Arc::clone(&self.streams.store);
        self.env.blocking(move || sample(&*store, bucket.info.id)).await
    }

    async fn hand_over(&self, request: HandOverRequest) -> Result<HandOverPiece> {
        hand_over::answer_target(self, request).await
    }

    async fn copy(&self, request: CopyRequest) -> Result<CopyAnswer> {
        copies::answer_request(self, request).await
    }
}

/// Reads the present documents with these ids. If one of them was changed by a producer's commit
/// that may be incomplete, returns the id of that commit as the error.
fn read_documents(
    store: &dyn DocumentStore,
    bucket: &Bucket,
    ids: &[String],
) -> Result<std::result::Result<Documents, ProducerTransactionId>> {
    let read = || store.get(bucket.info.id, ids, GET_BYTES_MAX);
    if !bucket.has_incomplete_pushed() {
        let found = read()?;
        // Order matters: what is committed after this look was not read.
        if !bucket.has_incomplete_pushed() {
            return Ok(Ok(found));
        }
    }
    let changes = || -> Result<Vec<_>> {
        ids.iter().map(|id| store.changed_at(bucket.info.id, id)).collect()
    };
    for _ in 0..READS_MAX {
        let before = changes()?;
        let found = read()?;
        if changes()? != before {
            continue;
        }
        let of = |(id, changed): (&String, &Option<Seqno>)| {
            bucket.incomplete_pushed_at(vbucket_of(id, bucket.info.vbuckets), (*changed)?)
        };
        return Ok(ids.iter().zip(&before).find_map(of).map_or(Ok(found), Err));
    }
    let what = format!("documents of bucket {} change faster than they are read", bucket.info.name);
    Err(Error::unavailable(what).with_hint("try again"))
}

impl Projector {
    /// Returns the index of a backfill request, after waiting until the catalog has it.
    async fn index(&self, request: &BackfillRequest) -> Result<Arc<IndexInfo>> {
        let look = |catalog: Option<&Catalog>| {
            let index = catalog?.local_index(request.index)?;
            (index.revision >= request.revision).then(|| Arc::clone(index))
        };
        let missing = || {
            let BackfillRequest { index, revision, .. } = request;
            let message =
                format!("the catalog has no index {index} with revision {revision} or later");
            Error::new(ErrorCode::Unknown, message)
        };
        self.wait_for(look, missing).await
    }
}
