//! A bucket of few documents, each written repeatedly, with indexes that have the minimum
//! `slice_bytes_max`: nearly all of the indexes' bytes are superseded versions. The judge checks
//! that each generation in the catalog has at most as many slices as the definition requires or as
//! [`slices_max`] allows for the live bytes.
//!
//! This test runs in the seeds of [`super::ranges`] whose client has an embedded bucket.

use std::sync::Arc;
use std::time::Duration;

use proto::model::bucket::{BucketInfo, SourceKind};
use proto::model::index::SLICE_BYTES_MAX_LEAST;
use proto::rpc::api::{CheckedWrites, Write, WriteKind};
use proto::rpc::command::{Command, CreateBucket, Outcome, SetSliceBytesMax};
use proto::value::DOCUMENT_BYTES_MAX;
use serde_json::json;
use tokio::time::{sleep, timeout};

use super::client::session::Session;
use super::client::workload::{STATEMENT, create};
use super::cluster::hosts::VBUCKETS;
use super::judge::oracle::SimIndex;
use super::ranges::PAD;
use super::{Shared, violation};

const BUCKET: &str = "outgrown";
/// The indexes of the bucket: one whose slices are split, and one that is rebuilt with more slices.
const INDEXES: [SimIndex; 2] = [
    SimIndex {
        sql: "CREATE INDEX outgrown_ranges ON outgrown (n) INCLUDE (p) PARTITION BY RANGE (n) SPLIT AT (50)",
        ..index("outgrown_ranges")
    },
    SimIndex {
        sql: "CREATE INDEX outgrown_hashes ON outgrown (n) INCLUDE (p) WITH (slices = 2)",
        ..index("outgrown_hashes")
    },
];
/// The number of slices in these definitions.
const SLICES_ASKED: u64 = 2;
/// The number of document ids.
const IDS: u64 = 60;
/// The length of the text in each document, in bytes.
const PAD_BYTES: usize = 3_000;
/// The maximum size of an entry and of its document in the back index, in bytes.
const ENTRY_BYTES_MAX: u64 = PAD_BYTES as u64 + 200;

const fn index(name: &'static str) -> SimIndex {
    SimIndex {
        name,
        sql: "",
        keys: |document| vec![vec![document.get("n").cloned()]],
        descending: &[false],
        included: Some(PAD),
    }
}

/// Returns the maximum number of slices of an index: a slice above the limit is split into two of
/// at least about half the limit, and an index does not grow while the mean is at most half the
/// limit.
fn slices_max(live_bytes_most: u64) -> u64 {
    SLICES_ASKED.max(4 * live_bytes_most / SLICE_BYTES_MAX_LEAST + 8)
}

/// Writes documents and checks the slices until the future is dropped.
pub(super) async fn run(mut random: fastrand::Rng, session: Session, summary: Shared) {
    let bucket = loop {
        sleep(Duration::from_millis(random.u64(50..500))).await;
        if let Some(bucket) = made(&session).await {
            break bucket;
        }
    };
    loop {
        sleep(Duration::from_millis(random.u64(10..50))).await;
        let writes = (0..random.usize(2..8)).map(|_| {
            let pad: String = (0..PAD_BYTES).map(|_| random.alphanumeric()).collect();
            let document = json!({ "n": random.i64(0..100), PAD: pad }).to_string();
            let kind = WriteKind::Upsert(document.into());
            Write { id: format!("k{}", random.u64(..IDS)), kind }
        });
        let checked = CheckedWrites::new(writes.collect(), DOCUMENT_BYTES_MAX).expect("JSON");
        let writing = async { session.backend.writer(&bucket)?.write(checked).await };
        let _ = timeout(STATEMENT, writing).await;
        judge(&session, &bucket, &summary);
    }
}

/// Creates the bucket and its indexes, as far as they are missing; `None` until all of them exist.
async fn made(session: &Session) -> Option<Arc<BucketInfo>> {
    let command = |command: Command| timeout(STATEMENT, session.backend.command(command.into()));
    let bucket = Command::CreateBucket(CreateBucket {
        name: BUCKET.into(),
        vbuckets: VBUCKETS,
        source: SourceKind::Embedded,
        projectors: 1,
        copies: None,
        if_not_exists: true,
    });
    command(bucket).await.ok()?.ok()?;
    for index in &INDEXES {
        let made = create(session, index, true);
        let Outcome::Index(index) = timeout(STATEMENT, made).await.ok()?.ok()? else { return None };
        let bytes = SLICE_BYTES_MAX_LEAST;
        command(Command::SetSliceBytesMax(SetSliceBytesMax { index, bytes })).await.ok()?.ok()?;
    }
    session.router.catalog().bucket(BUCKET).cloned()
}

fn judge(session: &Session, bucket: &BucketInfo, summary: &Shared) {
    let catalog = session.router.catalog();
    let max = slices_max(IDS * ENTRY_BYTES_MAX);
    for info in catalog.local_indexes().filter(|info| info.bucket == bucket.id) {
        let slices = u64::from(info.spec.slices);
        let mut seen = summary.lock().expect("not poisoned");
        seen.outgrown_slices = seen.outgrown_slices.max(slices);
        drop(seen);
        if slices > max {
            let (name, id) = (&info.spec.name, info.local_id());
            let text = format!(
                "index {name}, generation {id}, has {slices} slices; the live bytes of {IDS} documents are worth {max}"
            );
            violation(summary, text);
        }
    }
}
