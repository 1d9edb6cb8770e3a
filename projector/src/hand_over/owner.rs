//! The side of a hand-over at the owner of a vbucket: answers the requests of the target, which
//! is the projector that becomes the next owner.

use std::sync::Arc;

use proto::model::cut::Position;
use proto::model::history::{Branches, SourceHistory, branch_of};
use proto::model::ids::{Seqno, VbucketId, vbucket_of};
use proto::rpc::api::{
    HandOverDocuments, HandOverPiece, HandOverRequest, HandOverRequestKind, PushMutation,
};
use proto::{Error, Result};

use super::pieces::{check_not_purged, check_position, next_documents, read_mutations};
use crate::projector::Projector;
use crate::source::Mutation;
use crate::source::view::bucket::Bucket;
use documents::ownership::Ownership;

/// Answers a request of the target for the next range of the log, or the next documents.
pub async fn answer_target(
    projector: &Projector,
    request: HandOverRequest,
) -> Result<HandOverPiece> {
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
            .run_exclusively(owner, move |writer, bucket| writer.release_vbucket(bucket, &transfer))
            .await?;
    }
    let (_, losses) = bucket.logs();
    // Order matters: the end is read after the release, so it is the final one.
    let ownership = bucket.ownership();
    let (history, documents) = match wanted {
        HandOverRequestKind::Mutations => (bucket.history(), None),
        HandOverRequestKind::Documents(behind) => {
            let (history, documents) = read_documents(projector, &bucket, vbucket, behind).await?;
            (history, Some(documents))
        }
    };
    // The commits are read after the end, so none with a part before it is missing.
    let open = bucket.open_pushed_in(vbucket);
    let given_up = bucket.record().given_up.remove(&vbucket).unwrap_or_default();
    check_position(&history, vbucket, after)?;
    check_position(&history, vbucket, seen)?;
    let end = history.durable.get(vbucket);
    let branches = history.logs.get(vbucket).cloned().unwrap_or_default();
    let read = match documents {
        None => read_mutations(projector, &bucket, (vbucket, after.seqno, end.seqno)).await?,
        Some(_) => Vec::new(),
    };
    check_unchanged(&bucket, vbucket, &ownership, losses)?;
    if documents.is_none() {
        check_not_purged(&read, (vbucket, after.seqno, end.seqno))?;
    }
    let mutations =
        read.iter().map(|mutation| to_push_mutation(mutation, vbucket, &branches)).collect();
    let released = ownership.released.contains(vbucket);
    let piece =
        HandOverPiece { mutations, documents, branches, given_up, pushed: open, end, released };
    Ok(piece)
}

/// Converts a mutation into the form in which a producer pushes it.
fn to_push_mutation(mutation: &Mutation, vbucket: VbucketId, branches: &Branches) -> PushMutation {
    let vbuuid = branch_of(branches, mutation.seqno);
    PushMutation {
        vbucket,
        position: Position { vbuuid, seqno: mutation.seqno },
        id: mutation.id.to_string(),
        kind: mutation.kind,
        document: mutation.document.clone(),
    }
}

/// Returns an error if this projector has not owned the vbucket all the time since `before`, or
/// if history was lost in that time.
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

/// Returns the next documents of a vbucket, and the history as of the moment at which they were
/// read.
async fn read_documents(
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
            let _gate = at.gate.hold_publication();
            (at.history(), store.snapshot_after(at.info.id, behind.as_deref())?)
        };
        let is_wanted = |id: &str| vbucket_of(id, at.info.vbuckets) == vbucket;
        let (documents, next) = next_documents(snapshot, is_wanted)?;
        Ok((history, HandOverDocuments { documents, next, purged }))
    };
    projector.env.blocking(read).await
}
