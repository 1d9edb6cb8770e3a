//! Commands about the copies of embedded buckets.

use serde::{Deserialize, Serialize};

use super::kind::{Audited, CommandKind, Need, Process};
use crate::model::copies::CopiesChange;
use crate::model::history::SourceHistory;
use crate::model::ids::{BucketId, Epoch, NodeId};
use crate::model::node::Role;
use crate::model::users::Privilege;

/// ALTER BUCKET … SET (copies = n): sets the number of copies of an embedded bucket. The leading
/// coordinator then makes or removes copies.
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

/// ALTER BUCKET … MOVE TO 'n': gives a projector a copy of an embedded bucket, which then becomes
/// the leading copy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MoveBucket {
    /// The bucket that moves.
    pub bucket: BucketId,
    /// The projector that will lead the bucket.
    pub to: NodeId,
}

impl CommandKind for MoveBucket {
    const AUDITED: Option<Audited> = Some(Audited::Move);

    fn need(&self) -> Need {
        Need::Bucket(Privilege::Rebalance, self.bucket)
    }
}

/// A compare-and-set of a bucket's copies. The answer is `Outcome::Copies` with the present copies,
/// whether the change was made or not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChangeCopies {
    /// The bucket whose copies change.
    pub bucket: BucketId,
    /// The expected `Copies::revision`; with another one the change is not made.
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

/// The request of a projector, after its start, to serve its vbuckets of an embedded bucket. The
/// outcome is `Outcome::Lacks` if its files lack mutations that the last epoch covers: no other
/// node has them, so the bucket is rolled back only after an operator has accepted the loss.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OpenSource {
    /// The bucket to open.
    pub bucket: BucketId,
    /// The projector that opens the bucket.
    pub projector: NodeId,
    /// The history of the vbuckets in the projector's files.
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
