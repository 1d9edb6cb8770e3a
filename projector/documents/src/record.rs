//! The record of a bucket in a store.
//!
//! A stored record that ends anywhere but where its build ended it is damage.

use std::collections::BTreeMap;

use proto::model::bucket::BucketInfo;
use proto::model::history::Branches;
use proto::model::identity::UniqueId;
use proto::model::ids::{Seqno, VbucketId};
use serde::{Deserialize, Serialize};

use super::ownership::Ownership;
use proto::model::commits::NewestCommits;

/// The record of a bucket in a store, besides the bucket's contents.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BucketRecord {
    /// The bucket's definition.
    pub info: BucketInfo,
    /// The branches of each vbucket.
    pub branches: Vec<Branches>,
    /// The vbuckets that the projector owns.
    pub ownership: Ownership,
    /// Branches of pushed vbuckets that were begun and are no longer part of the history, newest first and at most
    /// [`BRANCHES_MAX`](proto::model::history::BRANCHES_MAX).
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
    /// True if the bucket is not the catalog's: the catalog has another one under the number, or none. This bucket is never served, and
    /// only a catalog that names it as dropped removes it.
    pub is_foreign: bool,
}

/// True if a vbucket with these branches and this end is partial: it is being copied document by document, or removed.
/// It must not be read, and its remains are removed before it is copied again.
pub fn is_partial(branches: &Branches, end: Seqno) -> bool {
    end.0 > 0 && branches.is_empty()
}
