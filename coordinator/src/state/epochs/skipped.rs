//! The numbers that `--skip-epochs` has passed over.

use std::collections::BTreeMap;

use proto::model::ids::{BucketId, Epoch};
use serde::{Deserialize, Serialize};

/// The numbers that were passed over.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(in crate::state) struct Skips {
    /// The offset of log positions that serve as revisions, which makes revisions larger than those that nodes know.
    pub(in crate::state) above: u64,
    /// The epochs up to which the rollbacks in progress leave everything dead.
    pub(in crate::state) epochs: BTreeMap<BucketId, Epoch>,
}
