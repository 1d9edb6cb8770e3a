//! Assigns seqnos to the writes of an embedded bucket.

use std::sync::Arc;

use bytes::Bytes;
use proto::Result;
use proto::model::cut::{Position, WritePosition};
use proto::model::ids::{Seqno, VbucketId, Vbuuid, vbucket_of};
use proto::rpc::api::{CheckedWrites, WriteReply};
use proto::rpc::mutation::MutationKind;

use crate::effects::writes_with_effect;
use crate::source::pending::PendingChanges;
use documents::mutation::Mutation;

/// Numbers all writes of a request, or none if the request is refused. `exists` returns whether a
/// document existed before the group of requests.
pub(in crate::source) fn write(
    pending: &mut PendingChanges,
    exists: &mut dyn FnMut(&str) -> Result<bool>,
    writes: &CheckedWrites,
) -> Result<WriteReply> {
    let writes = writes.writes();
    let bucket = Arc::clone(&pending.bucket);
    let mut exists = |id: &str| match pending.newest(id) {
        Some(newest) => Ok(newest.kind == MutationKind::Upsert),
        None => exists(id),
    };
    let effective = writes_with_effect(&bucket.info.name, writes, &mut exists)?;
    let mut written = RequestNumbering::for_request(pending, writes.len());
    for (n, write) in writes.iter().enumerate() {
        if effective.as_ref().is_some_and(|effective| !effective[n]) {
            continue;
        }
        let (kind, document) = match write.document() {
            Some(document) => (MutationKind::Upsert, document.clone()),
            None => (MutationKind::Deletion, Bytes::new()),
        };
        written.add(write.id(), kind, document);
    }
    Ok(written.reply())
}

/// Assigns seqnos to the mutations of one request, and collects the positions for its reply.
pub(super) struct RequestNumbering<'p> {
    pending: &'p mut PendingChanges,
    vbuckets: Vec<VbucketId>,
}

impl<'p> RequestNumbering<'p> {
    /// Creates the numbering of a request that has about this many mutations.
    pub fn for_request(pending: &'p mut PendingChanges, about: usize) -> Self {
        pending.changes.mutations.reserve(about);
        Self { pending, vbuckets: Vec::with_capacity(about) }
    }

    /// Adds a mutation at the next position of its vbucket.
    pub fn add(&mut self, id: &Arc<str>, kind: MutationKind, document: Bytes) {
        let vbucket = vbucket_of(id, self.pending.bucket.info.vbuckets);
        let position = number(self.pending, vbucket);
        self.vbuckets.push(vbucket);
        let place = (vbucket, position.seqno);
        self.pending.add(Mutation::new(place, Arc::clone(id), kind, document));
    }

    /// Adds mutations that were created without seqnos, in this order, at the next positions of
    /// their vbuckets.
    pub fn add_created(&mut self, made: Vec<Arc<Mutation>>) {
        for mut mutation in made {
            // The mutation has no other reference before it is numbered.
            let Some(unnumbered) = Arc::get_mut(&mut mutation) else {
                self.add(&mutation.id, mutation.kind, mutation.document.clone());
                continue;
            };
            unnumbered.seqno = number(self.pending, unnumbered.vbucket).seqno;
            self.vbuckets.push(unnumbered.vbucket);
            self.pending.changes.mutations.push(mutation);
        }
    }

    /// Returns the reply to the request.
    pub fn reply(self) -> WriteReply {
        let Self { pending, mut vbuckets } = self;
        let affected = vbuckets.len() as u64;
        vbuckets.sort_unstable();
        vbuckets.dedup();
        let last = |vbucket: VbucketId| (vbucket, pending.next[usize::from(vbucket.0)]);
        let positions = vbuckets.into_iter().map(last).collect();
        let bucket = pending.bucket.info.id;
        WriteReply { affected, position: WritePosition { bucket, positions } }
    }
}

/// Reserves the next position in a vbucket and returns it.
fn number(pending: &mut PendingChanges, vbucket: VbucketId) -> Position {
    let at = usize::from(vbucket.0);
    let newest = pending.branches[at].first().map_or(Vbuuid(0), |(vbuuid, _)| *vbuuid);
    pending.next[at] = Position { vbuuid: newest, seqno: Seqno(pending.next[at].seqno.0 + 1) };
    pending.next[at]
}
