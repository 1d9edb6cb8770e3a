//! Loads partitions from their files.

use std::collections::BTreeMap;
use std::sync::Arc;

use proto::env::Bulk;
use proto::model::assignment::VbucketSet;
use proto::model::data_set::{FilesRead, PartitionContent};
use proto::model::ids::{BucketId, VbucketId};
use proto::{Error, ErrorCode};
use tokio::time::Instant;

use super::contents::contents;
use super::plan::{Known, known};
use super::reader::{Piece, VersionReader};
use crate::projector::Projector;
use crate::source::bucket::Bucket;

/// The size of a piece of rows: its log is synced once, and the next one is read meanwhile.
const PIECE_BYTES: usize = 2 << 20;

/// The report of a projector about partitions that are whole.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// Their contents.
    pub contents: BTreeMap<VbucketId, PartitionContent>,
    /// Everything that was read for them; `None` if nothing was to be read.
    pub read: Option<FilesRead>,
}

/// Why partitions were not loaded.
#[derive(Debug)]
pub enum Failure {
    /// The version is gone, or old.
    Gone,
    /// Something is wrong with the files: reading them again does not help.
    Files(Error),
    /// Partitions contain something else here than at other projectors.
    Differs(Loaded),
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

/// Loads partitions of a version, and makes them whole.
pub async fn load(
    projector: &Arc<Projector>,
    bucket: &Arc<Bucket>,
    partitions: VbucketSet,
) -> std::result::Result<Loaded, Failure> {
    let (id, began) = (bucket.info.id, Instant::now());
    projector.loads.step(id, 0);
    let files = look(projector, id)?.files;
    tracing::info!(bucket = %bucket.info.name, pattern = %files.pattern, ?partitions, "loading partitions");
    let (writer, at, cleared) =
        (Arc::clone(&projector.writer), Arc::clone(bucket), partitions.clone());
    let clear = move || writer.clear_partitions(&at, &cleared);
    projector.env.bulk(Bulk::AtOnce, clear).await?;
    let (rows, read) = store_rows(projector, bucket, &partitions).await?;
    let found = Loaded { contents: contents(projector, bucket, &rows).await?, read: Some(read) };
    let found = same(&look(projector, id)?, found)?;
    for (partition, rows) in rows {
        let (writer, at, me) = (Arc::clone(&projector.writer), Arc::clone(bucket), projector.me());
        let complete = move || writer.complete_partition(&at, (partition, rows), me);
        projector.env.bulk(Bulk::AtOnce, complete).await?;
    }
    let documents: u64 = found.contents.values().map(|content| content.documents).sum();
    let seconds = began.elapsed().as_secs_f64();
    tracing::info!(bucket = %bucket.info.name, documents, seconds, "partitions are loaded");
    Ok(found)
}

/// Reads the files, and stores the rows of some partitions. Returns the number of rows of each, and everything that was read.
async fn store_rows(
    projector: &Arc<Projector>,
    bucket: &Arc<Bucket>,
    partitions: &VbucketSet,
) -> std::result::Result<(BTreeMap<VbucketId, u64>, FilesRead), Failure> {
    let id = bucket.info.id;
    let mut reader = open(projector, bucket, partitions.clone()).await?;
    let mut piece = Piece::default();
    let mut told_rows = 0;
    loop {
        look(projector, id)?;
        let read_rows = reader.read().rows;
        projector.loads.step(id, read_rows - told_rows);
        told_rows = read_rows;
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
    let rows = partitions.iter().map(|partition| (partition, reader.rows_of(partition)));
    Ok((rows.collect(), reader.read()))
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

/// The contents of partitions that are whole already: an earlier process has loaded them, or an attempt of this one that failed only later.
pub async fn recount(
    projector: &Arc<Projector>,
    bucket: &Arc<Bucket>,
    partitions: &VbucketSet,
) -> std::result::Result<Loaded, Failure> {
    let (writer, at, me) = (Arc::clone(&projector.writer), Arc::clone(bucket), projector.me());
    projector.env.bulk(Bulk::AtOnce, move || writer.own_whole(&at, me)).await?;
    let (durable, whole) = (bucket.durable(), bucket.whole());
    let wanted = partitions.iter().filter(|partition| whole.contains(*partition));
    let rows = wanted.map(|partition| (partition, durable.get(partition).seqno.0)).collect();
    let contents = contents(projector, bucket, &rows).await?;
    let known = look(projector, bucket.info.id)?;
    let found = same(&known, Loaded { contents, read: None })?;
    if rows.keys().all(|partition| known.content(*partition).is_some()) {
        return Ok(found);
    }
    let read = Some(read_again(projector, bucket, &rows).await?);
    Ok(Loaded { read, ..found })
}

/// Reads all files once more, to tell what is in them, and compares the numbers of rows with those of whole partitions.
async fn read_again(
    projector: &Arc<Projector>,
    bucket: &Arc<Bucket>,
    rows: &BTreeMap<VbucketId, u64>,
) -> std::result::Result<FilesRead, Failure> {
    let id = bucket.info.id;
    let mut reader = open(projector, bucket, VbucketSet::default()).await?;
    loop {
        look(projector, id)?;
        let before = reader.read().rows;
        let read = move || {
            let next = reader.next_piece(PIECE_BYTES);
            (reader, next)
        };
        let next;
        (reader, next) = projector.env.bulk(Bulk::Queued, read).await;
        projector.loads.step(id, reader.read().rows - before);
        if next.map_err(Failure::Files)?.is_last {
            break;
        }
    }
    match rows.iter().find(|(partition, rows)| reader.rows_of(**partition) != **rows) {
        None => Ok(reader.read()),
        Some((partition, rows)) => {
            let what = format!(
                "the files have changed: partition {partition} has {} rows, and {rows} were loaded",
                reader.rows_of(*partition)
            );
            Err(Failure::Files(Error::new(ErrorCode::WrongState, what).with_hint(
                "nothing may change the files before the version is current; load it again",
            )))
        }
    }
}

/// Compares what partitions contain with what other projectors have told.
fn same(known: &Known, found: Loaded) -> std::result::Result<Loaded, Failure> {
    let differs = |(partition, content): (&VbucketId, &PartitionContent)| {
        known.content(*partition).is_some_and(|other| other != *content)
    };
    match found.contents.iter().any(differs) {
        true => Err(Failure::Differs(found)),
        false => Ok(found),
    }
}
