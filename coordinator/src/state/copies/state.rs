//! The copies of the embedded buckets.

use std::collections::BTreeMap;

use proto::model::bucket::BucketInfo;
use proto::model::copies::{Copies, CopiesChange, CopyRole};
use proto::model::ids::{BucketId, NodeId, VbucketId};
use serde::{Deserialize, Serialize};

use crate::state::consequence::Consequence;

/// The copies of the embedded buckets.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(in crate::state) struct CopiesState(BTreeMap<BucketId, Copies>);

impl CopiesState {
    pub(in crate::state) fn get(&self, bucket: BucketId) -> Option<&Copies> {
        self.0.get(&bucket)
    }

    pub(in crate::state) fn all(&self) -> &BTreeMap<BucketId, Copies> {
        &self.0
    }

    /// Returns true if a projector has a copy of a bucket, or joins its copies.
    pub(in crate::state) fn has_copy(&self, bucket: BucketId, projector: NodeId) -> bool {
        self.get(bucket).is_some_and(|copies| copies.role(projector) != CopyRole::None)
    }

    pub(super) fn get_mut(&mut self, bucket: BucketId) -> Option<&mut Copies> {
        self.0.get_mut(&bucket)
    }

    pub(in crate::state) fn on(&mut self, consequence: &Consequence) {
        match consequence {
            Consequence::BucketMade { info, copies, .. } => {
                let first = first_copies(info).map(|first| match copies {
                    Some(wanted) => Copies { wanted: *wanted, ..first },
                    None => first,
                });
                self.0.extend(first.map(|first| (info.id, first)));
            }
            Consequence::BucketDropped(bucket) => drop(self.0.remove(bucket)),
            Consequence::BucketStays(bucket) => {
                if let Some(copies) = self.0.get_mut(bucket) {
                    copies.set_move_to(None);
                }
            }
            Consequence::ProjectorRemoved(node) => self.forget(*node),
            Consequence::NumbersSkipped(above) => self.leave_leaders_alone(*above),
            _ => {}
        }
    }

    /// Removes a projector, which must not be the leader of any bucket, from the copies of all
    /// buckets.
    fn forget(&mut self, node: NodeId) {
        for copies in self.0.values_mut() {
            if copies.move_to == Some(node) {
                copies.set_move_to(None);
            }
            copies.forget_former_copy(node);
            // A projector without a part has nothing to leave.
            let _ = copies.change(copies.revision, CopiesChange::Leave(node));
        }
    }

    /// For `--skip-epochs`: removes all copies except the leader of each bucket. The term and the
    /// revision become `above`.
    fn leave_leaders_alone(&mut self, above: u64) {
        for copies in self.0.values_mut() {
            let Copies { wanted, leader, .. } = *copies;
            *copies = Copies { wanted, term: above, revision: above, ..Copies::single(leader) };
        }
    }
}

/// Returns the copies of a new bucket: a single one, on the projector that owns the vbuckets;
/// `None` unless the bucket is embedded.
fn first_copies(info: &BucketInfo) -> Option<Copies> {
    let owner = info.assignment.owner(VbucketId(0))?;
    info.source.is_only_copy().then(|| Copies::single(owner))
}
