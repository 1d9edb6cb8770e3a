//! Resync: what a follower does when nobody has the history any more that its copies lack.
//!
//! The source has purged it, or there is so much of it up to the next timestamp that it cannot be gathered. The copies
//! are not built anew: most of what they have is right. Instead
//!
//! 1. the follower forgets what it has received, and its next stream begins at the source's *present*;
//! 2. each index is compared, document by document, with a snapshot of the source that was taken since
//!    (`storage/src/build/compare.rs`): what differs becomes *corrections*, key-versions as the stream brings them. Meanwhile
//!    the stream's frames gather, no epoch is applied, and the copies answer for the epochs that they have;
//! 3. the first epoch whose cut covers all snapshots takes in the corrections, and behind them what the stream has
//!    brought up to its cut. It is one epoch for the store, the log and a crash, like any other.
//!
//! Why that is right: of one document the later mutation wins. What the stream has brought of it, from the present
//! on, is later than the snapshot's state of it or the same; where the stream says nothing, nothing has happened since
//! the snapshot. And the stream says of a document what it is in every index that is here. So at the cut the copies
//! have what the history has. The epochs in between were never applied: that the epoch's parent is not what was applied
//! before raises the floor to it, so none of them is answered with older data (I3).
//!
//! Nothing of this is kept on disk: after a crash before the epoch is in the log the follower finds its old place
//! purged and begins again; after that the log has the corrections. A loss of history ([`super::rollback`]) ends a resync
//! whose snapshots it has overtaken. Corrections and frames together are bounded; above the bound, and where the
//! snapshot does not come in the order of ids, the slices are dropped and built from a snapshot after all.

use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt;
use proto::cut::{Cut, EpochMark};
use proto::env::Task;
use proto::history::FailoverLogs;
use proto::ids::Seqno;
use proto::index::IndexInfo;
use proto::mutation::{BackfillMessage, KeyVersionsReader, KeyVersionsWriter};
use proto::{Error, ErrorCode, Result};

use super::builds::snapshot;
use super::{Follower, Shared, rules};
use storage::{EpochBatch, Piece};

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
    cuts: Vec<Cut>,
    /// Packed key-versions, by document.
    corrections: Bytes,
}

impl Compared {
    fn is_covered(&self, history: Option<&FailoverLogs>, mark: &EpochMark) -> bool {
        self.cuts.iter().all(|cut| rules::covers(history, &mark.cut, cut))
    }

    /// The batch with the corrections before all that the stream has brought.
    fn correct(&self, mut batch: EpochBatch) -> EpochBatch {
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

impl Follower {
    /// Forgets all that has come from streams: the next one begins behind what is applied.
    pub(super) fn forget_received(&mut self) {
        self.queue = None;
        self.resync = None;
        self.fed.clear();
        self.builds.clear();
    }

    /// The past that the copies lack cannot be had. What is being built begins anew with the next stream.
    pub(super) fn begin_resync(&mut self, why: &Error) {
        let applied = self.applied.as_ref().map(|mark| mark.epoch).unwrap_or_default();
        tracing::info!(bucket = %self.bucket, %applied, %why, "the copies are compared with a snapshot");
        self.forget_received();
        self.resync = Some(Resync::Wanted);
    }

    /// The last resort: all slices are dropped, and built anew when a stream brings their indexes.
    pub(super) async fn build_anew(&mut self) -> Result<()> {
        self.forget_received();
        for stored in self.stored() {
            self.shared.store.drop_index(stored.info.id).await?;
        }
        self.shared.slices_changed();
        Ok(())
    }

    /// Begins to compare what is here, where a resync's stream has begun.
    pub(super) fn compare_copies(&mut self, joined: &Cut) {
        if !matches!(self.resync, Some(Resync::Wanted)) {
            return;
        }
        let whole = self.stored().into_iter().filter(|stored| stored.floor.is_some());
        let fed = whole.filter_map(|stored| Some(Arc::clone(&self.fed.get(&stored.info.id)?.info)));
        let (out, done) = async_channel::bounded(1);
        let work = compare_all(self.shared.clone(), fed.collect(), out);
        let _task = self.shared.env.spawn("resync", work);
        self.resync = Some(Resync::Comparing { joined: joined.clone(), done, _task });
    }

    /// The copies are compared.
    pub(super) async fn compared(&mut self, compared: Result<Compared>) -> Result<()> {
        let compared = match compared {
            Ok(compared) => compared,
            Err(error) => {
                tracing::warn!(bucket = %self.bucket, %error, "its slices are built anew");
                self.build_anew().await?;
                return Err(Error::new(ErrorCode::DropData, error.message));
            }
        };
        if let Some(Resync::Comparing { joined, .. }) = self.resync.take() {
            let (bytes, snapshots) = (compared.corrections.len(), compared.cuts.len());
            tracing::info!(bucket = %self.bucket, snapshots, bytes, "the copies are compared");
            self.resync = Some(Resync::Compared { joined, compared });
        }
        self.check_compared()?;
        self.apply_ready().await?;
        self.bound_backlog().await
    }

    /// Begins anew where a snapshot is of a history that is no more, or ends before the stream began.
    pub(super) fn check_compared(&mut self) -> Result<()> {
        let (Some(Resync::Compared { joined, compared }), Some(logs)) =
            (&self.resync, &self.history)
        else {
            return Ok(());
        };
        if !compared.cuts.iter().any(|cut| rules::is_lost(logs, cut, joined)) {
            return Ok(());
        }
        let error = Error::new(ErrorCode::DropData, "a loss of history overtook a resync");
        self.begin_resync(&error);
        Err(error)
    }

    /// The next epoch that can be applied.
    pub(super) fn next_ready(&mut self) -> Result<Option<EpochBatch>> {
        let queue = self.queue.as_mut();
        let queue = queue.ok_or_else(|| Error::internal("epochs without a stream"))?;
        Ok(match &self.resync {
            None => queue.next_ready(),
            Some(Resync::Compared { compared, .. }) => {
                let history = self.history.as_deref();
                queue.skip_epochs(|mark| compared.is_covered(history, mark));
                queue.next_ready().map(|batch| compared.correct(batch))
            }
            Some(_) => {
                queue.keep_newest_epoch();
                None
            }
        })
    }

    /// A node that was away for long, while the projector began anew and forgot the timestamps in between, would
    /// gather all that it lacks for the first epoch that there is. Beyond a bound it does not, but resyncs; and where
    /// that comes to as much, its slices are built from a snapshot, which takes bounded memory whatever differs.
    pub(super) async fn bound_backlog(&mut self) -> Result<()> {
        let Some(queue) = &self.queue else { return Ok(()) };
        let corrections = match &self.resync {
            Some(Resync::Compared { compared, .. }) => compared.corrections.len(),
            _ => 0,
        };
        let bytes = (queue.staged_bytes() + corrections) as u64;
        if bytes <= bytes_max(&self.shared) {
            return Ok(());
        }
        let what = format!("bucket {}: {bytes} bytes wait for one epoch", self.bucket);
        let error = Error::new(ErrorCode::DropData, what);
        self.give_up_gathering(&error).await?;
        Err(error)
    }

    /// What the next epoch brings, or a resync has found to correct, is too much for one epoch.
    pub(super) async fn give_up_gathering(&mut self, why: &Error) -> Result<()> {
        if self.resync.is_none() {
            self.begin_resync(why);
            return Ok(());
        }
        tracing::warn!(bucket = %self.bucket, %why, "too much to gather: its slices are built anew");
        self.build_anew().await
    }
}

/// What may gather for one epoch. An epoch is one record of the log: with corrections, which may be half as much again,
/// and the message at hand on top it must fit into one, however large the memory is.
fn bytes_max(shared: &Shared) -> u64 {
    let record_bytes_max = shared.config.store.log.record_bytes_max as u64;
    let gathered = shared.config.queue_bytes_max().saturating_mul(QUEUES_GATHERED_MAX);
    gathered.min(record_bytes_max / 2)
}

/// Compares some indexes, one after another, and says what came out. Cancelled: nothing has changed.
async fn compare_all(
    shared: Shared,
    indexes: Vec<Arc<IndexInfo>>,
    out: async_channel::Sender<Result<Compared>>,
) {
    let compare = async {
        let (mut cuts, mut bodies, mut bytes) = (Vec::new(), Vec::new(), 0);
        for info in indexes {
            // They are put together in the end, which takes as much again.
            let room = (bytes_max(&shared) / 2).saturating_sub(bytes);
            let Some((cut, body)) = compare_until_done(&shared, &info, room).await? else {
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
    shared: &Shared,
    info: &IndexInfo,
    bytes_max: u64,
) -> Result<Option<(Cut, Bytes)>> {
    let is_here = || {
        shared.store.indexes().iter().any(|stored| {
            let same = (stored.info.id, stored.info.generation) == (info.id, info.generation);
            same && stored.floor.is_some()
        })
    };
    while is_here() {
        match compare(shared, info, bytes_max).await {
            Ok(compared) => return Ok(Some(compared)),
            Err(error) if matches!(error.code, ErrorCode::OverLimit | ErrorCode::Unsupported) => {
                return Err(error.context(format!("comparing index {}", info.spec.name)));
            }
            Err(error) => {
                tracing::warn!(index = %info.spec.name, %error, "a comparison begins anew");
                tokio::time::sleep(shared.config.retry).await;
            }
        }
    }
    Ok(None)
}

/// Where the snapshot ends, and the corrections, by document. `OverLimit` where they are longer than `bytes_max`.
async fn compare(shared: &Shared, info: &IndexInfo, bytes_max: u64) -> Result<(Cut, Bytes)> {
    let mut stream = snapshot(shared, info).await?;
    let early = || Error::unavailable("the snapshot ended before its end");
    let Some(BackfillMessage::Begin { cut }) = stream.next().await.transpose()? else {
        return Err(early());
    };
    let (store, env) = (&shared.fragments, &shared.env);
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
fn merge(bodies: &[Bytes]) -> Result<Bytes> {
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

#[cfg(test)]
#[path = "resync_tests.rs"]
mod tests;
