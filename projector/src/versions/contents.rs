//! What stored partitions contain.

use std::collections::BTreeMap;
use std::sync::Arc;

use proto::Result;
use proto::env::{Bulk, Env};
use proto::model::data_set::PartitionContent;
use proto::model::ids::{VbucketId, vbucket_of};

use crate::source::bucket::Bucket;
use crate::source::{DocumentStore, StoredDocument};

/// The size of a read.
const CHUNK_BYTES: usize = 1 << 20;

/// The contents of partitions of which the files have so many rows.
pub async fn contents(
    env: &Env,
    store: Arc<dyn DocumentStore>,
    bucket: &Bucket,
    rows: &BTreeMap<VbucketId, u64>,
) -> Result<BTreeMap<VbucketId, PartitionContent>> {
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
            let is_more = chunk.map(|chunk| {
                add_all(&chunk, partitions, &mut found);
                !chunk.is_empty()
            });
            (snapshot, found, is_more)
        };
        let is_more;
        (snapshot, found, is_more) = env.bulk(Bulk::Queued, read).await;
        if !is_more? {
            return Ok(found);
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
