//! The record of a bucket in a store.
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
    /// Branches of pushed vbuckets that were begun and are no longer part of the history, newest
    /// first, at most [`BRANCHES_MAX`](proto::model::history::BRANCHES_MAX) per vbucket.
    pub given_up: BTreeMap<VbucketId, Branches>,
    /// The newest commits of transactions. They are encoded after the record, without the changes that the log has
    /// (`change_log::StoredCommits`).
    #[serde(skip)]
    pub commits: NewestCommits,
}

/// The random id of a stored bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredId {
    /// The random id of the bucket.
    pub unique: UniqueId,
    /// True if the bucket is not the one in the catalog: the catalog has another bucket under the
    /// number, or none. Such a bucket is never served, and is removed only by a catalog that lists
    /// it as dropped.
    pub is_foreign: bool,
}

/// Returns true if a vbucket with these branches and this end is partial: it is being copied
/// document by document, or removed. It must not be read, and its data is removed before it is
/// copied again.
pub fn is_partial(branches: &Branches, end: Seqno) -> bool {
    end.0 > 0 && branches.is_empty()
}
