//! The owners of vbuckets: the projectors of a new bucket, and hand-overs of vbuckets ([`proto::model::assignment`]).

use std::sync::Arc;

use proto::model::assignment::{HandOver, VbucketAssignment};
use proto::model::bucket::{BucketInfo, SourceKind};
use proto::model::ids::NodeId;
use proto::model::node::Role;
use proto::rpc::command::{self, CancelHandOver, FinishHandOver};
use proto::{Error, ErrorCode, Result};

use crate::state::consequence::Consequence;
use crate::state::context::StateContext;
use crate::state::decisions::Decisions;
use crate::state::effect::{Apply, Change, catalog_changed, nothing};

fn bad(what: String, hint: &str) -> Error {
    Error::new(ErrorCode::InvalidParameter, what).with_hint(hint)
}

const SEVERAL: &str = "only a bucket made FROM PUSH can have several projectors; a single projector numbers all mutations of an embedded bucket";

const STATIC: &str = "the partitions of a version stay where they were loaded; the next version is given to all live projectors";

const WHOLE: &str = "an embedded bucket moves as a whole: ALTER BUCKET … MOVE TO 'n'";

/// Chooses the projectors of a new bucket: `wanted` projectors, those with the fewest buckets
/// first.
pub(in crate::state) fn choose_projectors(
    state: &StateContext,
    source: SourceKind,
    vbuckets: u16,
    wanted: u16,
) -> Result<Vec<NodeId>> {
    let mut idlest: Vec<NodeId> =
        state.nodes.of_role(Role::Projector).map(|node| node.id).collect();
    idlest.sort_by_key(|id| (bucket_count_of(state, *id), *id));
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
        let what = format!("the bucket needs {wanted} projectors, {} are registered", idlest.len());
        return Err(Error::unavailable(what)
            .with_hint("start more projectors, or wait until they have registered"));
    }
    idlest.truncate(usize::from(wanted));
    Ok(idlest)
}

/// The number of buckets of which a projector owns vbuckets or has a copy.
fn bucket_count_of(state: &StateContext, projector: NodeId) -> usize {
    let has_part = |info: &&Arc<BucketInfo>| {
        info.assignment.concerns(projector) || state.copies.has_copy(info.id, projector)
    };
    state.buckets.all().values().filter(has_part).count()
}

impl Apply for command::HandOver {
    fn apply(&self, state: &mut StateContext, _decided: &Decisions) -> Change {
        let (bucket, to) = (self.bucket, self.to);
        let info = state.bucket_of_command(bucket)?;
        if state.nodes.role_of(to)? != Role::Projector {
            return Err(bad(
                format!("node {to} is not a projector"),
                "SHOW NODES lists the projectors",
            ));
        }
        let next = state.clock.now().cas;
        let (name, kind) = (&info.name, info.source);
        if !kind.can_hand_over() {
            let hint = if kind.is_only_copy() { WHOLE } else { STATIC };
            return Err(bad(format!("bucket \"{name}\" is {}", kind.described()), hint));
        }
        let mut assignment = VbucketAssignment::clone(&info.assignment);
        let mut begun = 0;
        for vbucket in &self.vbuckets {
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
        state.carry_out(&Consequence::Assigned { bucket, assignment });
        catalog_changed()
    }
}

impl Apply for FinishHandOver {
    fn apply(&self, state: &mut StateContext, _decided: &Decisions) -> Change {
        let Self { bucket, number } = *self;
        let gone = || Error::new(ErrorCode::Unknown, format!("hand-over {number} was cancelled"));
        let known = state.buckets.get(bucket).ok_or_else(gone)?;
        let mut assignment = VbucketAssignment::clone(&known.assignment);
        let transfer = assignment.transfers().iter().find(|transfer| transfer.number == number);
        let transfer = *transfer.ok_or_else(gone)?;
        assignment.finish_transfer(transfer);
        state.carry_out(&Consequence::Assigned { bucket, assignment });
        catalog_changed()
    }
}

impl Apply for CancelHandOver {
    fn apply(&self, state: &mut StateContext, _decided: &Decisions) -> Change {
        let bucket = self.bucket;
        let info = state.bucket_of_command(bucket)?;
        if let Some(copies) = state.copies.get(bucket) {
            if copies.move_to.is_none() {
                return nothing();
            }
            state.carry_out(&Consequence::BucketStays(bucket));
            return catalog_changed();
        }
        if info.assignment.transfers().is_empty() {
            return nothing();
        }
        let mut assignment = VbucketAssignment::clone(&info.assignment);
        assignment.cancel_transfers();
        state.carry_out(&Consequence::Assigned { bucket, assignment });
        catalog_changed()
    }
}

#[cfg(test)]
#[path = "hand_overs_tests.rs"]
mod tests;
