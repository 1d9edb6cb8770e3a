//! The copies of embedded buckets, for the status. The progress of a joining copy is not
//! included.

use proto::model::catalog::Catalog;
use proto::model::copies::Copies;
use proto::model::ids::BucketId;

use super::cluster_status::CopyStatus;

/// Returns the copies of each bucket: first the leader's, then those in sync, then those that
/// join.
pub(super) fn copies(catalog: &Catalog) -> Vec<CopyStatus> {
    let of_bucket = |(id, copies): (&BucketId, &Copies)| {
        let bucket =
            catalog.buckets.get(id).map_or_else(|| id.to_string(), |info| info.name.clone());
        let status = |projector| CopyStatus {
            bucket: bucket.clone(),
            projector,
            role: copies.role(projector).name(),
            term: copies.term,
            wanted_copies: copies.wanted,
            moving_to: copies.move_to,
        };
        copies.members().map(status).collect::<Vec<_>>()
    };
    catalog.copies.iter().flat_map(of_bucket).collect()
}
