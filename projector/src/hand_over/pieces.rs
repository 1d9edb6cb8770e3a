//! The pieces of a vbucket's log and documents that another projector requests: in a hand-over, or for its copy of the bucket.

use std::sync::Arc;

use proto::model::cut::Position;
use proto::model::history::SourceHistory;
use proto::model::ids::{Seqno, VbucketId};
use proto::rpc::api::HandedDocument;
use proto::{Error, ErrorCode, Result};

use crate::projector::Projector;
use crate::source::view::bucket::Bucket;
use crate::source::{DocumentSnapshot, LogRange, Mutation, StoredDocument};

/// The approximate size of a piece in bytes.
const PIECE_BYTES: usize = 4 << 20;

/// The limit of the documents, of all vbuckets, that are read for one piece, in bytes.
const LOOK_AT_BYTES: usize = 16 << 20;
/// The size in bytes of one read of documents.
const CHUNK_BYTES: usize = 512 << 10;

/// Returns an error if a position of the target is no longer in the history. Both sides use branch
/// 0 for branches that are no longer known.
pub fn check_place(history: &SourceHistory, vbucket: VbucketId, at: Position) -> Result<()> {
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

/// Returns mutations of a vbucket from the beginning of a range: all of them or about four
/// megabytes.
pub async fn mutations(
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

/// Returns an error unless the mutations begin right after a position, or the position is the end.
/// A log may be purged up to its end.
pub fn check_kept(
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

/// Returns documents for which `is_wanted` is true, and the id after which to continue; `None` at
/// the end.
pub fn next_documents(
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
