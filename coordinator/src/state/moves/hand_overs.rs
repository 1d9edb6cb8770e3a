//! The owners of vbuckets: the projectors of a new bucket, and hand-overs of vbuckets ([`proto::model::assignment`]).

use std::sync::Arc;

use proto::model::assignment::{HandOver, VbucketAssignment};
use proto::model::bucket::SourceKind;
use proto::model::ids::{BucketId, NodeId, VbucketId};
use proto::model::node::Role;
use proto::rpc::command::Outcome;
use proto::{Error, ErrorCode, Result};

use crate::state::context::StateContext;
use crate::state::effect::{Change, Effect, catalog_changed, nothing};

fn bad(what: String, hint: &str) -> Error {
    Error::new(ErrorCode::InvalidParameter, what).with_hint(hint)
}

const SEVERAL: &str = "only a bucket made FROM PUSH can have several projectors; a single projector numbers all mutations of an embedded bucket";

const STATIC: &str = "the partitions of a version stay where they were loaded; the next version is given to all live projectors";

const WHOLE: &str = "an embedded bucket moves as a whole: ALTER BUCKET … MOVE TO 'n'";

impl StateContext {
    /// Chooses as many projectors as a new bucket needs, those with the fewest buckets first.
    pub(in crate::state) fn choose_projectors(
        &self,
        source: SourceKind,
        vbuckets: u16,
        wanted: u16,
    ) -> Result<Vec<NodeId>> {
        let registered = self.nodes.values().filter(|node| node.role == Role::Projector);
        let mut idlest: Vec<NodeId> = registered.map(|node| node.id).collect();
        idlest.sort_by_key(|id| (self.buckets_at(*id), *id));
        if idlest.is_empty() {
            let what = "no projector is registered that could own the bucket";
            return Err(Error::unavailable(what)
                .with_hint("start a projector, or wait until one has registered"));
        }
        if wanted == 0 || wanted > vbuckets {
            let what = format!("{wanted} projectors for {vbuckets} vbuckets");
            return Err(bad(what, "give each projector at least one vbucket"));
        }
        if wanted > 1 && !source.can_span_projectors() {
            return Err(bad(format!("an embedded bucket on {wanted} projectors"), SEVERAL));
        }
        if idlest.len() < usize::from(wanted) {
            let what =
                format!("the bucket needs {wanted} projectors, {} are registered", idlest.len());
            return Err(Error::unavailable(what)
                .with_hint("start more projectors, or wait until they have registered"));
        }
        idlest.truncate(usize::from(wanted));
        Ok(idlest)
    }

    pub(in crate::state) fn hand_over(
        &mut self,
        bucket: BucketId,
        vbuckets: &[VbucketId],
        to: NodeId,
    ) -> Change {
        let info = self.bucket_of_command(bucket)?;
        if self.role_of(to)? != Role::Projector {
            return Err(bad(
                format!("node {to} is not a projector"),
                "SHOW NODES lists the projectors",
            ));
        }
        let next = self.cas + 1;
        let (name, kind) = (&info.name, info.source);
        if !kind.can_hand_over() {
            let hint = if kind.is_only_copy() { WHOLE } else { STATIC };
            return Err(bad(format!("bucket \"{name}\" is {}", kind.described()), hint));
        }
        let mut assignment = VbucketAssignment::clone(&info.assignment);
        let mut begun = 0;
        for vbucket in vbuckets {
            let Some(owner) = assignment.owner(*vbucket) else {
                let (has, hint) = (info.vbuckets, "vbuckets are counted from 0");
                return Err(bad(
                    format!("vbucket {vbucket} does not exist, bucket \"{name}\" has {has}"),
                    hint,
                ));
            };
            match assignment.transfer_of(*vbucket) {
                Some(transfer) if transfer.to == to => {}
                Some(transfer) => {
                    let what =
                        format!("vbucket {vbucket} is being handed over to node {}", transfer.to);
                    return Err(bad(
                        what,
                        "wait until the hand-over has ended, or use ALTER BUCKET … CANCEL MOVES",
                    ));
                }
                None if owner == to => {}
                None => {
                    // The hand-overs of one command differ by their vbuckets.
                    let number = (next << 16) | u64::from(vbucket.0);
                    assignment.begin_transfer(HandOver { number, vbucket: *vbucket, to });
                    begun += 1;
                }
            }
        }
        if begun == 0 {
            return nothing();
        }
        self.assign(bucket, assignment);
        catalog_changed()
    }

    pub(in crate::state) fn handed_over(&mut self, bucket: BucketId, number: u64) -> Change {
        let gone = || Error::new(ErrorCode::Unknown, format!("hand-over {number} was cancelled"));
        let known = self.buckets.get_mut(&bucket).ok_or_else(gone)?;
        let mut assignment = VbucketAssignment::clone(&known.info.assignment);
        let transfer = assignment.transfers().iter().find(|transfer| transfer.number == number);
        let transfer = *transfer.ok_or_else(gone)?;
        assignment.finish_transfer(transfer);
        Arc::make_mut(&mut known.info).assignment = Arc::new(assignment);
        Ok((Outcome::Done, vec![Effect::CatalogChanged]))
    }

    pub(in crate::state) fn cancel_hand_over(&mut self, bucket: BucketId) -> Change {
        let info = self.bucket_of_command(bucket)?;
        if let Some(copies) = self.copies.get_mut(&bucket) {
            return if copies.set_move_to(None) { catalog_changed() } else { nothing() };
        }
        if info.assignment.transfers().is_empty() {
            return nothing();
        }
        let mut assignment = VbucketAssignment::clone(&info.assignment);
        assignment.cancel_transfers();
        self.assign(bucket, assignment);
        catalog_changed()
    }

    /// Gives the vbuckets of a bucket other owners or transfers.
    fn assign(&mut self, bucket: BucketId, assignment: VbucketAssignment) {
        if let Some(known) = self.buckets.get_mut(&bucket) {
            Arc::make_mut(&mut known.info).assignment = Arc::new(assignment);
        }
    }
}

#[cfg(test)]
#[path = "hand_overs_tests.rs"]
mod tests;
