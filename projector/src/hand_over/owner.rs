//! The owner's side of a hand-over: it serves the requests of the target.

use std::sync::Arc;

use proto::model::cut::Position;
use proto::model::history::{Branches, SourceHistory, branch_of};
use proto::model::ids::{Seqno, VbucketId, vbucket_of};
use proto::rpc::api::{
    HandOverDocuments, HandOverPiece, HandOverRequest, HandOverWanted, HandedDocument, PushMutation,
};
use proto::{Error, ErrorCode, Result};

use crate::projector::Projector;
use crate::source::bucket::Bucket;
use crate::source::{DocumentSnapshot, LogRange, Mutation, StoredDocument};
use documents::ownership::Ownership;

/// The approximate size of a piece.
const PIECE_BYTES: usize = 4 << 20;

/// The limit of documents of all vbuckets that are read for one piece, in bytes.
const LOOK_AT_BYTES: usize = 16 << 20;
/// The size of one read of documents.
const CHUNK_BYTES: usize = 512 << 10;

/// Serves the next piece.
pub async fn serve(projector: &Projector, request: HandOverRequest) -> Result<HandOverPiece> {
    let HandOverRequest { bucket, transfer, after, seen, wanted, release } = request;
    let bucket = projector.bucket(bucket).await?;
    let vbucket = transfer.vbucket;
    // The target may see the hand-over in the catalog earlier than this projector.
    let look =
        |_: Option<&_>| (bucket.assignment().transfer_of(vbucket) == Some(&transfer)).then_some(());
    projector.wait_for(look, || bucket.not_owned(vbucket)).await?;
    if release {
        let owner = Arc::clone(&bucket);
        projector
            .exclusively(owner, move |writer, bucket| writer.release(bucket, &transfer))
            .await?;
    }
    let (_, losses) = bucket.logs();
    // Order matters: the end is read after the release, so it is the final one.
    let ownership = bucket.ownership();
    let (history, documents) = match wanted {
        HandOverWanted::Mutations => (bucket.history(), None),
        HandOverWanted::Documents(behind) => {
            let (history, documents) = documents(projector, &bucket, vbucket, behind).await?;
            (history, Some(documents))
        }
    };
    let given_up = bucket.record().given_up.remove(&vbucket).unwrap_or_default();
    check_place(&history, vbucket, after)?;
    check_place(&history, vbucket, seen)?;
    let end = history.durable.get(vbucket);
    let branches = history.logs.get(vbucket).cloned().unwrap_or_default();
    let read = match documents {
        None => mutations(projector, &bucket, (vbucket, after.seqno, end.seqno)).await?,
        Some(_) => Vec::new(),
    };
    check_unchanged(&bucket, vbucket, &ownership, losses)?;
    if documents.is_none() {
        check_kept(&read, (vbucket, after.seqno, end.seqno))?;
    }
    let mutations = read.iter().map(|mutation| pushed(mutation, vbucket, &branches)).collect();
    let released = ownership.released.contains(vbucket);
    Ok(HandOverPiece { mutations, documents, branches, given_up, end, released })
}

/// A mutation in the form of a push.
fn pushed(mutation: &Mutation, vbucket: VbucketId, branches: &Branches) -> PushMutation {
    let vbuuid = branch_of(branches, mutation.seqno);
    PushMutation {
        vbucket,
        position: Position { vbuuid, seqno: mutation.seqno },
        id: mutation.id.to_string(),
        kind: mutation.kind,
        document: mutation.document.clone(),
    }
}

/// Checks that the vbucket was owned all the while, and that no history was lost.
fn check_unchanged(
    bucket: &Bucket,
    vbucket: VbucketId,
    before: &Ownership,
    losses_before: u64,
) -> Result<()> {
    // A vbucket is disowned before its data is removed.
    if !bucket.ownership().owned.contains(vbucket) || !before.owned.contains(vbucket) {
        return Err(bucket.not_owned(vbucket));
    }
    if bucket.logs().1 != losses_before {
        return Err(Error::unavailable("part of the history was lost meanwhile"));
    }
    Ok(())
}

/// Checks that a position of the target is still in the history. Both sides use branch 0 for branches that are no
/// longer known.
fn check_place(history: &SourceHistory, vbucket: VbucketId, at: Position) -> Result<()> {
    let end = history.durable.get(vbucket).seqno;
    let is_there = at.seqno.0 == 0
        || (at.seqno <= end && history.logs.branch_of(vbucket, at.seqno) == at.vbuuid);
    if is_there {
        return Ok(());
    }
    let what = format!(
        "position {:x}/{} is not in the history of vbucket {vbucket}",
        at.vbuuid.0, at.seqno
    );
    Err(Error::new(ErrorCode::OutOfOrder, what))
}

async fn mutations(
    projector: &Projector,
    bucket: &Bucket,
    (vbucket, after, to): (VbucketId, Seqno, Seqno),
) -> Result<Vec<Arc<Mutation>>> {
    if after >= to {
        return Ok(Vec::new());
    }
    let store = projector.store();
    let range = LogRange { bucket: bucket.info.id, vbucket, after, to };
    projector.env.blocking(move || store.read_log(range, PIECE_BYTES)).await
}

/// Checks that mutations begin right after a position, unless that is the end. A log may be purged up to its end.
fn check_kept(
    read: &[Arc<Mutation>],
    (vbucket, after, end): (VbucketId, Seqno, Seqno),
) -> Result<()> {
    let is_kept = read.first().map_or(after >= end, |first| first.seqno.0 == after.0 + 1);
    if is_kept {
        return Ok(());
    }
    let what = format!("the log of vbucket {vbucket} was purged behind seqno {after}");
    Err(Error::new(ErrorCode::HistoryPurged, what))
}

/// The next documents, and the history at the moment of their snapshot.
async fn documents(
    projector: &Projector,
    bucket: &Arc<Bucket>,
    vbucket: VbucketId,
    behind: Option<String>,
) -> Result<(SourceHistory, HandOverDocuments)> {
    let (store, at) = (projector.store(), Arc::clone(bucket));
    let read = move || {
        // Order matters: the log still has everything after the documents, unless it is purged later.
        let extents = store.extents(at.info.id)?;
        let purged = extents.get(usize::from(vbucket.0)).map_or(Seqno(0), |extent| extent.purged);
        let (history, snapshot) = {
            let _gate = at.gate.shown();
            (at.history(), store.snapshot_after(at.info.id, behind.as_deref())?)
        };
        let is_wanted = |id: &str| vbucket_of(id, at.info.vbuckets) == vbucket;
        let (documents, next) = next_documents(snapshot, is_wanted)?;
        Ok((history, HandOverDocuments { documents, next, purged }))
    };
    projector.env.blocking(read).await
}

/// Collects wanted documents, and the id to continue after.
fn next_documents(
    mut snapshot: Box<dyn DocumentSnapshot>,
    is_wanted: impl Fn(&str) -> bool,
) -> Result<(Vec<HandedDocument>, Option<String>)> {
    let (mut found, mut found_bytes, mut looked_at, mut last) = (Vec::new(), 0, 0, None);
    while found_bytes < PIECE_BYTES && looked_at < LOOK_AT_BYTES {
        let chunk = snapshot.next_chunk(CHUNK_BYTES)?;
        let Some(end) = chunk.last() else { return Ok((found, None)) };
        last = Some(end.id.clone());
        for StoredDocument { id, seqno, document } in chunk {
            let bytes = id.len() + document.len();
            looked_at += bytes;
            if is_wanted(&id) {
                found_bytes += bytes;
                found.push(HandedDocument { id, seqno, document });
            }
        }
    }
    Ok((found, last))
}
