//! The copies of embedded buckets ([`proto::model::copies`]).
//!
//! Users set how many copies a bucket should have and which projector should lead it. The leading coordinator adds joining projectors, and
//! removes joining ones. The leading copy proposes which copies are in sync and which leave, and a copy in sync proposes itself as the
//! leader.
//!
//! - A change of the copies is compare-and-set. A change that is too late or no longer possible is not refused: its answer contains the
//!   present copies, which the caller needs next.
//! - The leader of a bucket owns all of its vbuckets. A promotion changes both in one command.
//! - The producer of a pushed bucket keeps its copies, so such a bucket has no entry.

pub mod open_source;

use std::sync::Arc;

use proto::model::assignment::VbucketAssignment;
use proto::model::bucket::{BucketInfo, SourceKind};
use proto::model::copies::{COPIES_MAX, Copies, CopiesChange, CopyRole};
use proto::model::ids::{BucketId, NodeId, VbucketId};
use proto::model::node::Role;
use proto::rpc::command::{ChangeCopies, MoveBucket, OpenSource, Outcome, SetCopies};
use proto::{Error, ErrorCode, Result};

use crate::state::buckets::record::BucketState;
use crate::state::context::StateContext;
use crate::state::decisions::Decisions;
use crate::state::effect::{Apply, Change, Effect, catalog_changed, nothing};
use crate::state::indexes::checks::check_range;

/// The largest number of projectors with a copy of one bucket: a move adds one until its target leads.
pub(crate) const MEMBERS_MAX: usize = COPIES_MAX as usize + 1;

/// The copies of a new bucket: one, at the projector that owns its vbuckets; `None` for a pushed bucket.
pub(in crate::state) fn first_copies(info: &BucketInfo) -> Option<Copies> {
    let owner = info.assignment.owner(VbucketId(0))?;
    info.source.is_only_copy().then(|| Copies::single(owner))
}

fn check_number(copies: u8) -> Result<()> {
    check_range("copies", copies.into(), 1, COPIES_MAX.into())
}

fn of_pushed(name: &str) -> Error {
    let what = format!(
        "bucket \"{name}\" has no copies: its producer has the data, or its versions have holders"
    );
    Error::new(ErrorCode::Unsupported, what)
        .with_hint("omit copies; only an embedded bucket, made without FROM, has them")
}

/// Checks CREATE BUCKET … WITH (copies = n) before anything is made.
pub(in crate::state) fn check_copied(copies: u8, (name, source): (&str, SourceKind)) -> Result<()> {
    check_number(copies)?;
    match !source.is_only_copy() && copies > 1 {
        true => Err(of_pushed(name)),
        false => Ok(()),
    }
}

impl Apply for SetCopies {
    fn apply(&self, state: &mut StateContext, _decided: &Decisions) -> Change {
        state.set_copies(self.bucket, self.copies)
    }
}

impl Apply for MoveBucket {
    fn apply(&self, state: &mut StateContext, _decided: &Decisions) -> Change {
        state.move_bucket(self.bucket, self.to)
    }
}

impl Apply for ChangeCopies {
    fn apply(&self, state: &mut StateContext, _decided: &Decisions) -> Change {
        state.change_copies(self.bucket, self.revision, self.change)
    }
}

impl Apply for OpenSource {
    fn apply(&self, state: &mut StateContext, _decided: &Decisions) -> Change {
        state.open_source((self.bucket, self.projector), &self.history, self.accepted)
    }
}

impl StateContext {
    /// Sets the number of copies of a bucket that was just made. The other copies join when there are projectors for them.
    pub(in crate::state) fn wants_copies(&mut self, bucket: BucketId, copies: u8) {
        if let Some(known) = self.copies.get_mut(&bucket) {
            known.wanted = copies;
        }
    }

    pub(in crate::state) fn set_copies(&mut self, bucket: BucketId, wanted: u8) -> Change {
        check_number(wanted)?;
        let info = self.bucket_of_command(bucket)?;
        let copies = self.copies.get_mut(&bucket).ok_or_else(|| of_pushed(&info.name))?;
        if copies.wanted == wanted {
            return nothing();
        }
        copies.set_wanted(wanted);
        catalog_changed()
    }

    pub(in crate::state) fn move_bucket(&mut self, bucket: BucketId, to: NodeId) -> Change {
        let info = self.bucket_of_command(bucket)?;
        let role = self.role_of(to)?;
        if role != Role::Projector {
            let what = format!("node {to} is not a projector, its role is {}", role.name());
            return Err(Error::new(ErrorCode::InvalidParameter, what)
                .with_hint("SHOW NODES lists the projectors"));
        }
        let Some(copies) = self.copies.get_mut(&bucket) else {
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

    /// Makes a change of the copies if it is still possible.
    pub(in crate::state) fn change_copies(
        &mut self,
        bucket: BucketId,
        revision: u64,
        change: CopiesChange,
    ) -> Change {
        let Some(present) = self.copies.get(&bucket) else {
            let what = format!("there is no bucket {bucket} with copies");
            return Err(Error::new(ErrorCode::Unknown, what)
                .with_hint("it was dropped, or it is pushed; SHOW COPIES lists the copies"));
        };
        let mut next = present.clone();
        if !self.is_allowed(present, change) || next.change(revision, change).is_err() {
            return Ok((Outcome::Copies(next), Vec::new()));
        }
        self.give_vbuckets_to(bucket, next.leader);
        self.copies.insert(bucket, next.clone());
        Ok((Outcome::Copies(next), vec![Effect::CatalogChanged]))
    }

    /// Checks what depends on more than the copies: only a registered projector joins, and only if a copy is missing or the bucket
    /// moves to it.
    fn is_allowed(&self, copies: &Copies, change: CopiesChange) -> bool {
        let CopiesChange::Join(node) = change else { return true };
        let members = copies.members().count();
        let is_needed = members < usize::from(copies.wanted) || copies.move_to == Some(node);
        is_needed && members < MEMBERS_MAX && self.role_of(node).ok() == Some(Role::Projector)
    }

    /// The leader owns the vbuckets.
    fn give_vbuckets_to(&mut self, bucket: BucketId, leader: NodeId) {
        let Some(known) = self.buckets.get_mut(&bucket) else { return };
        if known.info.assignment.owner(VbucketId(0)) != Some(leader) {
            let assignment = VbucketAssignment::single(known.info.vbuckets, leader);
            Arc::make_mut(&mut known.info).assignment = Arc::new(assignment);
        }
    }

    /// `--skip-epochs`: each bucket continues with its leader alone, above all terms and revisions that were ever given.
    pub(in crate::state) fn leave_leaders_alone(&mut self, above: u64) {
        for copies in self.copies.values_mut() {
            let Copies { wanted, leader, .. } = *copies;
            *copies = Copies { wanted, term: above, revision: above, ..Copies::single(leader) };
        }
    }

    /// The number of buckets in which a projector has a part.
    pub(in crate::state) fn buckets_at(&self, projector: NodeId) -> usize {
        let has_copy = |id: &BucketId| {
            self.copies.get(id).is_some_and(|copies| copies.role(projector) != CopyRole::None)
        };
        let concerns = |bucket: &BucketState| bucket.info.assignment.concerns(projector);
        self.buckets.iter().filter(|(id, bucket)| concerns(bucket) || has_copy(id)).count()
    }

    /// Checks that each bucket keeps its leader and, if it should have several copies, another complete one without a projector.
    pub(in crate::state) fn check_copies_without(&self, node: NodeId) -> Result<()> {
        for (id, copies) in &self.copies {
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
            let name = self.buckets.get(id).map_or("", |bucket| &bucket.info.name);
            let what = format!("node {node} {part} bucket \"{name}\"");
            return Err(Error::new(ErrorCode::InvalidParameter, what).with_hint(hint));
        }
        Ok(())
    }

    /// Removes a projector, which leads no bucket, from all copies.
    pub(in crate::state) fn leave_copies(&mut self, node: NodeId) {
        for copies in self.copies.values_mut() {
            if copies.move_to == Some(node) {
                copies.set_move_to(None);
            }
            copies.forget(node);
            // A projector without a part has nothing to leave.
            let _ = copies.change(copies.revision, CopiesChange::Leave(node));
        }
    }
}

#[cfg(test)]
mod tests;
