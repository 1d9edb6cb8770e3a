//! Computes the *contents* of stored partitions, by which projectors compare what they have
//! loaded.
//!
//! The contents of a partition are its numbers of rows and documents, their bytes, and a digest.
//! A load stores the rows in sorted blocks, named sheets, and each sheet computes the contents of
//! its documents ([`super::sheet`]). If no id is in two sheets, as in nearly all files, their sum
//! is the contents of the partitions ([`Distinct`]). Otherwise one pass over the stored documents
//! computes them.

use std::collections::BTreeMap;

use proto::Result;
use proto::env::Bulk;
use proto::model::data_set::PartitionContent;
use proto::model::ids::{VbucketId, vbucket_of};

use super::sheet::SheetContents;
use crate::projector::Projector;
use crate::source::StoredDocument;
use crate::source::view::bucket::Bucket;

/// The size in bytes of one read of documents.
const CHUNK_BYTES: usize = 1 << 20;
/// The maximum number of documents whose ids are compared in memory, at 8 bytes each.
const COMPARED_MAX: usize = 16 << 20;

/// The contents (counts, bytes and digest) of some partitions.
pub type Contents = BTreeMap<VbucketId, PartitionContent>;

/// The sum of the contents of some sheets of rows. The sum is valid as long as no id is in two
/// sheets.
#[derive(Default)]
pub struct DistinctContents {
    partitions: Contents,
    hashes: Vec<u64>,
    is_too_large: bool,
}

impl DistinctContents {
    /// Adds the contents of a sheet.
    pub fn add(&mut self, sheet: SheetContents) {
        self.is_too_large |= self.hashes.len() + sheet.hashes.len() > COMPARED_MAX;
        if self.is_too_large {
            self.hashes = Vec::new();
            return;
        }
        self.hashes.extend(sheet.hashes);
        for (partition, content) in sheet.partitions {
            self.partitions.entry(partition).or_default().add_all(&content);
        }
    }

    /// Returns the sum of the contents of all sheets, without the numbers of rows. `None` if two
    /// ids have equal hashes, so that the same id may be in two sheets.
    pub fn contents(mut self) -> Option<Contents> {
        self.hashes.sort_unstable();
        let is_distinct = self.hashes.windows(2).all(|pair| pair[0] != pair[1]);
        (is_distinct && !self.is_too_large).then_some(self.partitions)
    }
}

/// Adds to the contents of partitions the numbers of rows that their files have.
pub fn with_rows(mut contents: Contents, rows: &BTreeMap<VbucketId, u64>) -> Contents {
    let of = |(partition, rows): (&VbucketId, &u64)| {
        let found = contents.remove(partition).unwrap_or_default();
        (*partition, PartitionContent { rows: *rows, ..found })
    };
    rows.iter().map(of).collect()
}

/// Computes the contents of partitions from the stored documents. `rows` has the numbers of rows
/// in the files.
pub async fn stored_contents(
    projector: &Projector,
    bucket: &Bucket,
    rows: &BTreeMap<VbucketId, u64>,
) -> Result<Contents> {
    let (env, store) = (&projector.env, projector.store());
    let (id, partitions) = (bucket.info.id, bucket.info.vbuckets);
    let mut found = with_rows(Contents::new(), rows);
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
            count => projector.loads.add_steps(id, count),
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
