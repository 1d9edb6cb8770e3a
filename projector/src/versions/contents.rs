//! What stored partitions contain.

use std::collections::BTreeMap;

use proto::env::{Bulk, Env};
use proto::model::assignment::VbucketSet;
use proto::model::data_set::PartitionContent;
use proto::model::ids::{VbucketId, vbucket_of};
use proto::{Error, Result};
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64;

use crate::source::bucket::Bucket;
use crate::source::{DocumentSnapshot, DocumentStore, StoredDocument};

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
    let wanted: VbucketSet = rows.keys().copied().collect();
    let empty = |(partition, rows): (&VbucketId, &u64)| {
        (*partition, PartitionContent { rows: *rows, ..PartitionContent::default() })
    };
    let mut found: BTreeMap<_, _> = rows.iter().map(empty).collect();
    let mut snapshot = env.bulk(Bulk::Queued, move || store.snapshot(id)).await?;
    let mut buffer = Vec::new();
    loop {
        if bucket.is_removed() {
            return Err(bucket.removed_error());
        }
        let of = wanted.clone();
        let read = move || {
            let (mut found, is_more) = (BTreeMap::new(), add_chunk(&mut *snapshot));
            let is_more = is_more.map(|chunk| {
                add_all(&chunk, (&of, partitions), &mut buffer, &mut found);
                !chunk.is_empty()
            });
            (snapshot, buffer, found, is_more)
        };
        let (of_chunk, is_more);
        (snapshot, buffer, of_chunk, is_more) = env.bulk(Bulk::Queued, read).await;
        for (partition, more) in of_chunk {
            let content = found
                .get_mut(&partition)
                .ok_or_else(|| Error::internal("a partition that was not asked for"))?;
            content.documents += more.documents;
            content.bytes += more.bytes;
            content.digest = content.digest.wrapping_add(more.digest);
        }
        if !is_more? {
            return Ok(found);
        }
    }
}

fn add_chunk(snapshot: &mut dyn DocumentSnapshot) -> Result<Vec<StoredDocument>> {
    snapshot.next_chunk(CHUNK_BYTES)
}

fn add_all(
    documents: &[StoredDocument],
    (wanted, partitions): (&VbucketSet, u16),
    buffer: &mut Vec<u8>,
    found: &mut BTreeMap<VbucketId, PartitionContent>,
) {
    for stored in documents {
        let partition = vbucket_of(&stored.id, partitions);
        if wanted.contains(partition) {
            let content = found.entry(partition).or_default();
            content.documents += 1;
            content.bytes += (stored.id.len() + stored.document.len()) as u64;
            content.digest = content.digest.wrapping_add(digest(stored, buffer));
        }
    }
}

/// The digest of a document: XXH3-64 of the length of its id, the id, its seqno, and its text.
fn digest(stored: &StoredDocument, buffer: &mut Vec<u8>) -> u64 {
    buffer.clear();
    buffer.extend_from_slice(&(stored.id.len() as u64).to_le_bytes());
    buffer.extend_from_slice(stored.id.as_bytes());
    buffer.extend_from_slice(&stored.seqno.0.to_le_bytes());
    buffer.extend_from_slice(&stored.document);
    xxh3_64(buffer)
}
