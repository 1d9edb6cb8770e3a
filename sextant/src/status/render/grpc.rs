//! The messages of the gRPC service `Admin`, built from the status.

use proto::grpc::{Bucket, Index};

use crate::status::{BucketStatus, IndexStatus};

/// Returns the gRPC message of a bucket.
pub(crate) fn bucket(status: &BucketStatus) -> Bucket {
    Bucket {
        name: status.name.clone(),
        vbuckets: status.vbuckets.into(),
        source: status.source.into(),
        copies_in_sync: status.copies_in_sync.map(|count| count as u32),
        copies_wanted: status.copies_wanted.map(|count| count as u32),
    }
}

/// Returns the gRPC message of an index.
pub(crate) fn index(status: &IndexStatus) -> Index {
    Index {
        name: status.name.clone(),
        bucket: status.bucket.clone(),
        state: status.state.into(),
        slices: status.slices.into(),
        replicas: status.replicas.into(),
        definition: status.definition.clone(),
    }
}
