//! Reads a vbucket's log and documents for another projector: for a hand-over, or for a copy of
//! the bucket. Each answer has a limited size.

use std::sync::Arc;

use proto::model::cut::Position;
use proto::model::history::SourceHistory;
use proto::model::ids::{Seqno, VbucketId};
use proto::rpc::api::HandedDocument;
use proto::{Error, ErrorCode, Result};

use crate::projector::Projector;
use crate::source::view::bucket::Bucket;
use crate::source::{DocumentSnapshot, LogRange, Mutation, StoredDocument};

/// The approximate size of an answer in bytes.
const PIECE_BYTES: usize = 4 << 20;

/// The limit in bytes of the documents that are read for one answer, including documents of other
/// vbuckets, which are skipped.
const LOOK_AT_BYTES: usize = 16 << 20;
/// The size in bytes of one read of documents.
const CHUNK_BYTES: usize = 512 << 10;

/// Returns an error if a position of the requesting projector is not in this projector's history
/// any more. A branch that is no longer known counts as branch 0 on both sides.
pub fn check_position(history: &SourceHistory, vbucket: VbucketId, at: Position) -> Result<()> {
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

/// Returns the mutations of a range of a vbucket's log: all of them, or the first ones with about
/// four megabytes.
pub async fn read_mutations(
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

/// Returns an error if mutations after a position were purged: then the read ones do not begin
/// directly after the position. Without any mutations the position must be the end of the log,
/// which may be purged entirely.
pub fn check_not_purged(
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

/// Reads the next documents of a snapshot, and returns those for which `is_wanted` is true. Also
/// returns the id after which the next call must continue; `None` at the end.
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
