//! The copies of embedded buckets ([`proto::model::copies`]).
//!
//! Users set how many copies a bucket should have and which projector should lead it. The
//! coordinator's leader adds joining projectors, and removes joining ones. The leading copy
//! proposes which copies are in sync and which leave, and a copy in sync proposes itself as the
//! leader.
//!
//! - A change of the copies names the revision that it was planned for. A change that is late or
//!   no longer possible is not refused: its answer contains the present copies, from which the
//!   caller continues.
//! - The leader of a bucket owns all of its vbuckets. A promotion changes both in one command.
//! - A pushed bucket has no entry in this table, because its producer has the data.

pub mod open_source;
pub mod state;

use proto::model::assignment::VbucketAssignment;
use proto::model::bucket::SourceKind;
use proto::model::copies::{COPIES_MAX, Copies, CopiesChange, CopyRole};
use proto::model::ids::{NodeId, VbucketId};
use proto::model::node::Role;
use proto::rpc::command::{ChangeCopies, MoveBucket, Outcome, SetCopies};
use proto::{Error, ErrorCode, Result};

use crate::state::consequence::Consequence;
use crate::state::context::StateContext;
use crate::state::decisions::Decisions;
use crate::state::effect::{Apply, Change, Effect, catalog_changed, nothing};
use crate::state::indexes::checks::check_range;

/// The limit of projectors with a copy of one bucket. A move adds one more copy until its target
/// leads.
pub(crate) const MEMBERS_MAX: usize = COPIES_MAX as usize + 1;

/// Checks a desired number of copies.
fn check_number(copies: u8) -> Result<()> {
    check_range("copies", copies.into(), 1, COPIES_MAX.into())
}

/// Returns the error for a bucket that cannot have copies, because it is not embedded.
fn no_copies_error(name: &str) -> Error {
    let what = format!(
        "bucket \"{name}\" has no copies: its producer has the data, or its versions have holders"
    );
    Error::new(ErrorCode::Unsupported, what)
        .with_hint("omit copies; only an embedded bucket, made without FROM, has them")
}

/// Checks the number of copies in CREATE BUCKET … WITH (copies = n), before the bucket is
/// created.
pub(in crate::state) fn check_new_copies(
    copies: u8,
    (name, source): (&str, SourceKind),
) -> Result<()> {
    check_number(copies)?;
    match !source.is_only_copy() && copies > 1 {
        true => Err(no_copies_error(name)),
        false => Ok(()),
    }
}

impl Apply for SetCopies {
    fn apply(&self, state: &mut StateContext, _decided: &Decisions) -> Change {
        check_number(self.copies)?;
        let info = state.bucket_of_command(self.bucket)?;
        let copies =
            state.copies.get_mut(self.bucket).ok_or_else(|| no_copies_error(&info.name))?;
        if copies.wanted == self.copies {
            return nothing();
        }
        copies.set_wanted(self.copies);
        catalog_changed()
    }
}

impl Apply for MoveBucket {
    fn apply(&self, state: &mut StateContext, _decided: &Decisions) -> Change {
        let to = self.to;
        let info = state.bucket_of_command(self.bucket)?;
        let role = state.nodes.role_of(to)?;
        if role != Role::Projector {
            let what = format!("node {to} is not a projector, its role is {}", role.name());
            return Err(Error::new(ErrorCode::InvalidParameter, what)
                .with_hint("SHOW NODES lists the projectors"));
        }
        let Some(copies) = state.copies.get_mut(self.bucket) else {
            let kind = info.source;
            let what = format!(
                "bucket \"{}\" is {}, and does not move as a whole",
                info.name,
                kind.described()
            );
            let hint = match kind.can_hand_over() {
                true => "use ALTER BUCKET … MOVE VBUCKET for each of its vbuckets",
                false => "the next version is given to all live projectors",
            };
            return Err(Error::new(ErrorCode::InvalidParameter, what).with_hint(hint));
        };
        if copies.set_move_to(Some(to)) { catalog_changed() } else { nothing() }
    }
}

impl Apply for ChangeCopies {
    /// Makes a change of the copies if it is still possible. Returns the present copies in any
    /// case.
    fn apply(&self, state: &mut StateContext, _decided: &Decisions) -> Change {
        let bucket = self.bucket;
        let Some(present) = state.copies.get(bucket) else {
            let what = format!("there is no bucket {bucket} with copies");
            return Err(Error::new(ErrorCode::Unknown, what)
                .with_hint("it was dropped, or it is pushed; SHOW COPIES lists the copies"));
        };
        let mut next = present.clone();
        let is_allowed = is_allowed(state, present, self.change);
        if !is_allowed || next.change(self.revision, self.change).is_err() {
            return Ok((Outcome::Copies(next), Vec::new()));
        }
        let info = state.buckets.get(bucket);
        // The leader owns the vbuckets.
        let vbuckets = info
            .filter(|info| info.assignment.owner(VbucketId(0)) != Some(next.leader))
            .map(|info| info.vbuckets);
        if let Some(vbuckets) = vbuckets {
            let assignment = VbucketAssignment::single(vbuckets, next.leader);
            state.carry_out(&Consequence::Assigned { bucket, assignment });
        }
        if let Some(present) = state.copies.get_mut(bucket) {
            present.clone_from(&next);
        }
        Ok((Outcome::Copies(next), vec![Effect::CatalogChanged]))
    }
}

/// Checks the conditions of a change that do not depend on the copies alone. A joining projector
/// is registered, and a copy is missing or the bucket moves to that projector.
fn is_allowed(state: &StateContext, copies: &Copies, change: CopiesChange) -> bool {
    let CopiesChange::Join(node) = change else { return true };
    let members = copies.members().count();
    let is_needed = members < usize::from(copies.wanted) || copies.move_to == Some(node);
    is_needed && members < MEMBERS_MAX && state.nodes.has_role(node, Role::Projector)
}

/// Checks that a projector may be removed: no bucket loses its leader, and each bucket that
/// should have several copies keeps another complete one.
pub(in crate::state) fn check_copies_without(state: &StateContext, node: NodeId) -> Result<()> {
    for (bucket, copies) in state.copies.all() {
        let is_last_other = copies.wanted > 1 && copies.followers().eq([node]);
        let (part, hint) = match copies.role(node) {
            CopyRole::Leader => {
                ("leads", "move it with ALTER BUCKET … MOVE TO, or use DROP BUCKET")
            }
            CopyRole::InSync if is_last_other => (
                "has the only other complete copy of",
                "wait until another copy is in sync (SHOW COPIES), or use ALTER BUCKET … SET (copies = 1)",
            ),
            _ => continue,
        };
        let what = format!("node {node} {part} bucket \"{}\"", state.buckets.name(*bucket));
        return Err(Error::new(ErrorCode::InvalidParameter, what).with_hint(hint));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
