//! The target's side of a hand-over: receives the vbuckets that the catalog assigns to this
//! projector.

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
use proto::rpc::command::{Command, HandedOver, Outcome, Proposal, RequestId};
use proto::{Error, ErrorCode, Result};

use super::copying::LogPiece;
use super::removal::Removal;
use super::remove::remove;
use crate::projector::Projector;
use crate::source::view::bucket::Bucket;
use crate::source::writer::Writer;
use crate::source::{Mutation, StoredDocument};

/// The number of missing mutations at or below which the owner is requested to release a vbucket: a
/// few milliseconds of work.
const LAST_PIECE_MUTATIONS: u64 = 1_000;
/// The pause after a failure.
const RETRY: Duration = Duration::from_millis(200);

/// The progress of a hand-over in this process.
#[derive(Default)]
struct TransferProgress {
    /// The state of the copy of documents, while it lasts.
    documents: Option<DocumentCopy>,
    /// True if all mutations are stored and the owner accepts no more.
    is_whole: bool,
}

/// A partial vbucket whose documents are being copied.
#[derive(Default)]
struct DocumentCopy {
    /// The end of the copied log; `None` before the purge point is received.
    after: Option<Position>,
    /// True if all documents were read. Otherwise the copy continues after `after`.
    are_read: bool,
    behind: Option<String>,
    /// The end of the vbucket at the owner when documents were last read.
    seen: Position,
}

/// Takes over one vbucket after another. Runs until cancelled; safe to cancel at any await.
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

/// Waits a little until the catalog shows the end of a hand-over.
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
    let mut target = Target { projector, bucket, transfer, source };
    // A complete copy stays, whatever becomes of the old owner, because the request to become the owner may be in
    // flight.
    if !progress.is_whole {
        target.copy_all(progress).await?;
        progress.is_whole = true;
    }
    let command = Command::HandedOver(HandedOver { bucket: id, number: transfer.number });
    let proposal = Proposal::from(command).with_request(request);
    match projector.directory.coordinator().propose(proposal).await?.outcome {
        Outcome::Refused(error) => Err(error),
        _ => Ok(()),
    }
}

/// The copy of one vbucket that this projector receives.
struct Target<'p> {
    projector: &'p Projector,
    bucket: Arc<Bucket>,
    transfer: HandOver,
    source: Arc<dyn ProjectorApi>,
}

impl Target<'_> {
    /// Copies pieces until the owner has released the vbucket and all of its mutations are stored.
    async fn copy_all(&mut self, progress: &mut TransferProgress) -> Result<()> {
        if progress.documents.is_none() && self.bucket.is_partial(self.transfer.vbucket) {
            self.begin_anew().await?;
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
            self.begin_anew().await?;
            let is_purged = error.code == ErrorCode::HistoryPurged;
            progress.documents = is_purged.then(DocumentCopy::default);
        }
        // A hand-over that is overtaken again and again must not block the others.
        Err(error)
    }

    async fn begin_anew(&self) -> Result<()> {
        let (vbucket, projector) = (self.transfer.vbucket, self.projector.config.node.id);
        let removal = Removal { vbucket, projector, for_new_copy: true };
        remove(self.projector, &self.bucket, removal).await
    }

    /// Copies the next one or two pieces. Returns true when all mutations of the vbucket are
    /// stored.
    async fn copy_some(&self, progress: &mut TransferProgress, release: &mut bool) -> Result<bool> {
        if let Some(documents) = &mut progress.documents {
            if !documents.are_read {
                self.copy_documents(documents).await?;
            }
            let is_whole = match documents.after {
                Some(after) => self.copy_beside(documents, after).await?,
                // The log has no purge point any more.
                None => true,
            };
            if is_whole {
                progress.documents = None;
            }
            return Ok(false);
        }
        let after = self.bucket.durable().get(self.transfer.vbucket);
        let piece = self.ask((after, Position::default()), None, *release).await?;
        let reached = piece.mutations.last().map_or(after.seqno, |last| last.position.seqno);
        let left = piece.end.seqno.0 - reached.0.min(piece.end.seqno.0);
        let is_last = (piece.released || plant::is(Plant::NotReleased)) && left == 0;
        self.copy(piece, after.seqno, true).await?;
        if reached == after.seqno && left > 0 {
            return Err(Error::unavailable("the owner has no more of the log yet"));
        }
        *release |= left <= LAST_PIECE_MUTATIONS && !plant::is(Plant::NotReleased);
        Ok(is_last)
    }

    async fn ask(
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

    /// Copies the next documents. The first piece also contains the purge point.
    async fn copy_documents(&self, known: &mut DocumentCopy) -> Result<()> {
        let place = (known.after.unwrap_or_default(), known.seen);
        let piece = self.ask(place, Some(known.behind.clone()), false).await?;
        let transfer = self.transfer;
        let Some(HandOverDocuments { documents, next, purged }) = piece.documents else {
            return Err(Error::internal("the owner sent no documents"));
        };
        if known.after.is_none() {
            if purged.0 == 0 {
                return Ok(());
            }
            self.exclusively(move |writer, b| writer.begin_documents(b, &transfer, purged)).await?;
            known.after =
                Some(Position { vbuuid: branch_of(&piece.branches, purged), seqno: purged });
        }
        let stored =
            |HandedDocument { id, seqno, document }| StoredDocument { id, seqno, document };
        let documents: Vec<_> = documents.into_iter().map(stored).collect();
        self.exclusively(move |writer, b| writer.copy_documents(b, &transfer, &documents)).await?;
        (known.are_read, known.behind, known.seen) = (next.is_none(), next, piece.end);
        Ok(())
    }

    /// Copies a piece of the log during the copy of the documents. Returns true once the vbucket is
    /// complete up to some position.
    async fn copy_beside(&self, known: &mut DocumentCopy, after: Position) -> Result<bool> {
        let piece = self.ask((after, known.seen), None, false).await?;
        let reached = piece.mutations.last().map_or(after, |last| last.position);
        let is_whole = known.are_read && reached.seqno >= known.seen.seqno;
        if !is_whole && known.are_read && reached == after {
            return Err(Error::unavailable("the owner has no more of the log yet"));
        }
        self.copy(piece, after.seqno, is_whole).await?;
        known.after = Some(reached);
        Ok(is_whole)
    }

    /// Stores a piece of the log that begins after a position.
    async fn copy(&self, piece: HandOverPiece, after: Seqno, is_whole: bool) -> Result<()> {
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
        self.exclusively(move |writer, b| writer.copy(b, &transfer, piece)).await
    }

    async fn exclusively<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Writer, &Bucket) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.projector.exclusively(Arc::clone(&self.bucket), work).await
    }
}
