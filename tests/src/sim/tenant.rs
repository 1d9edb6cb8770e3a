//! A second bucket in addition to the client's: the bucket is created, indexed, written, scanned
//! and dropped repeatedly. Its writes and scans are judged like the client's; after its drop no
//! scan may return its documents, even of a bucket or an index with its name.

use std::sync::Arc;
use std::time::Duration;

use proto::model::bucket::SourceKind;
use proto::model::ids::BucketId;
use proto::model::index::IndexInfo;
use proto::rpc::api::{CheckedWrites, Write, WriteKind};
use proto::rpc::command::{Command, CreateBucket, DropBucket, Outcome};
use proto::rpc::scan::Consistency;
use proto::value::DOCUMENT_BYTES_MAX;
use proto::{ErrorCode, Result};
use serde_json::json;
use sextant::sql::named::run_on_bucket;
use tokio::time::{sleep, timeout};

use super::checks::is_lossy_without_copies;
use super::client::session::Session;
use super::client::workload::{STATEMENT, create, now};
use super::cluster::hosts::VBUCKETS;
use super::judge::oracle::SimIndex;
use super::judge::statements::{self, MARK, Statements};
use super::scans::{Query, Reader};
use super::violation;

/// The name of the bucket.
const BUCKET: &str = "tenant";
/// The index of the tenant.
pub const INDEX: SimIndex = SimIndex {
    name: "of_tenant",
    sql: "CREATE INDEX of_tenant ON tenant (n) INCLUDE (w) WITH (slices = 2, replicas = 1)",
    keys: |document| match document.get("n") {
        None => Vec::new(),
        n => vec![vec![n.cloned()]],
    },
    descending: &[false],
    included: Some(MARK),
};
/// The number of document ids.
const IDS: u64 = 20;

fn drop_bucket(bucket: BucketId) -> Result<Command> {
    Ok(Command::DropBucket(DropBucket { bucket, restrict: false }))
}

/// The tenant, by its reader.
pub(super) struct Tenant(pub Reader);

impl Tenant {
    /// Creates, uses and drops the bucket repeatedly, until the future is dropped.
    pub async fn run(mut self, session: Session) {
        loop {
            sleep(Duration::from_millis(self.0.random.u64(50..500))).await;
            let dropping = run_on_bucket(&session.backend, BUCKET, drop_bucket);
            match timeout(STATEMENT, dropping).await {
                Ok(Ok(_)) => {}
                Ok(Err(error)) if error.code == ErrorCode::Unknown => {}
                _ => continue,
            }
            let command = Command::CreateBucket(CreateBucket {
                name: BUCKET.into(),
                vbuckets: VBUCKETS,
                source: SourceKind::Embedded,
                projectors: 1,
                copies: None,
                if_not_exists: false,
            });
            let created = timeout(STATEMENT, session.backend.command(command.into())).await;
            if let Ok(Ok(Outcome::Bucket(id))) = created
                && let Some(bucket) = session.router.catalog().buckets.get(&id).cloned()
            {
                let session = session.of_bucket(bucket);
                self.live(&session).await;
                self.die(&session).await;
            }
        }
    }

    /// Writes and scans for some seconds, then judges the bucket's history.
    async fn live(&mut self, session: &Session) {
        let mut statements = Statements::default();
        let _ = timeout(STATEMENT, create(session, &INDEX, true)).await;
        for _ in 0..self.0.random.usize(5..40) {
            match self.0.random.u8(..4) {
                0 => drop(self.0.scan(session, &INDEX, false, false).await),
                _ => self.write(session, &mut statements).await,
            }
            sleep(Duration::from_millis(self.0.random.u64(..100))).await;
        }
        let Some(histories) = self.0.truth.histories(session.bucket.id) else { return };
        if let Some(what) = statements.judge(&histories, is_lossy_without_copies(&self.0.summary)) {
            violation(&self.0.summary, format!("{BUCKET}: {what}"));
        }
    }

    /// Drops the bucket. A scan of its index must then be refused.
    async fn die(&mut self, session: &Session) {
        let index = session.router.catalog().index(INDEX.name).cloned();
        let command = drop_bucket(session.bucket.id).expect("a command");
        let dropping = session.backend.command(command.into());
        let Ok(Ok(_)) = timeout(STATEMENT, dropping).await else { return };
        self.0.summary.lock().expect("not poisoned").buckets_dropped += 1;
        // A router that is cut off does not know yet; the statement waits for it for a bounded time only.
        let is_known = !session.router.catalog().buckets.contains_key(&session.bucket.id);
        if let Some(index) = index.filter(|_| is_known) {
            self.scan_dropped(session, &index).await;
        }
    }

    async fn scan_dropped(&mut self, session: &Session, index: &Arc<IndexInfo>) {
        let query = Query::all(&mut self.0.random);
        let request = query.request(&INDEX, index.local_id(), Consistency::Any);
        let scanned = timeout(STATEMENT, session.router.scan(request, None)).await;
        match scanned {
            Ok(Ok(scan)) => {
                let text = format!("index {} of a dropped bucket shows {}", index.id, scan.epoch());
                violation(&self.0.summary, text);
            }
            Ok(Err(error)) if error.code != ErrorCode::Unknown && !error.is_retry() => {
                let text = format!("a scan of an index of a dropped bucket fails with {error}");
                violation(&self.0.summary, text);
            }
            _ => {}
        }
    }

    async fn write(&mut self, session: &Session, statements: &mut Statements) {
        let statement = statements.next();
        let random = &mut self.0.random;
        let writes = (0..random.usize(1..6)).map(|row| {
            let document = json!({ MARK: format!("{statement}.{row}"), "n": random.i64(0..30) });
            let kind = match random.u8(..5) {
                0 => WriteKind::Delete,
                _ => WriteKind::Upsert(document.to_string().into()),
            };
            Write { id: format!("k{}", random.u64(..IDS)), kind }
        });
        let writes: Vec<Write> = writes.collect();
        let began = now();
        let statement = statements.begin(&writes);
        let checked = CheckedWrites::new(writes, DOCUMENT_BYTES_MAX).expect("JSON");
        let writing = async { session.backend.writer(&session.bucket)?.write(checked).await };
        match timeout(STATEMENT, writing).await {
            Ok(Ok(reply)) => {
                session.note_writes(std::slice::from_ref(&reply.position));
                statements.end(statement, statements::Outcome::Acknowledged(reply));
            }
            Ok(Err(error)) if !error.is_retry() && !self.0.is_excused(&error, began) => {
                violation(&self.0.summary, format!("a write of {BUCKET} was refused: {error}"));
            }
            _ => {}
        }
    }
}
