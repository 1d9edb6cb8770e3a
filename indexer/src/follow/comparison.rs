//! The comparisons of a resync: each index with a snapshot of the source, off the follower's loop.

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
use storage::{EpochBatch, Piece};

use super::backfill::snapshot;
use super::policy;
use crate::context::NodeContext;

/// So many times what the queue may hold is gathered for one epoch: what the projector lets writers be ahead of the
/// coordinator, as the key-versions of a few indexes. Corrections count too.
const QUEUES_GATHERED_MAX: u64 = 4;

/// How far a resync is.
pub(super) enum Resync {
    /// The next stream begins at the present.
    Wanted,
    /// The stream brings what is new since `joined`; the copies are being compared.
    Comparing {
        /// Where the stream began.
        joined: Cut,
        /// Tells of the end, once.
        done: async_channel::Receiver<Result<Compared>>,
        _task: Task,
    },
    /// The first epoch that covers the snapshots takes in the corrections.
    Compared {
        /// Where the stream began.
        joined: Cut,
        /// What came out.
        compared: Compared,
    },
}

/// What the comparisons came to.
pub(super) struct Compared {
    /// Where the snapshots end.
    pub(super) cuts: Vec<Cut>,
    /// Packed key-versions, by document.
    pub(super) corrections: Bytes,
}

impl Compared {
    pub(super) fn is_covered(&self, history: Option<&FailoverLogs>, mark: &EpochMark) -> bool {
        self.cuts.iter().all(|cut| policy::covers(history, &mark.cut, cut))
    }

    /// The batch with the corrections before all that the stream has brought.
    pub(super) fn correct(&self, mut batch: EpochBatch) -> EpochBatch {
        if !self.corrections.is_empty() {
            let (base, after, to) = (Seqno(0), Seqno(0), Seqno(u64::MAX));
            batch.pieces.insert(0, Piece { body: self.corrections.clone(), base, after, to });
        }
        batch
    }
}

impl Resync {
    /// Waits until the copies are compared; for ever where there is nothing to wait for.
    pub async fn compared(resync: &mut Option<Self>) -> Result<Compared> {
        match resync {
            Some(Self::Comparing { done, .. }) => {
                let ended = |_| Err(Error::internal("a comparison ended without a word"));
                done.recv().await.unwrap_or_else(ended)
            }
            _ => std::future::pending().await,
        }
    }
}

/// What may gather for one epoch. An epoch is one record of the log: with corrections, which may be half as much again,
/// and the message at hand on top it must fit into one, however large the memory is.
pub(super) fn bytes_max(context: &NodeContext) -> u64 {
    let record_bytes_max = context.config.store.log.record_bytes_max as u64;
    let gathered = context.config.queue_bytes_max().saturating_mul(QUEUES_GATHERED_MAX);
    gathered.min(record_bytes_max / 2)
}

/// Compares some indexes, one after another, and says what came out. Cancelled: nothing has changed.
pub(super) async fn compare_all(
    context: NodeContext,
    indexes: Vec<Arc<IndexInfo>>,
    out: async_channel::Sender<Result<Compared>>,
) {
    let compare = async {
        let (mut cuts, mut bodies, mut bytes) = (Vec::new(), Vec::new(), 0);
        for info in indexes {
            // They are put together in the end, which takes as much again.
            let room = (bytes_max(&context) / 2).saturating_sub(bytes);
            let Some((cut, body)) = compare_until_done(&context, &info, room).await? else {
                continue;
            };
            bytes += body.len() as u64;
            cuts.push(cut);
            bodies.push(body);
        }
        Ok(Compared { cuts, corrections: merge(&bodies)? })
    };
    // The follower is gone only when this task is cancelled too.
    let _ = out.send(compare.await).await;
}

/// Compares an index, again from the beginning after an error; `None` where it is here no more.
async fn compare_until_done(
    context: &NodeContext,
    info: &IndexInfo,
    bytes_max: u64,
) -> Result<Option<(Cut, Bytes)>> {
    let is_here = || {
        context.store.indexes().iter().any(|stored| {
            let same = (stored.info.id, stored.info.generation) == (info.id, info.generation);
            same && stored.floor.is_some()
        })
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

/// Where the snapshot ends, and the corrections, by document. `OverLimit` where they are longer than `bytes_max`.
async fn compare(context: &NodeContext, info: &IndexInfo, bytes_max: u64) -> Result<(Cut, Bytes)> {
    let mut stream = snapshot(context, info).await?;
    let early = || Error::unavailable("the snapshot ended before its end");
    let Some(BackfillMessage::Begin { cut }) = stream.next().await.transpose()? else {
        return Err(early());
    };
    let (store, env) = (&context.fragments, &context.env);
    let mut comparison = store.compare(info.id, info.generation, cut.clone()).await?;
    while let Some(message) = stream.next().await {
        match message? {
            BackfillMessage::Begin { .. } => return Err(early()),
            BackfillMessage::Documents(body) => {
                let work = move || comparison.documents(&body).map(|()| comparison);
                comparison = env.blocking(work).await?;
            }
            BackfillMessage::End => {
                let corrections = env.blocking(move || comparison.finish(bytes_max)).await?;
                return Ok((cut, corrections));
            }
        }
        comparison.check_bytes(bytes_max)?;
    }
    Err(early())
}

/// One body of several, each in the order of ids: the states of a document in several indexes become one mutation.
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
