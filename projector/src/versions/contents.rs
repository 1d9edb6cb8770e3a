//! The contents of stored partitions.

use std::collections::BTreeMap;

use proto::Result;
use proto::env::Bulk;
use proto::model::data_set::PartitionContent;
use proto::model::ids::{VbucketId, vbucket_of};

use crate::projector::Projector;
use crate::source::StoredDocument;
use crate::source::bucket::Bucket;

/// The size of a read.
const CHUNK_BYTES: usize = 1 << 20;

/// The contents of partitions of which the files have so many rows.
pub async fn contents(
    projector: &Projector,
    bucket: &Bucket,
    rows: &BTreeMap<VbucketId, u64>,
) -> Result<BTreeMap<VbucketId, PartitionContent>> {
    let (env, store) = (&projector.env, projector.store());
    let (id, partitions) = (bucket.info.id, bucket.info.vbuckets);
    let empty = |(partition, rows): (&VbucketId, &u64)| {
        (*partition, PartitionContent { rows: *rows, ..PartitionContent::default() })
    };
    let mut found: BTreeMap<_, _> = rows.iter().map(empty).collect();
    let mut snapshot = env.bulk(Bulk::Queued, move || store.snapshot(id)).await?;
    loop {
        if bucket.is_removed() {
            return Err(bucket.removed_error());
        }
        let read = move || {
            let chunk = snapshot.next_chunk(CHUNK_BYTES);
            let count = chunk.map(|chunk| {
                add_all(&chunk, partitions, &mut found);
                chunk.len() as u64
            });
            (snapshot, found, count)
        };
        let count;
        (snapshot, found, count) = env.bulk(Bulk::Queued, read).await;
        match count? {
            0 => return Ok(found),
            count => projector.loads.step(id, count),
        }
    }
}

fn add_all(
    documents: &[StoredDocument],
    partitions: u16,
    found: &mut BTreeMap<VbucketId, PartitionContent>,
) {
    for stored in documents {
        if let Some(content) = found.get_mut(&vbucket_of(&stored.id, partitions)) {
            content.add(&stored.id, stored.seqno, &stored.document);
        }
    }
}
