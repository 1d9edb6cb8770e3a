//! Loads partitions from their files.

use std::collections::BTreeMap;
use std::sync::Arc;

use proto::env::Bulk;
use proto::model::assignment::VbucketSet;
use proto::model::data_set::PartitionContent;
use proto::model::ids::{BucketId, VbucketId};
use proto::{Error, ErrorCode, Result};
use tokio::time::Instant;

use super::contents::contents;
use super::plan::{Known, known};
use super::reader::{Piece, VersionReader};
use crate::projector::Projector;
use crate::source::bucket::Bucket;

/// The size of a piece of rows: its log is synced once, and the next one is read meanwhile.
const PIECE_BYTES: usize = 2 << 20;

/// Why partitions were not loaded.
#[derive(Debug)]
pub enum Failure {
    /// The version is gone, or old.
    Gone,
    /// Something is wrong with the files: reading them again does not help.
    Files(Error),
    /// Something is wrong here.
    Here(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Here(error)
    }
}

/// The present knowledge of a version.
pub fn look(projector: &Projector, bucket: BucketId) -> std::result::Result<Known, Failure> {
    let catalog = projector.catalog.borrow().clone();
    catalog.and_then(|catalog| known(&catalog, bucket)).ok_or(Failure::Gone)
}

/// Loads partitions of a version, and makes them whole. Returns what they contain.
pub async fn load(
    projector: &Arc<Projector>,
    bucket: &Arc<Bucket>,
    partitions: VbucketSet,
) -> std::result::Result<BTreeMap<VbucketId, PartitionContent>, Failure> {
    let (id, began) = (bucket.info.id, Instant::now());
    let files = look(projector, id)?.files;
    tracing::info!(bucket = %bucket.info.name, pattern = %files.pattern, ?partitions, "loading partitions");
    let (writer, at, cleared) =
        (Arc::clone(&projector.writer), Arc::clone(bucket), partitions.clone());
    let clear = move || writer.clear_partitions(&at, &cleared);
    projector.env.bulk(Bulk::AtOnce, clear).await?;
    let rows = store_rows(projector, bucket, &partitions).await?;
    let found = contents(&projector.env, projector.store(), bucket, &rows).await?;
    check_same(&look(projector, id)?, &found).map_err(Failure::Files)?;
    for (partition, rows) in rows {
        let (writer, at, me) = (Arc::clone(&projector.writer), Arc::clone(bucket), projector.me());
        let complete = move || writer.complete_partition(&at, (partition, rows), me);
        projector.env.bulk(Bulk::AtOnce, complete).await?;
    }
    let documents: u64 = found.values().map(|content| content.documents).sum();
    let seconds = began.elapsed().as_secs_f64();
    tracing::info!(bucket = %bucket.info.name, documents, seconds, "partitions are loaded");
    Ok(found)
}

/// Reads the files, and stores the rows of some partitions. Returns the number of rows of each.
async fn store_rows(
    projector: &Arc<Projector>,
    bucket: &Arc<Bucket>,
    partitions: &VbucketSet,
) -> std::result::Result<BTreeMap<VbucketId, u64>, Failure> {
    let id = bucket.info.id;
    let mut reader = open(projector, bucket, partitions.clone()).await?;
    let mut piece = Piece::default();
    loop {
        look(projector, id)?;
        let rows = std::mem::take(&mut piece.rows);
        let (writer, at, of) =
            (Arc::clone(&projector.writer), Arc::clone(bucket), partitions.clone());
        let store = projector.env.bulk(Bulk::AtOnce, move || match rows.is_empty() {
            true => Ok(()),
            false => writer.put_rows(&at, &of, &rows),
        });
        if piece.is_last {
            store.await?;
            break;
        }
        let read = projector.env.bulk(Bulk::Queued, move || {
            let next = reader.next_piece(PIECE_BYTES);
            (reader, next)
        });
        let (stored, next);
        (stored, (reader, next)) = futures::join!(store, read);
        stored?;
        piece = next.map_err(Failure::Files)?;
    }
    Ok(partitions.iter().map(|partition| (partition, reader.rows_of(partition))).collect())
}

async fn open(
    projector: &Arc<Projector>,
    bucket: &Bucket,
    partitions: VbucketSet,
) -> std::result::Result<VersionReader, Failure> {
    let files = look(projector, bucket.info.id)?.files;
    let (fs, dir) = (Arc::clone(&projector.env.fs), projector.config.files_dir.clone());
    let (of, bytes_max) = ((partitions, bucket.info.vbuckets), projector.config.document_bytes_max);
    let open = move || VersionReader::new(fs, dir.as_deref(), &files, of, bytes_max);
    projector.env.bulk(Bulk::Queued, open).await.map_err(Failure::Files)
}

/// What whole partitions contain, which an earlier process has loaded.
pub async fn recount(
    projector: &Projector,
    bucket: &Bucket,
    partitions: &VbucketSet,
) -> std::result::Result<BTreeMap<VbucketId, PartitionContent>, Failure> {
    let (durable, whole) = (bucket.durable(), bucket.whole());
    let wanted = partitions.iter().filter(|partition| whole.contains(*partition));
    let rows = wanted.map(|partition| (partition, durable.get(partition).seqno.0)).collect();
    let found = contents(&projector.env, projector.store(), bucket, &rows).await?;
    check_same(&look(projector, bucket.info.id)?, &found).map_err(Failure::Files)?;
    Ok(found)
}

/// Checks that partitions contain what other projectors have read.
fn check_same(known: &Known, found: &BTreeMap<VbucketId, PartitionContent>) -> Result<()> {
    for (partition, content) in found {
        let other = known.contents.get(usize::from(partition.0)).copied().flatten();
        if let Some(other) = other.filter(|other| other != content) {
            let what = format!(
                "partition {partition} of {:?} contains {} documents of {} rows here, and {} documents of {} rows at another projector, or other ones",
                known.files.pattern, content.documents, content.rows, other.documents, other.rows
            );
            return Err(Error::new(ErrorCode::WrongState, what).with_hint(
                "all projectors must see the same files, and nothing may change them during a load",
            ));
        }
    }
    Ok(())
}
