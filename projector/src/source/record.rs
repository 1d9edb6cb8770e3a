//! What a store keeps of a bucket besides its contents.

use std::collections::BTreeMap;

use proto::model::bucket::BucketInfo;
use proto::model::history::Branches;
use proto::model::ids::{Seqno, VbucketId};
use serde::{Deserialize, Serialize};

use super::ownership::Keeping;

/// What a store keeps of a bucket besides its contents.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BucketRecord {
    /// Its definition.
    pub info: BucketInfo,
    /// For each vbucket, its branches.
    pub branches: Vec<Branches>,
    /// Which vbuckets the projector keeps.
    pub keeping: Keeping,
    /// Of vbuckets that a producer numbers, the branches that were begun and are no part of the history any more,
    /// newest first and at most [`BRANCHES_MAX`](proto::model::history::BRANCHES_MAX).
    pub given_up: BTreeMap<VbucketId, Branches>,
}

/// Is a vbucket with these branches and this end not here as a whole? It is being copied by its documents, or
/// removed: nobody may see it, and what is left of it goes before anything else comes.
pub fn is_part(branches: &Branches, end: Seqno) -> bool {
    end.0 > 0 && branches.is_empty()
}
