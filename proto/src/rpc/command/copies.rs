//! Copies of embedded buckets.

use serde::{Deserialize, Serialize};

use super::kind::{Audited, CommandKind, Need, Process};
use crate::model::copies::CopiesChange;
use crate::model::history::SourceHistory;
use crate::model::ids::{BucketId, Epoch, NodeId};
use crate::model::node::Role;
use crate::model::users::Privilege;

/// ALTER BUCKET … SET (copies = n): the leading coordinator makes more copies of an embedded bucket, or gives some up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SetCopies {
    /// The bucket to change.
    pub bucket: BucketId,
    /// The number of copies.
    pub copies: u8,
}

impl CommandKind for SetCopies {
    const AUDITED: Option<Audited> = Some(Audited::Definition);

    fn need(&self) -> Need {
        Need::Bucket(Privilege::Define, self.bucket)
    }
}

/// ALTER BUCKET … MOVE TO 'n': a projector gets a copy of an embedded bucket and then leads it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MoveBucket {
    /// The bucket to change.
    pub bucket: BucketId,
    /// The projector.
    pub to: NodeId,
}

impl CommandKind for MoveBucket {
    const AUDITED: Option<Audited> = Some(Audited::Move);

    fn need(&self) -> Need {
        Need::Bucket(Privilege::Rebalance, self.bucket)
    }
}

/// A change of a bucket's copies: compare-and-set. The answer is `Outcome::Copies`, whether it was made or not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChangeCopies {
    /// The bucket whose copies change.
    pub bucket: BucketId,
    /// `Copies::revision` before the change.
    pub revision: u64,
    /// The change of the copies.
    pub change: CopiesChange,
}

impl CommandKind for ChangeCopies {
    const AUDITED: Option<Audited> = None;

    fn need(&self) -> Need {
        Need::Process(Process::Projector)
    }
}

/// A projector has started with its vbuckets of an embedded bucket, and asks whether it may serve them. The outcome is `Outcome::Lacks`
/// if they lack mutations that the last epoch covers: these exist nowhere else, so the bucket is rolled back only when an operator has
/// accepted the loss.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OpenSource {
    /// The bucket to open.
    pub bucket: BucketId,
    /// The projector that opens the bucket.
    pub projector: NodeId,
    /// The history of its vbuckets.
    pub history: Box<SourceHistory>,
    /// The epoch of an earlier `Outcome::Lacks` whose loss an operator has accepted.
    pub accepted: Option<Epoch>,
}

impl CommandKind for OpenSource {
    const AUDITED: Option<Audited> = None;

    fn need(&self) -> Need {
        Need::Process(Process::Node(self.projector, Some(Role::Projector)))
    }
}
