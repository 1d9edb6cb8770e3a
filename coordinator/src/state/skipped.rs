//! The numbers that `--skip-epochs` has passed over.

use std::collections::BTreeMap;

use proto::model::ids::{BucketId, Epoch};
use serde::{Deserialize, Serialize};

/// The numbers that were passed over.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Skips {
    /// Added to log positions where they serve as revisions, so that revisions are above those that nodes know.
    pub(super) above: u64,
    /// The epochs up to which the rollbacks in progress leave everything dead.
    pub(super) epochs: BTreeMap<BucketId, Epoch>,
}
