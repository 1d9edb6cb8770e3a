//! The owner's side of a hand-over: answers the requests of the target.

use std::sync::Arc;

use proto::model::cut::Position;
use proto::model::history::{Branches, SourceHistory, branch_of};
use proto::model::ids::{Seqno, VbucketId, vbucket_of};
use proto::rpc::api::{
    HandOverDocuments, HandOverPiece, HandOverRequest, HandOverRequestKind, PushMutation,
};
use proto::{Error, Result};

use super::pieces::{check_kept, check_place, mutations, next_documents};
use crate::projector::Projector;
use crate::source::Mutation;
use crate::source::view::bucket::Bucket;
use documents::ownership::Ownership;

/// Returns the next piece that the target requests.
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
        HandOverRequestKind::Mutations => (bucket.history(), None),
        HandOverRequestKind::Documents(behind) => {
            let (history, documents) = documents(projector, &bucket, vbucket, behind).await?;
            (history, Some(documents))
        }
    };
    // The commits are read after the end, so none with a part before it is missing.
    let open = bucket.open_pushed(vbucket);
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
    let piece =
        HandOverPiece { mutations, documents, branches, given_up, pushed: open, end, released };
    Ok(piece)
}

/// Converts a mutation into the form of a push.
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

/// Returns an error if the vbucket was not owned all the time since `before`, or if history was
/// lost.
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

/// Returns the next documents, and the history at the moment of their snapshot.
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
