//! The record of a bucket: its definition, its branches, and what else a store must keep about
//! it.
//!
//! The decoder must consume a stored record exactly to its end; otherwise the record is damaged.

use std::collections::BTreeMap;

use proto::model::bucket::BucketInfo;
use proto::model::history::Branches;
use proto::model::identity::UniqueId;
use proto::model::ids::{Seqno, VbucketId};
use serde::{Deserialize, Serialize};

use super::ownership::Ownership;
use proto::model::commits::NewestCommits;

/// The stored metadata of a bucket.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BucketRecord {
    /// The bucket's definition.
    pub info: BucketInfo,
    /// The branches of each vbucket.
    pub branches: Vec<Branches>,
    /// The vbuckets that the projector owns.
    pub ownership: Ownership,
    /// Branches of vbuckets that a producer has begun and that are no longer part of the history,
    /// newest first. At most [`BRANCHES_MAX`](proto::model::history::BRANCHES_MAX) are kept per
    /// vbucket.
    pub given_up: BTreeMap<VbucketId, Branches>,
    /// The newest commits of transactions. They are encoded after the record, without the changes
    /// that the log contains (`change_log::StoredCommits`).
    #[serde(skip)]
    pub commits: NewestCommits,
}

/// The random id of a stored bucket, and whether the catalog has the same one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredId {
    /// The random id of the bucket.
    pub unique: UniqueId,
    /// True if the catalog has another bucket under this number, or none. Such a bucket is never
    /// served, and is removed only by a catalog that lists its random id as dropped.
    pub is_foreign: bool,
}

/// Returns true if a vbucket with these branches and this last seqno is *partial*: it is being
/// copied document by document, or being removed. A partial vbucket must not be read, and its
/// data is removed before it is copied again.
pub fn is_partial(branches: &Branches, end: Seqno) -> bool {
    end.0 > 0 && branches.is_empty()
}
