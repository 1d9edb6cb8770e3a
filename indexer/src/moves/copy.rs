//! Copies the files of a slice to this node, in rounds. Each round copies the parts that are new
//! since the previous one. The rounds end when few bytes are missing.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use futures::StreamExt;
use futures::future::join;
use proto::flow::{ByteReceiver, ByteSender, byte_channel};
use proto::lock::lock;
use proto::model::ids::{BucketId, Epoch, MoveId, NodeId, SliceId};
use proto::model::moves::MovePhase;
use proto::model::node::NodeInfo;
use proto::rpc::api::ResultStream;
use proto::rpc::export::{ExportMessage, ExportRequest, FilePiece};
use proto::{Error, Result};
use storage::ReceivedFiles;
use tokio::sync::{Semaphore, watch};
use tokio::time::{Instant, timeout};

use super::incoming_move::{CopyState, IncomingMove, PAUSE};
use crate::context::NodeContext;

/// The size of a round, in bytes, below which the next round is the last one. The last round
/// delays epochs, because it runs between two of them.
const SMALL_ROUND_BYTES: u64 = 4 << 20;
/// Maximum number of rounds before the last one.
const ROUNDS_MAX: usize = 6;
/// The longest time without data from the source, after which a round fails.
const SILENCE: Duration = Duration::from_secs(10);
/// The maximum bytes of received file pieces that are not written yet: about as much as a network
/// delivers during a slow write.
const IN_FLIGHT_BYTES: usize = 8 << 20;
/// The maximum number of file pieces that are written together on one thread.
const PIECES_TOGETHER_MAX: usize = 16;
/// The pause between two attempts of a restore that no copy can serve. Such a restore waits until
/// the slice can be rebuilt from the source.
const PAUSE_HOPELESS: Duration = Duration::from_secs(2);

impl IncomingMove {
    /// Creates the move of a slice to this node, and starts to copy.
    pub(super) fn begin(
        context: &NodeContext,
        slice: SliceId,
        bucket: BucketId,
        id: Option<MoveId>,
        changed: &watch::Sender<u64>,
        turns: Option<Arc<Semaphore>>,
    ) -> Arc<Self> {
        let state = CopyState {
            phase: MovePhase::Copying,
            bytes: 0,
            bytes_total: 0,
            bytes_per_s: 0,
            trouble: None,
            failures: 0,
            source: None,
            absent: BTreeSet::new(),
            progressed: Instant::now(),
            not_before: Instant::now(),
            copying: None,
        };
        let mv = Arc::new(Self {
            slice,
            id,
            bucket,
            state: Mutex::new(state),
            received: tokio::sync::Mutex::new(None),
            changed: changed.clone(),
            turns,
        });
        // The stream decides later whether this older copy may stay.
        if mv.is_slice_readable(context) {
            lock(&mv.state).phase = MovePhase::Copied;
        } else {
            mv.start_copying(context);
        }
        mv
    }

    /// Starts the task that copies the slice's files.
    pub(super) fn start_copying(self: &Arc<Self>, context: &NodeContext) {
        // A strong reference would keep the move alive, whose end cancels this task.
        let (mv, own) = (Arc::downgrade(self), context.clone());
        let mut has_begun = false;
        // A round requests the missing parts, whatever ended the previous round.
        let copy = move || {
            // A panic counts as a failure, so that another source or a rebuild is tried, or the move is undone.
            if let Some(mv) = mv.upgrade().filter(|_| has_begun) {
                mv.record_failure(Error::internal(
                    "copying the slice's files panicked; the log says where",
                ));
            }
            has_begun = true;
            copy_until_done(Weak::clone(&mv), own.clone())
        };
        let task = context.env.spawn_restarted("copy-slice", copy);
        let mut state = lock(&self.state);
        (state.phase, state.copying) = (MovePhase::Copying, Some(task));
    }

    /// Makes one attempt to copy the files. Returns false after an error, so that the caller
    /// tries again.
    async fn copy(&self, context: &NodeContext) -> bool {
        match self.copy_rounds(context).await {
            Ok(()) => {
                let mut state = lock(&self.state);
                (state.phase, state.trouble) = (MovePhase::Copied, None);
                if self.id.is_some() {
                    state.failures = 0;
                }
                drop(state);
                self.signal_change(context);
                true
            }
            Err(error) => {
                self.record_failure(error);
                if self.is_hopeless(context) {
                    self.signal_change(context);
                }
                false
            }
        }
    }

    /// Copies rounds from one source until few bytes are missing. Then compares a restored slice
    /// with its source.
    async fn copy_rounds(&self, context: &NodeContext) -> Result<()> {
        let _turn = self.wait_for_turn().await;
        let failures = lock(&self.state).failures as usize;
        let sources = self.sources(context)?;
        let source = &sources[failures % sources.len()];
        lock(&self.state).source = Some(source.id);
        for _ in 0..ROUNDS_MAX {
            let mut received = self.received.lock().await;
            if received.as_ref().is_none_or(|received| received.source() != source.id) {
                *received = Some(context.store.begin_receiving(source.id));
            }
            let Some(received) = received.as_mut() else { return Ok(()) };
            let bytes = self.run_round(context, source, received, Epoch(0), SILENCE).await?;
            if bytes < SMALL_ROUND_BYTES {
                break;
            }
        }
        self.compare(context, source).await
    }

    /// Runs one round: requests the files that are missing from `source`, stores them, and
    /// returns the number of bytes received. Fails after the time `patience` without data.
    pub(super) async fn run_round(
        &self,
        context: &NodeContext,
        source: &NodeInfo,
        received: &mut ReceivedFiles,
        epoch: Epoch,
        patience: Duration,
    ) -> Result<u64> {
        let request = ExportRequest {
            slice: self.slice,
            id: self.id,
            epoch,
            have: received.complete_files(),
            opening: received.head().map(|head| head.opening),
            timeout_ms: patience.as_millis() as u64,
        };
        let late = |_| late_error(source.id);
        let indexer = context.directory.indexer(source);
        let mut messages = timeout(patience, indexer.export(request)).await.map_err(late)??;
        let first = timeout(patience, messages.next()).await.map_err(late)?;
        match first.ok_or_else(|| Error::unavailable("the source went away"))?? {
            ExportMessage::Head(head) => received.begin_round(head).await?,
            _ => return Err(Error::unavailable("the source described nothing")),
        }
        lock(&self.state).bytes_total += received.missing_bytes();
        let (pieces, arrived) = byte_channel(IN_FLIGHT_BYTES);
        let arriving = self.pass_on(messages, pieces, source.id, patience);
        let (bytes, stored) = join(arriving, store(arrived, received)).await;
        // A failure of the disk ends the other half as well; it is the cause.
        stored?;
        let bytes = bytes?;
        received.sync().await?;
        match received.is_complete() {
            true => Ok(bytes),
            false => Err(Error::unavailable("files are missing")),
        }
    }

    /// Passes the received file pieces of a round to the task that stores them, until the round
    /// ends. Returns the bytes of the pieces.
    async fn pass_on(
        &self,
        mut messages: ResultStream<ExportMessage>,
        pieces: ByteSender<FilePiece>,
        source: NodeId,
        patience: Duration,
    ) -> Result<u64> {
        let (mut bytes, began) = (0, Instant::now());
        loop {
            let message =
                timeout(patience, messages.next()).await.map_err(|_| late_error(source))?;
            match message.ok_or_else(|| Error::unavailable("the source went away"))?? {
                ExportMessage::Head(_) => {
                    return Err(Error::unavailable("the source described its files twice"));
                }
                ExportMessage::Piece(piece) => {
                    let len = piece.bytes.len();
                    bytes += len as u64;
                    let ms = began.elapsed().as_millis().max(1) as u64;
                    self.note_bytes(len as u64, bytes.saturating_mul(1_000) / ms);
                    if pieces.send(piece, len).await.is_err() {
                        return Ok(bytes);
                    }
                }
                ExportMessage::End => return Ok(bytes),
            }
        }
    }
}

/// Stores file pieces as they arrive. The pieces that arrive during a write are stored together.
async fn store(pieces: ByteReceiver<FilePiece>, received: &mut ReceivedFiles) -> Result<()> {
    let mut arrived = pieces.ready_chunks(PIECES_TOGETHER_MAX);
    while let Some(pieces) = arrived.next().await {
        received.store_pieces(pieces).await?;
    }
    Ok(())
}

/// Returns the error for a source that did not answer in time.
fn late_error(source: NodeId) -> Error {
    Error::unavailable(format!("node {source} did not answer in time"))
}
/// Tries to copy the files until few bytes are missing, or until the move is dropped.
async fn copy_until_done(mv: Weak<IncomingMove>, context: NodeContext) {
    while let Some(mv) = mv.upgrade() {
        if mv.copy(&context).await {
            return;
        }
        let hopeless = mv.is_hopeless(&context);
        drop(mv);
        tokio::time::sleep(if hopeless { PAUSE_HOPELESS } else { PAUSE }).await;
    }
}
