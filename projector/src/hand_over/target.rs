//! The side of a hand-over at the target: copies the vbuckets that the catalog assigns to this
//! projector from their present owners.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use proto::model::assignment::HandOver;
use proto::model::cut::Position;
use proto::model::history::branch_of;
use proto::model::ids::{BucketId, Seqno};
use proto::model::node::NodeInfo;
use proto::plant::{self, Plant};
use proto::rpc::api::{
    HandOverDocuments, HandOverPiece, HandOverRequest, HandOverRequestKind, HandedDocument,
    ProjectorApi, PushMutation,
};
use proto::rpc::command::{Command, FinishHandOver, Outcome, Proposal, RequestId};
use proto::{Error, ErrorCode, Result};

use super::copying::LogPiece;
use super::removal::Removal;
use super::remove::remove;
use crate::projector::Projector;
use crate::source::view::bucket::Bucket;
use crate::source::writer::Writer;
use crate::source::{Mutation, StoredDocument};

/// The number of missing mutations from which on the target requests the owner to release a
/// vbucket: it can copy that many in a few milliseconds.
const LAST_PIECE_MUTATIONS: u64 = 1_000;
/// The pause after a failure.
const RETRY: Duration = Duration::from_millis(200);

/// The progress of a hand-over in this process.
#[derive(Default)]
struct TransferProgress {
    /// The progress of copying the documents; `None` while only the log is copied.
    documents: Option<DocumentCopy>,
    /// True if all mutations of the vbucket are stored and the owner accepts no more.
    is_whole: bool,
}

/// The progress of copying the documents of a vbucket, which is partial meanwhile.
#[derive(Default)]
struct DocumentCopy {
    /// The end of the copied part of the log; `None` before the purge point is received.
    after: Option<Position>,
    /// True if all documents were copied. Otherwise the copy continues after the id in `behind`.
    are_read: bool,
    behind: Option<String>,
    /// The end of the vbucket at the owner when documents were last read.
    seen: Position,
}

/// Copies the vbuckets that are handed over to this projector, and requests their ownership, one
/// vbucket after another. Runs until cancelled; safe to cancel at any await.
pub async fn take_over_all(projector: Arc<Projector>) -> &'static str {
    let mut catalogs = projector.catalog.subscribe();
    let client = projector.env.random.next_u64();
    let (mut sequence, mut failures) = (0, 0);
    let mut progress: BTreeMap<u64, TransferProgress> = BTreeMap::new();
    loop {
        let mut incoming = incoming_transfers(&projector);
        progress.retain(|number, _| {
            incoming.iter().any(|incoming| incoming.transfer.number == *number)
        });
        // A hand-over that fails does not block the others.
        let Some(next) = usize::checked_rem(failures, incoming.len()) else {
            if catalogs.changed().await.is_err() {
                return "the catalog's channel was closed";
            }
            continue;
        };
        let IncomingTransfer { bucket, transfer, owner } = incoming.swap_remove(next);
        sequence += 1;
        let request = RequestId { client, sequence };
        let known = progress.entry(transfer.number).or_default();
        match take_over(&projector, (bucket, transfer, &owner), known, request).await {
            Ok(()) => {
                tracing::info!(%bucket, vbucket = %transfer.vbucket, from = %owner.id, "a vbucket was handed over");
                wait_for_catalog(&projector, bucket, transfer).await;
            }
            Err(error) => {
                failures += 1;
                tracing::debug!(%bucket, vbucket = %transfer.vbucket, %error, "a hand-over failed; retrying");
                tokio::time::sleep(RETRY).await;
            }
        }
    }
}

/// Waits, with a time limit, until the catalog shows that a hand-over has ended.
async fn wait_for_catalog(projector: &Projector, bucket: BucketId, transfer: HandOver) {
    let look = |catalog: Option<&proto::model::catalog::Catalog>| {
        let assignment =
            catalog.and_then(|catalog| catalog.buckets.get(&bucket)).map(|b| &b.assignment);
        let pending =
            assignment.is_some_and(|h| h.transfer_of(transfer.vbucket) == Some(&transfer));
        (!pending).then_some(())
    };
    let late = projector
        .wait_for(look, || {
            Error::unavailable("the catalog does not show the end of the hand-over yet")
        })
        .await;
    late.err().inspect(|error| tracing::debug!(%error, "a hand-over has ended"));
}

/// A hand-over to this projector, with the client of its owner.
struct IncomingTransfer {
    bucket: BucketId,
    transfer: HandOver,
    owner: Arc<NodeInfo>,
}

fn incoming_transfers(projector: &Projector) -> Vec<IncomingTransfer> {
    let Some(catalog) = projector.catalog.borrow().clone() else { return Vec::new() };
    let me = projector.config.node.id;
    let mut incoming = Vec::new();
    for bucket in catalog.buckets.values() {
        for transfer in bucket.assignment.transfers().iter().filter(|transfer| transfer.to == me) {
            let owner =
                bucket.assignment.owner(transfer.vbucket).and_then(|id| catalog.nodes.get(&id));
            let of = |owner| IncomingTransfer { bucket: bucket.id, transfer: *transfer, owner };
            incoming.extend(owner.cloned().map(of));
        }
    }
    incoming
}

async fn take_over(
    projector: &Projector,
    (id, transfer, owner): (BucketId, HandOver, &NodeInfo),
    progress: &mut TransferProgress,
    request: RequestId,
) -> Result<()> {
    let bucket = projector.bucket(id).await?;
    let source = projector.directory.projector(owner);
    let mut target = VbucketTransfer { projector, bucket, transfer, source };
    // A complete copy stays, whatever becomes of the old owner, because the request to become the owner may be in
    // flight.
    if !progress.is_whole {
        target.copy_all(progress).await?;
        progress.is_whole = true;
    }
    let command = Command::FinishHandOver(FinishHandOver { bucket: id, number: transfer.number });
    let proposal = Proposal::from(command).with_request(request);
    match projector.directory.coordinator().propose(proposal).await?.outcome {
        Outcome::Refused(error) => Err(error),
        _ => Ok(()),
    }
}

/// The copy of one vbucket from its owner to this projector.
struct VbucketTransfer<'p> {
    projector: &'p Projector,
    bucket: Arc<Bucket>,
    transfer: HandOver,
    source: Arc<dyn ProjectorApi>,
}

impl VbucketTransfer<'_> {
    /// Copies the vbucket until the owner has released it and all of its mutations are stored.
    async fn copy_all(&mut self, progress: &mut TransferProgress) -> Result<()> {
        if progress.documents.is_none() && self.bucket.is_partial(self.transfer.vbucket) {
            self.remove_copied_data().await?;
        }
        let mut release = false;
        let error = loop {
            match self.copy_some(progress, &mut release).await {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(error) => break error,
            }
        };
        if matches!(error.code, ErrorCode::OutOfOrder | ErrorCode::HistoryPurged) {
            tracing::debug!(vbucket = %self.transfer.vbucket, %error, "a partial copy of a vbucket is dropped");
            progress.documents = None;
            self.remove_copied_data().await?;
            let is_purged = error.code == ErrorCode::HistoryPurged;
            progress.documents = is_purged.then(DocumentCopy::default);
        }
        // A hand-over that is overtaken again and again must not block the others.
        Err(error)
    }

    /// Removes the data of the vbucket that was copied so far.
    async fn remove_copied_data(&self) -> Result<()> {
        let (vbucket, projector) = (self.transfer.vbucket, self.projector.config.node.id);
        let removal = Removal { vbucket, projector, for_new_copy: true };
        remove(self.projector, &self.bucket, removal).await
    }

    /// Requests and stores the next part of the log, and of the documents if these are copied.
    /// Returns true when all mutations of the vbucket are stored.
    async fn copy_some(&self, progress: &mut TransferProgress, release: &mut bool) -> Result<bool> {
        if let Some(documents) = &mut progress.documents {
            if !documents.are_read {
                self.copy_documents(documents).await?;
            }
            let is_whole = match documents.after {
                Some(after) => self.copy_log_meanwhile(documents, after).await?,
                // The log has no purge point any more.
                None => true,
            };
            if is_whole {
                progress.documents = None;
            }
            return Ok(false);
        }
        let after = self.bucket.durable().get(self.transfer.vbucket);
        let piece = self.request_piece((after, Position::default()), None, *release).await?;
        let reached = piece.mutations.last().map_or(after.seqno, |last| last.position.seqno);
        let left = piece.end.seqno.0 - reached.0.min(piece.end.seqno.0);
        let is_last = (piece.released || plant::is(Plant::NotReleased)) && left == 0;
        self.store_piece(piece, after.seqno, true).await?;
        if reached == after.seqno && left > 0 {
            return Err(Error::unavailable("the owner has no more of the log yet"));
        }
        *release |= left <= LAST_PIECE_MUTATIONS && !plant::is(Plant::NotReleased);
        Ok(is_last)
    }

    /// Sends a request to the owner of the vbucket.
    async fn request_piece(
        &self,
        (after, seen): (Position, Position),
        documents: Option<Option<String>>,
        release: bool,
    ) -> Result<HandOverPiece> {
        let wanted =
            documents.map_or(HandOverRequestKind::Mutations, HandOverRequestKind::Documents);
        let (bucket, transfer) = (self.bucket.info.id, self.transfer);
        let request = HandOverRequest { bucket, transfer, after, seen, wanted, release };
        self.source.hand_over(request).await
    }

    /// Requests and stores the next documents. The first answer also contains the purge point.
    async fn copy_documents(&self, known: &mut DocumentCopy) -> Result<()> {
        let place = (known.after.unwrap_or_default(), known.seen);
        let piece = self.request_piece(place, Some(known.behind.clone()), false).await?;
        let transfer = self.transfer;
        let Some(HandOverDocuments { documents, next, purged }) = piece.documents else {
            return Err(Error::internal("the owner sent no documents"));
        };
        if known.after.is_none() {
            if purged.0 == 0 {
                return Ok(());
            }
            self.run_exclusively(move |writer, b| writer.begin_document_copy(b, &transfer, purged))
                .await?;
            known.after =
                Some(Position { vbuuid: branch_of(&piece.branches, purged), seqno: purged });
        }
        let stored =
            |HandedDocument { id, seqno, document }| StoredDocument { id, seqno, document };
        let documents: Vec<_> = documents.into_iter().map(stored).collect();
        self.run_exclusively(move |writer, b| {
            writer.store_copied_documents(b, &transfer, &documents)
        })
        .await?;
        (known.are_read, known.behind, known.seen) = (next.is_none(), next, piece.end);
        Ok(())
    }

    /// Requests and stores the next range of the log while the documents are copied too. Returns
    /// true once the vbucket is complete.
    async fn copy_log_meanwhile(&self, known: &mut DocumentCopy, after: Position) -> Result<bool> {
        let piece = self.request_piece((after, known.seen), None, false).await?;
        let reached = piece.mutations.last().map_or(after, |last| last.position);
        let is_whole = known.are_read && reached.seqno >= known.seen.seqno;
        if !is_whole && known.are_read && reached == after {
            return Err(Error::unavailable("the owner has no more of the log yet"));
        }
        self.store_piece(piece, after.seqno, is_whole).await?;
        known.after = Some(reached);
        Ok(is_whole)
    }

    /// Stores a range of the log that begins after a seqno. `is_whole` is true if the range makes
    /// the vbucket complete.
    async fn store_piece(&self, piece: HandOverPiece, after: Seqno, is_whole: bool) -> Result<()> {
        let of =
            |PushMutation { vbucket, position: Position { seqno, .. }, id, kind, document }| {
                Mutation::new((vbucket, seqno), Arc::from(id), kind, document)
            };
        let mutations: Vec<_> = piece.mutations.into_iter().map(of).collect();
        // Branches that begin after the end of this piece are sent again with the next one.
        let end = mutations.last().map_or(after, |mutation| mutation.seqno);
        let (mut branches, given_up, pushed) = (piece.branches, piece.given_up, piece.pushed);
        branches.retain(|(_, began)| is_whole && Seqno(*began) <= end);
        let piece = LogPiece { mutations, branches, given_up, pushed };
        let transfer = self.transfer;
        self.run_exclusively(move |writer, b| writer.store_log_range(b, &transfer, piece)).await
    }

    async fn run_exclusively<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Writer, &Bucket) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.projector.run_exclusively(Arc::clone(&self.bucket), work).await
    }
}
