//! Writes the documents of a COPY, in one commit or several.
//!
//! A COPY in a transaction becomes part of it. Any other COPY is one commit if it has at most
//! [`COMMIT_DOCUMENTS_MAX`] documents and [`COMMIT_BYTES_MAX`] bytes, so that nothing is stored
//! if a line is bad:
//!
//! - The documents of a short COPY are collected in memory and written by one request at its end,
//!   like an INSERT.
//! - A longer COPY continues in an implicit transaction, whose changes are in the memory of the
//!   projector.
//! - A COPY that exceeds these limits, or the memory of its projector for transactions, commits
//!   its first documents and sends a notice. It then stores further documents in batches as they
//!   arrive. With `atomic on` it continues in its transaction instead, and fails at the limits of
//!   the transaction.
//!
//! While one batch is being written, the next ones are checked. Two batches are never written at
//! the same time, so that of two lines with the same id the later one wins.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use proto::model::bucket::BucketInfo;
use proto::model::cut::WritePosition;
use proto::rpc::api::CheckedWrites;
use proto::{Error, ErrorCode, Result};

use crate::access::Access;
use crate::flow::ReservedMemory;
use crate::pg::message::error::Notice;
use crate::pg::session::floors::{OpenOutcome, leaves_open};
use crate::pg::session::state::SessionState;
use crate::pg::session::transaction::{Transaction, TransactionChanges};

/// The maximum number of documents of one commit. A commit with more documents counts as a large
/// commit, which costs each index more.
const COMMIT_DOCUMENTS_MAX: u64 = 100_000;
/// The maximum number of bytes of documents of one commit.
const COMMIT_BYTES_MAX: usize = 64 << 20;
/// The maximum size, in bytes, of documents that are collected in memory. One request can write
/// this much without delaying others.
const HELD_BYTES_MAX: usize = 8 << 20;
/// The approximate memory of a document in addition to its text, in bytes.
const DOCUMENT_BYTES: usize = 128;

/// The write of a batch in progress. Returns the position of the write, or `None` in a
/// transaction.
type InFlight = Pin<Box<dyn Future<Output = Result<Option<WritePosition>>> + Send>>;

/// The place where the next documents are written.
enum Destination {
    /// The session's memory, where documents are collected until the end, with the memory
    /// reserved for them.
    Held(Vec<CheckedWrites>, Vec<ReservedMemory>),
    /// The open transaction of the session.
    In(TransactionChanges),
    /// The bucket, with a commit for each batch.
    Parts,
}

/// The writer of the documents of a COPY.
pub(super) struct CopyWriter {
    access: Access,
    bucket: Arc<BucketInfo>,
    way: Destination,
    /// True if the COPY may have any length, within the limits of a transaction (`atomic on`).
    is_unbounded: bool,
    /// True if the transaction also has other statements.
    is_shared: bool,
    /// The number of documents that were sent so far; the next field has their bytes.
    documents: u64,
    bytes: usize,
    /// The batch that is being written: its write, its number of documents, and whether an
    /// earlier outcome was unknown.
    writing: Option<(InFlight, u64, Option<OpenOutcome>)>,
    /// A copy of the batch that is being written. It is stored in a separate commit if the
    /// transaction has no memory for it.
    spare: Option<CheckedWrites>,
    stored: u64,
    /// The number of documents for which it is unknown whether they are stored.
    open: u64,
}

impl CopyWriter {
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
            false => state.changes_to_write(&bucket)?.map(Destination::In),
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
        self.await_write(state).await?;
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
            let room = || state.memory().try_reserve(bytes + documents * DOCUMENT_BYTES);
            // The memory of one piece is not reserved, since each session may use as much.
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

    /// Finishes the COPY. Documents in memory are written by one request, unless the transaction
    /// has other changes.
    pub(super) async fn end(&mut self, state: &mut SessionState) -> Result<()> {
        self.await_write(state).await?;
        match &mut self.way {
            Destination::Held(held, _) if !held.is_empty() => match state.block.is_last {
                true => self.store_collected(state).await,
                // Later statements of the text belong to the same commit, so no document may be
                // stored before it.
                false => {
                    self.is_unbounded = true;
                    self.enter_transaction(state).await
                }
            },
            _ => Ok(()),
        }
    }

    /// Begins an implicit transaction, into which later documents are written.
    async fn enter_transaction(&mut self, state: &mut SessionState) -> Result<()> {
        let is_last = std::mem::replace(&mut state.block.is_last, false);
        let writing = state.changes_to_write(&self.bucket);
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
            Err(full) if is_out_of_memory(&full) && !self.is_unbounded => {
                self.way = Destination::Held(vec![all], rooms);
                self.store_collected(state).await?;
                self.send_split_notice(state);
                Ok(())
            }
            written => written.map(drop),
        }
    }

    /// Stores all documents so far in one commit, because there are more documents than one
    /// commit may have.
    async fn store_first(&mut self, state: &mut SessionState) -> Result<()> {
        match &self.way {
            Destination::Held(..) => self.store_collected(state).await?,
            _ => self.commit_first(self.documents, state).await?,
        }
        self.send_split_notice(state);
        Ok(())
    }

    /// Commits the first documents, which were written in the implicit transaction.
    async fn commit_first(&mut self, documents: u64, state: &mut SessionState) -> Result<()> {
        self.open = documents;
        let ended = state.end_block().await;
        self.note_outcome(ended.map(|()| None), (0, None), state)?;
        self.stored = documents;
        // The COPY continues in a separate block.
        state.begin_in_block();
        self.way = Destination::Parts;
        Ok(())
    }

    /// Sends a notice that the COPY is stored in more than one commit.
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

    /// Writes the documents that are collected in memory.
    async fn store_collected(&mut self, state: &mut SessionState) -> Result<()> {
        let Destination::Held(held, _rooms) = std::mem::replace(&mut self.way, Destination::Parts)
        else {
            return Ok(());
        };
        self.begin_write(joined(held), state)?;
        self.await_write(state).await
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
            if self.spare.is_none() || !reply.as_ref().is_err_and(is_out_of_memory) {
                self.spare = None;
                return self.note_outcome(reply, (documents, before), state);
            }
            writing = Box::pin(std::future::ready(reply));
        }
        self.writing = Some((writing, documents, before));
        Ok(())
    }

    /// Waits until the batch in progress is written.
    pub(super) async fn await_write(&mut self, state: &mut SessionState) -> Result<()> {
        // The batch stays in `self` during the wait: after an interrupt the error must still count it.
        while let Some((writing, ..)) = &mut self.writing {
            let reply = writing.await;
            let Some((_, documents, before)) = self.writing.take() else { return Ok(()) };
            match self.spare.take() {
                // No document of the batch was written: the transaction contains the first part.
                Some(refused) if reply.as_ref().is_err_and(is_out_of_memory) => {
                    self.commit_first(self.documents - documents, state).await?;
                    self.send_split_notice(state);
                    self.begin_write(refused, state)?;
                }
                _ => self.note_outcome(reply, (documents, before), state)?,
            }
        }
        Ok(())
    }

    /// Records the outcome of the write of a batch.
    fn note_outcome(
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

/// Returns true if the error means that the memory for open transactions is used up, possibly by
/// other COPYs.
fn is_out_of_memory(error: &Error) -> bool {
    matches!(error.code, ErrorCode::OverLimit | ErrorCode::TooBusy | ErrorCode::OutOfRoom)
}

/// Joins batches to one batch.
fn joined(mut batches: Vec<CheckedWrites>) -> CheckedWrites {
    match batches.len() {
        1 => batches.remove(0),
        _ => batches.iter().flat_map(|batch| batch.writes().iter().cloned()).collect(),
    }
}
