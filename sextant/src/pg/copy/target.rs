//! The target of the documents of a COPY.
//!
//! In a transaction the documents are written in the transaction. Any other COPY is one commit up
//! to [`COMMIT_DOCUMENTS_MAX`] documents and [`COMMIT_BYTES_MAX`], so that a bad line stores
//! nothing:
//!
//! - A short COPY is held in memory and written by one request at its end, like an INSERT.
//! - A longer COPY continues in an implicit transaction, whose changes are in the memory of the
//!   projector.
//! - A COPY beyond these bounds, or beyond the memory that its projector has for transactions,
//!   commits its first documents, sends a notice, and stores further documents batch by batch when
//!   they arrive. With `atomic on` it continues in its transaction instead, and fails at the
//!   transaction's limits.
//!
//! One batch is in flight while the next ones are checked. There are never two in flight, so that a
//! later line with the same id wins.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use proto::model::bucket::BucketInfo;
use proto::model::cut::WritePosition;
use proto::rpc::api::CheckedWrites;
use proto::{Error, ErrorCode, Result};

use crate::access::Access;
use crate::flow::Room;
use crate::pg::message::error::Notice;
use crate::pg::session::floors::{OpenOutcome, leaves_open};
use crate::pg::session::state::SessionState;
use crate::pg::session::transaction::{Transaction, TransactionChanges};

/// The maximum number of documents of one commit; a commit with more is a large commit, which costs
/// each index more.
const COMMIT_DOCUMENTS_MAX: u64 = 100_000;
/// The maximum number of bytes of documents of one commit.
const COMMIT_BYTES_MAX: usize = 64 << 20;
/// The maximum memory of documents that are held here, in bytes: one request can write them without
/// delaying others.
const HELD_BYTES_MAX: usize = 8 << 20;
/// The approximate memory of a document in addition to its text, in bytes.
const DOCUMENT_BYTES: usize = 128;

/// The write of a batch; returns the position, or `None` in a transaction.
type InFlight = Pin<Box<dyn Future<Output = Result<Option<WritePosition>>> + Send>>;

/// The target of the next documents.
enum Destination {
    /// The session's memory: documents are held until the end.
    Held(Vec<CheckedWrites>, Vec<Room>),
    /// The open transaction.
    In(TransactionChanges),
    /// The bucket, in a commit for each batch.
    Parts,
}

/// The target of the documents of a COPY.
pub(super) struct CopyTarget {
    access: Access,
    bucket: Arc<BucketInfo>,
    way: Destination,
    /// True if the COPY is only bounded by the limits of a transaction.
    is_unbounded: bool,
    /// True if the transaction has other statements too.
    is_shared: bool,
    /// The number of documents that were sent so far, and their bytes.
    documents: u64,
    bytes: usize,
    /// The batch in flight, with its number of documents and the uncertain outcome before it.
    writing: Option<(InFlight, u64, Option<OpenOutcome>)>,
    /// A copy of the batch in flight, to be stored in a separate commit if the transaction has no
    /// memory for it.
    spare: Option<CheckedWrites>,
    stored: u64,
    /// The number of documents of which it is unknown whether they are stored.
    open: u64,
}

impl CopyTarget {
    pub(super) fn new(
        bucket: Arc<BucketInfo>,
        is_atomic: bool,
        state: &mut SessionState,
    ) -> Result<Self> {
        // In the extended protocol, the message after the COPY shows whether it is alone.
        let may_be_alone = state.block.is_last || !state.block.in_text;
        let is_held = matches!(state.transaction, Transaction::None) && may_be_alone;
        let way = match is_held {
            true => None,
            false => state.writing(&bucket)?.map(Destination::In),
        };
        Ok(Self {
            access: state.access.clone(),
            bucket,
            way: way.unwrap_or(Destination::Held(Vec::new(), Vec::new())),
            is_unbounded: is_atomic || !is_held,
            is_shared: !is_held,
            documents: 0,
            bytes: 0,
            writing: None,
            spare: None,
            stored: 0,
            open: 0,
        })
    }

    /// Returns the number of documents that were sent.
    pub(super) fn documents(&self) -> u64 {
        self.documents
    }

    /// Sends a batch after the previous one is stored.
    pub(super) async fn send(
        &mut self,
        writes: CheckedWrites,
        state: &mut SessionState,
    ) -> Result<()> {
        self.arrive(state).await?;
        let (documents, bytes) = (writes.writes().len(), writes.document_bytes());
        let is_over = self.documents + documents as u64 > COMMIT_DOCUMENTS_MAX
            || self.bytes + bytes > COMMIT_BYTES_MAX;
        if is_over && !self.is_unbounded && !matches!(self.way, Destination::Parts) {
            self.store_first(state).await?;
        }
        self.documents += documents as u64;
        self.bytes += bytes;
        if let Destination::Held(held, rooms) = &mut self.way {
            let all = self.bytes + self.documents as usize * DOCUMENT_BYTES;
            let room = || state.memory().try_take(bytes + documents * DOCUMENT_BYTES);
            // Every session has the memory of one piece.
            let is_first = held.is_empty();
            let room = if is_first { None } else { room() };
            if all <= HELD_BYTES_MAX && (is_first || room.is_some()) {
                held.push(writes);
                rooms.extend(room);
                return Ok(());
            }
            self.enter_transaction(state).await?;
        }
        self.begin_write(writes, state)
    }

    /// Ends the data. Held documents are written in one request if the transaction has no other
    /// change.
    pub(super) async fn end(&mut self, state: &mut SessionState) -> Result<()> {
        self.arrive(state).await?;
        match &mut self.way {
            Destination::Held(held, _) if !held.is_empty() => match state.block.is_last {
                true => self.store_held(state).await,
                // The statements after it are known to share its commit, so no part of it may be stored before.
                false => {
                    self.is_unbounded = true;
                    self.enter_transaction(state).await
                }
            },
            _ => Ok(()),
        }
    }

    /// Changes the target to an implicit transaction.
    async fn enter_transaction(&mut self, state: &mut SessionState) -> Result<()> {
        let is_last = std::mem::replace(&mut state.block.is_last, false);
        let writing = state.writing(&self.bucket);
        state.block.is_last = is_last;
        let writing = writing?.ok_or_else(|| Error::internal("a COPY found no transaction"))?;
        let (changes, snapshot) = writing.clone();
        let Destination::Held(held, rooms) =
            std::mem::replace(&mut self.way, Destination::In(writing))
        else {
            return Ok(());
        };
        if held.is_empty() {
            return Ok(());
        }
        let all = joined(held);
        match changes.write(snapshot, all.clone()).await {
            Err(full) if is_full(&full) && !self.is_unbounded => {
                self.way = Destination::Held(vec![all], rooms);
                self.store_held(state).await?;
                self.send_split_notice(state);
                Ok(())
            }
            written => written.map(drop),
        }
    }

    /// Stores all documents so far in one commit, because there are more than one commit may have.
    async fn store_first(&mut self, state: &mut SessionState) -> Result<()> {
        match &self.way {
            Destination::Held(..) => self.store_held(state).await?,
            _ => self.commit_first(self.documents, state).await?,
        }
        self.send_split_notice(state);
        Ok(())
    }

    /// Commits the first documents, which are in the transaction.
    async fn commit_first(&mut self, documents: u64, state: &mut SessionState) -> Result<()> {
        self.open = documents;
        let ended = state.end_block().await;
        self.settle(ended.map(|()| None), (0, None), state)?;
        self.stored = documents;
        // The COPY continues in a separate block.
        state.begin_in_block();
        self.way = Destination::Parts;
        Ok(())
    }

    /// Sends the notice that the COPY is stored in several commits.
    fn send_split_notice(&self, state: &mut SessionState) {
        let message = format!(
            "COPY {}: its first {} documents are stored, and the others as they come; one commit takes {COMMIT_DOCUMENTS_MAX} documents or {} MB",
            self.bucket.name,
            self.stored,
            COMMIT_BYTES_MAX >> 20
        );
        let hint = "COPY … WITH (atomic = on) is one commit, up to the limits of a transaction";
        state.notices.push(Notice {
            severity: "NOTICE",
            sqlstate: "00000",
            message: message.into(),
            hint: Some(hint.into()),
        });
    }

    /// Stores the held documents.
    async fn store_held(&mut self, state: &mut SessionState) -> Result<()> {
        let Destination::Held(held, _rooms) = std::mem::replace(&mut self.way, Destination::Parts)
        else {
            return Ok(());
        };
        self.begin_write(joined(held), state)?;
        self.arrive(state).await
    }

    /// Starts to write a batch.
    fn begin_write(&mut self, writes: CheckedWrites, state: &mut SessionState) -> Result<()> {
        let documents = writes.writes().len() as u64;
        let (mut writing, before): (InFlight, _) = match &self.way {
            Destination::In((changes, snapshot)) => {
                let (changes, snapshot) = (Arc::clone(changes), *snapshot);
                self.spare = (!self.is_unbounded).then(|| writes.clone());
                let write = async move { changes.write(snapshot, writes).await.map(|_| None) };
                (Box::pin(write), None)
            }
            _ => {
                self.open = documents;
                let before = state.settings.floors.begin_write(self.bucket.id);
                let (access, bucket) = (self.access.clone(), Arc::clone(&self.bucket));
                let write =
                    async move { Ok(Some(access.writer(&bucket)?.write(writes).await?.position)) };
                (Box::pin(write), Some(before))
            }
        };
        // The first poll starts the write; it runs on while the next lines are read.
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        if let Poll::Ready(reply) = writing.as_mut().poll(&mut context) {
            if self.spare.is_none() || !reply.as_ref().is_err_and(is_full) {
                self.spare = None;
                return self.settle(reply, (documents, before), state);
            }
            writing = Box::pin(std::future::ready(reply));
        }
        self.writing = Some((writing, documents, before));
        Ok(())
    }

    /// Waits for the batch in flight.
    pub(super) async fn arrive(&mut self, state: &mut SessionState) -> Result<()> {
        // The batch stays in `self` during the wait: after an interrupt the error must still count it.
        while let Some((writing, ..)) = &mut self.writing {
            let reply = writing.await;
            let Some((_, documents, before)) = self.writing.take() else { return Ok(()) };
            match self.spare.take() {
                // No document of the batch was written: the transaction contains the first part.
                Some(refused) if reply.as_ref().is_err_and(is_full) => {
                    self.commit_first(self.documents - documents, state).await?;
                    self.send_split_notice(state);
                    self.begin_write(refused, state)?;
                }
                _ => self.settle(reply, (documents, before), state)?,
            }
        }
        Ok(())
    }

    /// Records the outcome of a batch's write.
    fn settle(
        &mut self,
        reply: Result<Option<WritePosition>>,
        (documents, before): (u64, Option<OpenOutcome>),
        state: &mut SessionState,
    ) -> Result<()> {
        if !reply.as_ref().is_err_and(leaves_open) {
            self.open = 0;
            if let Some(before) = before {
                state.settings.floors.end_write(self.bucket.id, before);
            }
        }
        if let Some(position) = reply? {
            self.stored += documents;
            state.settings.note_write(position);
        }
        Ok(())
    }

    /// Adds the bucket's name and the number of stored documents to an error.
    pub(super) fn explain(&self, error: Error) -> Error {
        let mut error = error.context(format!("COPY {}", self.bucket.name));
        if self.is_shared {
            return error;
        }
        error.message += &match (&self.way, self.open) {
            (Destination::Parts, 0) if self.stored > 0 => {
                format!("; {} documents are stored", self.stored)
            }
            (_, 0) => "; nothing is stored".to_owned(),
            (_, open) => {
                format!("; {} documents are stored, and perhaps {open} more", self.stored)
            }
        };
        error
    }
}

/// True if the error means that the memory for open transactions is used up, possibly by other
/// COPYs.
fn is_full(error: &Error) -> bool {
    matches!(error.code, ErrorCode::OverLimit | ErrorCode::TooBusy | ErrorCode::OutOfRoom)
}

fn joined(mut batches: Vec<CheckedWrites>) -> CheckedWrites {
    match batches.len() {
        1 => batches.remove(0),
        _ => batches.iter().flat_map(|batch| batch.writes().iter().cloned()).collect(),
    }
}
