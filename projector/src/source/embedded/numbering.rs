//! Numbers the writes of an embedded bucket.

use std::collections::BTreeMap;

use bytes::Bytes;
use proto::model::cut::{Position, WritePosition};
use proto::model::ids::{Seqno, VbucketId, Vbuuid, vbucket_of};
use proto::rpc::api::WriteReply;
use proto::rpc::mutation::MutationKind;
use proto::{Error, ErrorCode, Result};

use super::check::{CheckedKind, CheckedWrite};
use crate::source::pending::PendingChanges;
use documents::document_store::DocumentStore;
use documents::mutation::Mutation;

/// Numbers the writes of a request: all of them or none.
pub(in crate::source) fn write(
    pending: &mut PendingChanges,
    store: &dyn DocumentStore,
    writes: Vec<CheckedWrite>,
) -> Result<WriteReply> {
    let effective = check_writes(pending, store, &writes)?;
    let mut positions = BTreeMap::new();
    let mut affected = 0;
    for (write, effective) in writes.into_iter().zip(effective) {
        if !effective {
            continue;
        }
        affected += 1;
        let vbucket = vbucket_of(&write.id, pending.bucket.info.vbuckets);
        let position = number(pending, vbucket);
        positions.insert(vbucket, position);
        let place = (vbucket, position.seqno);
        pending.add(match write.kind {
            CheckedKind::Insert(document, value) | CheckedKind::Upsert(document, value) => {
                Mutation::new(place, write.id, MutationKind::Upsert, document).with_value(value)
            }
            CheckedKind::Delete => {
                Mutation::new(place, write.id, MutationKind::Deletion, Bytes::new())
            }
        });
    }
    let bucket = pending.bucket.info.id;
    let positions = positions.into_iter().collect();
    Ok(WriteReply { affected, position: WritePosition { bucket, positions } })
}

/// Validates a request as a whole before any of it is executed. Returns for each write whether it changes anything.
/// `DuplicateId` if an insert finds the document, perhaps from an earlier write of the same request.
fn check_writes(
    pending: &PendingChanges,
    store: &dyn DocumentStore,
    writes: &[CheckedWrite],
) -> Result<Vec<bool>> {
    // A bulk load replaces documents, so it needs no lookups.
    if writes.iter().all(|write| matches!(write.kind, CheckedKind::Upsert(..))) {
        return Ok(vec![true; writes.len()]);
    }
    let mut here: BTreeMap<&str, bool> = BTreeMap::new();
    let mut effective = Vec::with_capacity(writes.len());
    for write in writes {
        let exists = match here.get(&*write.id) {
            Some(exists) => *exists,
            None => exists(pending, store, &write.id)?,
        };
        effective.push(match write.kind {
            CheckedKind::Insert(..) if exists => {
                return Err(Error::new(
                    ErrorCode::DuplicateId,
                    format!(
                        "bucket {} already has a document {:?}",
                        pending.bucket.info.name, write.id
                    ),
                )
                .with_hint("ON CONFLICT (id) DO UPDATE SET doc = excluded.doc replaces it"));
            }
            CheckedKind::Delete => exists,
            _ => true,
        });
        here.insert(&write.id, !matches!(write.kind, CheckedKind::Delete));
    }
    Ok(effective)
}

fn exists(pending: &PendingChanges, store: &dyn DocumentStore, id: &str) -> Result<bool> {
    match pending.changes.last.get(id) {
        Some(at) => Ok(pending.changes.mutations[*at].kind == MutationKind::Upsert),
        None => store.contains(pending.bucket.info.id, id),
    }
}

/// The next position in a vbucket.
fn number(pending: &mut PendingChanges, vbucket: VbucketId) -> Position {
    let at = usize::from(vbucket.0);
    let newest = pending.branches[at].first().map_or(Vbuuid(0), |(vbuuid, _)| *vbuuid);
    pending.next[at] = Position { vbuuid: newest, seqno: Seqno(pending.next[at].seqno.0 + 1) };
    pending.next[at]
}
