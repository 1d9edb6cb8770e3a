//! Loads the partitions of a data set's version from its files.

use std::collections::BTreeMap;
use std::sync::Arc;

use proto::env::Bulk;
use proto::model::assignment::VbucketSet;
use proto::model::ids::VbucketId;
use tokio::time::Instant;

use super::attempt::{LoadFailure, LoadReport, check_same_contents, current_version};
use super::contents::{stored_contents, with_rows};
use super::store_rows::{StoredRows, store_rows};
use crate::projector::Projector;
use crate::source::view::bucket::Bucket;

/// Loads partitions of a version from its files, and marks them as complete.
pub async fn load(
    projector: &Arc<Projector>,
    bucket: &Arc<Bucket>,
    partitions: VbucketSet,
) -> std::result::Result<LoadReport, LoadFailure> {
    let (id, began) = (bucket.info.id, Instant::now());
    projector.loads.add_steps(id, 0);
    let files = current_version(projector, id)?.files;
    tracing::info!(bucket = %bucket.info.name, pattern = %files.pattern, ?partitions, "loading partitions");
    let (writer, at, cleared) =
        (Arc::clone(&projector.writer), Arc::clone(bucket), partitions.clone());
    let clear = move || writer.clear_partitions(&at, &cleared);
    projector.env.bulk(Bulk::AtOnce, clear).await?;
    let StoredRows { rows, contents } = store_rows(projector, bucket, &partitions).await?;
    let of_each = partitions.iter().map(|partition| (partition, rows.rows_of(partition)));
    let of_each: BTreeMap<VbucketId, u64> = of_each.collect();
    let contents = match contents {
        Some(contents) => with_rows(contents, &of_each),
        None => stored_contents(projector, bucket, &of_each).await?,
    };
    let found = check_same_contents(
        &current_version(projector, id)?,
        LoadReport { contents, read: Some(rows.read) },
    )?;
    for (partition, rows) in of_each {
        let (writer, at, me) =
            (Arc::clone(&projector.writer), Arc::clone(bucket), projector.node_id());
        let complete = move || writer.complete_partition(&at, (partition, rows), me);
        projector.env.bulk(Bulk::AtOnce, complete).await?;
    }
    let documents: u64 = found.contents.values().map(|content| content.documents).sum();
    let seconds = began.elapsed().as_secs_f64();
    tracing::info!(bucket = %bucket.info.name, documents, seconds, "partitions are loaded");
    Ok(found)
}
