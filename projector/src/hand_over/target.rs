//! The target's end: takes over what the catalog says is on its way here.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use proto::model::cut::Position;
use proto::model::history::branch_of;
use proto::model::homes::HandOver;
use proto::model::ids::{BucketId, Seqno};
use proto::model::node::NodeInfo;
use proto::plant::{self, Plant};
use proto::rpc::api::{
    HandOverDocuments, HandOverPiece, HandOverRequest, HandOverWanted, HandedDocument,
    ProjectorApi, PushMutation,
};
use proto::rpc::command::{Command, CommandRequest, Outcome, RequestId};
use proto::{Error, ErrorCode, Result};

use super::copying::LogPiece;
use super::remove::remove;
use super::removing::Removal;
use crate::projector::Projector;
use crate::source::bucket::Bucket;
use crate::source::writer::Writer;
use crate::source::{Mutation, StoredDocument};

/// Mutations that may be missing when the home is asked to release the vbucket: what takes milliseconds.
const LAST_PIECE_MUTATIONS: u64 = 1_000;
/// Between two tries.
const RETRY: Duration = Duration::from_millis(200);

/// How far a hand-over has come, as far as this process knows.
#[derive(Default)]
struct Progress {
    /// Its documents are being copied.
    documents: Option<Documents>,
    /// All is here, and the home takes nothing more.
    is_whole: bool,
}

/// A vbucket that comes by its documents, and is here in part.
#[derive(Default)]
struct Documents {
    /// Where the log has come to, when there is one.
    after: Option<Position>,
    /// All of them are here that were at the home; else they go on behind an id, or begin.
    are_read: bool,
    behind: Option<String>,
    /// Where the vbucket ended when some were read last.
    seen: Position,
}

/// Takes one vbucket over after another. Runs until cancelled, at any await without harm.
pub async fn take_all(projector: Arc<Projector>) {
    let mut catalogs = projector.catalog.subscribe();
    let client = projector.env.random.next_u64();
    let (mut sequence, mut failures) = (0, 0);
    let mut progress: BTreeMap<u64, Progress> = BTreeMap::new();
    loop {
        let mut coming = coming(&projector);
        progress.retain(|number, _| coming.iter().any(|coming| coming.handing.number == *number));
        // One that cannot be carried out does not hold up the others.
        let Some(next) = usize::checked_rem(failures, coming.len()) else {
            if catalogs.changed().await.is_err() {
                return;
            }
            continue;
        };
        let Coming { bucket, handing, home } = coming.swap_remove(next);
        sequence += 1;
        let request = RequestId { client, sequence };
        let known = progress.entry(handing.number).or_default();
        match take(&projector, (bucket, handing, &home), known, request).await {
            Ok(()) => {
                tracing::info!(%bucket, vbucket = %handing.vbucket, from = %home.id, "a vbucket was handed over");
                wait_settled(&projector, bucket, handing).await;
            }
            Err(error) => {
                failures += 1;
                tracing::debug!(%bucket, vbucket = %handing.vbucket, %error, "a hand-over; trying again");
                tokio::time::sleep(RETRY).await;
            }
        }
    }
}

/// Waits a little until the catalog that is known here has heard of the end of a hand-over.
async fn wait_settled(projector: &Projector, bucket: BucketId, handing: HandOver) {
    let look = |catalog: Option<&proto::model::catalog::Catalog>| {
        let homes = catalog.and_then(|catalog| catalog.buckets.get(&bucket)).map(|b| &b.homes);
        let pending = homes.is_some_and(|h| h.handing_of(handing.vbucket) == Some(&handing));
        (!pending).then_some(())
    };
    let late = projector.wait_for(look, || Error::unavailable("the catalog is late")).await;
    late.err().inspect(|error| tracing::debug!(%error, "a hand-over"));
}

/// A hand-over to this projector, and where it comes from.
struct Coming {
    bucket: BucketId,
    handing: HandOver,
    home: Arc<NodeInfo>,
}

fn coming(projector: &Projector) -> Vec<Coming> {
    let Some(catalog) = projector.catalog.borrow().clone() else { return Vec::new() };
    let me = projector.config.node.id;
    let mut coming = Vec::new();
    for bucket in catalog.buckets.values() {
        for handing in bucket.homes.handing().iter().filter(|handing| handing.to == me) {
            let home = bucket.homes.home(handing.vbucket).and_then(|id| catalog.nodes.get(&id));
            let of = |home| Coming { bucket: bucket.id, handing: *handing, home };
            coming.extend(home.cloned().map(of));
        }
    }
    coming
}

async fn take(
    projector: &Projector,
    (id, handing, home): (BucketId, HandOver, &NodeInfo),
    progress: &mut Progress,
    request: RequestId,
) -> Result<()> {
    let bucket = projector.bucket(id).await?;
    let source = projector.directory.projector(home);
    let mut target = Target { projector, bucket, handing, source };
    // What is whole stays: the request to be the home may be on its way, whatever becomes of the old one.
    if !progress.is_whole {
        target.copy_all(progress).await?;
        progress.is_whole = true;
    }
    let command = Command::HandedOver { bucket: id, number: handing.number };
    let request = CommandRequest { request: Some(request), command };
    match projector.directory.coordinator().propose(request).await? {
        Outcome::Refused(error) => Err(error),
        _ => Ok(()),
    }
}

/// What copies one vbucket.
struct Target<'p> {
    projector: &'p Projector,
    bucket: Arc<Bucket>,
    handing: HandOver,
    source: Arc<dyn ProjectorApi>,
}

impl Target<'_> {
    /// Copies pieces until the home has released the vbucket and all of it is here.
    async fn copy_all(&mut self, progress: &mut Progress) -> Result<()> {
        if progress.documents.is_none() && self.bucket.has_part(self.handing.vbucket) {
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
            tracing::debug!(vbucket = %self.handing.vbucket, %error, "what is here of it goes");
            progress.documents = None;
            self.begin_anew().await?;
            let is_purged = error.code == ErrorCode::HistoryPurged;
            progress.documents = is_purged.then(Documents::default);
        }
        // One that is overtaken again and again must not keep the others waiting.
        Err(error)
    }

    async fn begin_anew(&self) -> Result<()> {
        let (vbucket, projector) = (self.handing.vbucket, self.projector.config.node.id);
        let removal = Removal { vbucket, projector, comes: true };
        remove(self.projector, &self.bucket, removal).await
    }

    /// The next piece, or two; true when all is here.
    async fn copy_some(&self, progress: &mut Progress, release: &mut bool) -> Result<bool> {
        if let Some(documents) = &mut progress.documents {
            if !documents.are_read {
                self.copy_documents(documents).await?;
            }
            let is_whole = match documents.after {
                Some(after) => self.copy_beside(documents, after).await?,
                // Nothing is purged any more.
                None => true,
            };
            if is_whole {
                progress.documents = None;
            }
            return Ok(false);
        }
        let after = self.bucket.durable().get(self.handing.vbucket);
        let piece = self.ask((after, Position::default()), None, *release).await?;
        let reached = piece.mutations.last().map_or(after.seqno, |last| last.position.seqno);
        let left = piece.end.seqno.0 - reached.0.min(piece.end.seqno.0);
        let is_last = (piece.released || plant::is(Plant::NotReleased)) && left == 0;
        self.copy(piece, after.seqno, true).await?;
        if reached == after.seqno && left > 0 {
            return Err(Error::unavailable("the home has no more of the log than that"));
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
        let wanted = documents.map_or(HandOverWanted::Mutations, HandOverWanted::Documents);
        let (bucket, handing) = (self.bucket.info.id, self.handing);
        let request = HandOverRequest { bucket, handing, after, seen, wanted, release };
        self.source.hand_over(request).await
    }

    /// The next documents; the first come with the purge point.
    async fn copy_documents(&self, known: &mut Documents) -> Result<()> {
        let place = (known.after.unwrap_or_default(), known.seen);
        let piece = self.ask(place, Some(known.behind.clone()), false).await?;
        let handing = self.handing;
        let Some(HandOverDocuments { documents, next, purged }) = piece.documents else {
            return Err(Error::internal("the home gave no documents"));
        };
        if known.after.is_none() {
            if purged.0 == 0 {
                return Ok(());
            }
            self.alone(move |writer, b| writer.begin_documents(b, &handing, purged)).await?;
            known.after =
                Some(Position { vbuuid: branch_of(&piece.branches, purged), seqno: purged });
        }
        let stored =
            |HandedDocument { id, seqno, document }| StoredDocument { id, seqno, document };
        let documents: Vec<_> = documents.into_iter().map(stored).collect();
        self.alone(move |writer, b| writer.copy_documents(b, &handing, &documents)).await?;
        (known.are_read, known.behind, known.seen) = (next.is_none(), next, piece.end);
        Ok(())
    }

    /// A piece of the log, beside the documents; true when the vbucket is here as a whole, up to some place.
    async fn copy_beside(&self, known: &mut Documents, after: Position) -> Result<bool> {
        let piece = self.ask((after, known.seen), None, false).await?;
        let reached = piece.mutations.last().map_or(after, |last| last.position);
        let is_whole = known.are_read && reached.seqno >= known.seen.seqno;
        if !is_whole && known.are_read && reached == after {
            return Err(Error::unavailable("the home has no more of the log than that"));
        }
        self.copy(piece, after.seqno, is_whole).await?;
        known.after = Some(reached);
        Ok(is_whole)
    }

    /// Writes a piece of the log behind a place.
    async fn copy(&self, piece: HandOverPiece, after: Seqno, is_whole: bool) -> Result<()> {
        let of =
            |PushMutation { vbucket, position: Position { seqno, .. }, id, kind, document }| {
                Mutation::new((vbucket, seqno), Arc::from(id), kind, document)
            };
        let mutations: Vec<_> = piece.mutations.into_iter().map(of).collect();
        // The branches that begin beyond the copy's end come again with the next piece.
        let end = mutations.last().map_or(after, |mutation| mutation.seqno);
        let (mut branches, given_up) = (piece.branches, piece.given_up);
        branches.retain(|(_, began)| is_whole && Seqno(*began) <= end);
        let (piece, handing) = (LogPiece { mutations, branches, given_up }, self.handing);
        self.alone(move |writer, b| writer.copy(b, &handing, piece)).await
    }

    async fn alone<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Writer, &Bucket) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.projector.alone(Arc::clone(&self.bucket), work).await
    }
}
