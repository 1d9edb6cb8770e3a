//! Numbers the writes of an embedded bucket.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use proto::model::cut::{Position, WritePosition};
use proto::model::ids::{Seqno, VbucketId, Vbuuid, vbucket_of};
use proto::rpc::api::{CheckedWrite, CheckedWrites, WriteKind, WriteReply};
use proto::rpc::mutation::MutationKind;
use proto::{Error, ErrorCode, Result};

use crate::source::pending::PendingChanges;
use documents::mutation::Mutation;

/// Numbers the writes of a request: all of them or none. `exists` tells if there was a document before the group.
pub(in crate::source) fn write(
    pending: &mut PendingChanges,
    exists: &mut dyn FnMut(&str) -> Result<bool>,
    writes: &CheckedWrites,
) -> Result<WriteReply> {
    let writes = writes.writes();
    let effective = check_writes(pending, exists, writes)?;
    let mut written: Vec<VbucketId> = Vec::with_capacity(writes.len());
    pending.changes.mutations.reserve(writes.len());
    for (n, write) in writes.iter().enumerate() {
        if effective.as_ref().is_some_and(|effective| !effective[n]) {
            continue;
        }
        let vbucket = vbucket_of(write.id(), pending.bucket.info.vbuckets);
        let position = number(pending, vbucket);
        written.push(vbucket);
        let (kind, document) = match write.document() {
            Some(document) => (MutationKind::Upsert, document.clone()),
            None => (MutationKind::Deletion, Bytes::new()),
        };
        let place = (vbucket, position.seqno);
        pending.add(Mutation::new(place, Arc::clone(write.id()), kind, document));
    }
    let affected = written.len() as u64;
    written.sort_unstable();
    written.dedup();
    let last = |vbucket: VbucketId| (vbucket, pending.next[usize::from(vbucket.0)]);
    let positions = written.into_iter().map(last).collect();
    let bucket = pending.bucket.info.id;
    Ok(WriteReply { affected, position: WritePosition { bucket, positions } })
}

/// Validates a request as a whole before any of it is executed. Returns for each write whether it changes anything; `None`
/// if all of them do. `DuplicateId` if an insert finds the document, perhaps from an earlier write of the same request.
fn check_writes(
    pending: &mut PendingChanges,
    exists: &mut dyn FnMut(&str) -> Result<bool>,
    writes: &[CheckedWrite],
) -> Result<Option<Vec<bool>>> {
    // A bulk load replaces documents, so it needs no lookups.
    if writes.iter().all(|write| matches!(write.kind(), WriteKind::Upsert(_))) {
        return Ok(None);
    }
    let mut here: BTreeMap<&str, bool> = BTreeMap::new();
    let mut effective = Vec::with_capacity(writes.len());
    for write in writes {
        let exists = match here.get(&**write.id()) {
            Some(exists) => *exists,
            None => match pending.newest(write.id()) {
                Some(kind) => kind == MutationKind::Upsert,
                None => exists(write.id())?,
            },
        };
        effective.push(match write.kind() {
            WriteKind::Insert(_) if exists => {
                return Err(Error::new(
                    ErrorCode::DuplicateId,
                    format!(
                        "bucket {} already has a document {:?}",
                        pending.bucket.info.name,
                        write.id()
                    ),
                )
                .with_hint("ON CONFLICT (id) DO UPDATE SET doc = excluded.doc replaces it"));
            }
            WriteKind::Delete => exists,
            _ => true,
        });
        here.insert(write.id(), !matches!(write.kind(), WriteKind::Delete));
    }
    Ok(Some(effective))
}

/// The next position in a vbucket.
fn number(pending: &mut PendingChanges, vbucket: VbucketId) -> Position {
    let at = usize::from(vbucket.0);
    let newest = pending.branches[at].first().map_or(Vbuuid(0), |(vbuuid, _)| *vbuuid);
    pending.next[at] = Position { vbuuid: newest, seqno: Seqno(pending.next[at].seqno.0 + 1) };
    pending.next[at]
}
