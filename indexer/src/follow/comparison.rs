//! The comparisons of a resync: a separate task compares the stored entries of each index with a
//! snapshot of the source.

use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt;
use proto::env::Task;
use proto::model::cut::{Cut, EpochMark};
use proto::model::history::FailoverLogs;
use proto::model::ids::Seqno;
use proto::model::index::IndexInfo;
use proto::rpc::mutation::{BackfillMessage, KeyVersionsReader, KeyVersionsWriter};
use proto::{Error, ErrorCode, Result};
use storage::{EpochBatch, SliceStore, VbucketMutations};

use super::backfill::snapshot;
use super::policy;
use crate::context::NodeContext;

/// The frames and corrections of one epoch may take this multiple of the queue's limit. A
/// projector accepts writes ahead of the coordinator, and each of them becomes key-versions of a
/// few indexes.
const QUEUES_GATHERED_MAX: u64 = 4;

/// The stage of a resync: the update of copies by comparison with a snapshot of the source.
pub(super) enum Resync {
    /// The resync is requested; the next stream will begin at the source's present.
    Wanted,
    /// The stream carries the mutations since `joined`, and the indexes are being compared.
    Comparing {
        /// The cut at which the stream began.
        joined: Cut,
        /// Receives the result, once.
        done: async_channel::Receiver<Result<ComparisonResult>>,
        _task: Task,
    },
    /// The comparisons are done. The first epoch that covers their snapshots will include the
    /// corrections.
    Compared {
        /// The cut at which the stream began.
        joined: Cut,
        /// The cuts of the snapshots, and the corrections.
        compared: ComparisonResult,
    },
}

/// The result of comparing the stored entries of indexes with snapshots of the source.
pub(super) struct ComparisonResult {
    /// The cut of each index's snapshot.
    pub(super) cuts: Vec<Cut>,
    /// The differences found, as packed key-versions ordered by document.
    pub(super) corrections: Bytes,
}

impl ComparisonResult {
    /// Returns true if an epoch covers the snapshots of all indexes.
    pub(super) fn is_covered(&self, history: Option<&FailoverLogs>, mark: &EpochMark) -> bool {
        self.cuts.iter().all(|cut| policy::covers(history, &mark.cut, cut))
    }

    /// Inserts the corrections before the stream's mutations of an epoch, and returns the epoch.
    pub(super) fn with_corrections(&self, mut batch: EpochBatch) -> EpochBatch {
        if !self.corrections.is_empty() {
            let (base, after, to) = (Seqno(0), Seqno(0), Seqno(u64::MAX));
            batch
                .pieces
                .insert(0, VbucketMutations { body: self.corrections.clone(), base, after, to });
        }
        batch
    }
}

impl Resync {
    /// Waits for the result of the comparisons; waits forever if none is running.
    pub async fn comparison_result(resync: &mut Option<Self>) -> Result<ComparisonResult> {
        match resync {
            Some(Self::Comparing { done, .. }) => {
                let ended = |_| Err(Error::internal("a comparison ended without a word"));
                done.recv().await.unwrap_or_else(ended)
            }
            _ => std::future::pending().await,
        }
    }
}

/// Returns the size limit, in bytes, of the waiting frames and corrections of one epoch. Each
/// epoch becomes one record of the log, however large the memory is. So the limit is at most half
/// of a record, which leaves space for the last message and for corrections.
pub(super) fn epoch_bytes_max(context: &NodeContext) -> u64 {
    let record_bytes_max = context.config.store.log.record_bytes_max as u64;
    let gathered = context.config.queue_bytes_max().saturating_mul(QUEUES_GATHERED_MAX);
    gathered.min(record_bytes_max / 2)
}

/// Compares indexes one after another and sends the result. Does not change the indexes.
pub(super) async fn compare_all(
    context: NodeContext,
    indexes: Vec<Arc<IndexInfo>>,
    out: async_channel::Sender<Result<ComparisonResult>>,
) {
    let compare = async {
        let (mut cuts, mut bodies, mut bytes) = (Vec::new(), Vec::new(), 0);
        for info in indexes {
            // Merging the bodies at the end takes the same memory again.
            let room = (epoch_bytes_max(&context) / 2).saturating_sub(bytes);
            let Some((cut, body)) = compare_until_done(&context, &info, room).await? else {
                continue;
            };
            bytes += body.len() as u64;
            cuts.push(cut);
            bodies.push(body);
        }
        Ok(ComparisonResult { cuts, corrections: merge(&bodies)? })
    };
    // This fails only if the follower has ended, and then this task is cancelled too.
    let _ = out.send(compare.await).await;
}

/// Compares an index with a snapshot of the source, again after each temporary error. Returns the
/// snapshot's cut and the corrections; `None` if the index is no longer on the node.
async fn compare_until_done(
    context: &NodeContext,
    info: &IndexInfo,
    bytes_max: u64,
) -> Result<Option<(Cut, Bytes)>> {
    let is_here = || {
        context
            .store
            .indexes()
            .iter()
            .any(|stored| stored.id() == info.local_id() && stored.floor.is_some())
    };
    while is_here() {
        match compare(context, info, bytes_max).await {
            Ok(compared) => return Ok(Some(compared)),
            Err(error) if matches!(error.code, ErrorCode::OverLimit | ErrorCode::Unsupported) => {
                return Err(error.context(format!("comparing index {}", info.spec.name)));
            }
            Err(error) => {
                tracing::warn!(index = %info.spec.name, %error, "a comparison begins anew");
                tokio::time::sleep(context.config.retry).await;
            }
        }
    }
    Ok(None)
}

/// Compares an index with one snapshot of the source. Returns the snapshot's cut and the
/// corrections, by document. Returns the error `OverLimit` if the corrections are longer than
/// `bytes_max`.
async fn compare(context: &NodeContext, info: &IndexInfo, bytes_max: u64) -> Result<(Cut, Bytes)> {
    let mut stream = snapshot(context, info).await?;
    let early = || Error::unavailable("the snapshot ended before its end");
    let Some(BackfillMessage::Begin { cut }) = stream.next().await.transpose()? else {
        return Err(early());
    };
    let (store, env) = (&context.store, &context.env);
    let mut comparison = store.compare(info.local_id(), cut.clone()).await?;
    while let Some(message) = stream.next().await {
        match message? {
            BackfillMessage::Begin { .. } => return Err(early()),
            BackfillMessage::Documents(body) => {
                let work = move || comparison.compare_documents(&body).map(|()| comparison);
                comparison = env.blocking(work).await?;
            }
            BackfillMessage::Progress { .. } => {}
            BackfillMessage::End => {
                let corrections = env.blocking(move || comparison.finish(bytes_max)).await?;
                return Ok((cut, corrections));
            }
        }
        comparison.check_bytes(bytes_max)?;
    }
    Err(early())
}

/// Merges the corrections of several indexes, each ordered by document id. The states of one
/// document in several indexes become one mutation.
pub(super) fn merge(bodies: &[Bytes]) -> Result<Bytes> {
    let mut readers: Vec<_> = bodies.iter().map(|body| KeyVersionsReader::new(body)).collect();
    let mut heads = readers.iter_mut().map(|r| r.next().transpose()).collect::<Result<Vec<_>>>()?;
    let mut out = KeyVersionsWriter::default();
    while let Some(id) = heads.iter().flatten().map(|versions| versions.id).min() {
        let mut of_document = Vec::new();
        for (head, reader) in heads.iter_mut().zip(&mut readers) {
            if let Some(versions) = head.take_if(|versions| versions.id == id) {
                of_document.push(versions);
                *head = reader.next().transpose()?;
            }
        }
        let Some(last) = of_document.iter().max_by_key(|v| v.seqno_minus_base) else { break };
        out.mutation(last.seqno_minus_base, last.kind, id, of_document.len());
        let indexes = of_document.iter().flat_map(|versions| versions.indexes());
        indexes.for_each(|keys| out.copy_index(&keys));
    }
    Ok(out.finish())
}
