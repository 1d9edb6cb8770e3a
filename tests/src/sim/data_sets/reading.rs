//! The readers of versions: scans and transactions over the indexes, judged like all scans, and
//! reads of documents by id.

use std::sync::Arc;
use std::time::Duration;

use proto::model::bucket::BucketInfo;
use proto::{ErrorCode, Result};
use tokio::time::{sleep, timeout};

use super::contents::{IDS, INDEXES};
use super::loads::current_of;
use super::{DataSets, NAME};
use crate::sim::client::session::Session;
use crate::sim::client::workload::{STATEMENT, now};
use sextant::access::TransactionView;

impl DataSets {
    /// Reads versions until the future is dropped.
    pub(super) async fn read(mut self, session: Session) {
        let mut newest = 0;
        self.reader.random = self.random.fork();
        loop {
            sleep(Duration::from_millis(self.random.u64(20..700))).await;
            let catalog = session.router.catalog();
            session.versions.learn(&catalog);
            let current = current_of(&catalog, session.bucket.id);
            if current < newest {
                self.violation(format!("a session of version {newest} goes back to {current}"));
            }
            newest = current;
            match self.random.u8(..6) {
                0 | 1 => {
                    let ids = (0..self.random.usize(1..6)).map(|_| self.random.u64(..IDS));
                    let ids = ids.map(|id| format!("p{id}")).collect();
                    if let Some(bucket) = catalog.read_bucket(NAME).cloned() {
                        let _ = self.read_documents(&session, &bucket, ids).await;
                    }
                }
                2 => self.reader.transaction(&session, &INDEXES).await,
                _ => {
                    let index = &INDEXES[self.random.usize(..INDEXES.len())];
                    let slowly = self.random.bool();
                    let _ = self.reader.scan(&session, index, false, slowly).await;
                }
            }
            let gone = session.falsely_gone(&self.reader.summary.lock().expect("not poisoned"));
            gone.into_iter().for_each(|what| self.violation(what));
        }
    }

    /// Reads documents of a version, and compares them with the model; returns the error if the
    /// read is refused.
    pub(super) async fn read_documents(
        &self,
        session: &Session,
        bucket: &Arc<BucketInfo>,
        ids: Vec<String>,
    ) -> Result<()> {
        let Some(must) = session.versions.documents(bucket.id) else { return Ok(()) };
        let began = now();
        let reading = session.backend.get(bucket, ids.clone(), TransactionView::default());
        let Ok(read) = timeout(STATEMENT, reading).await else {
            return Err(proto::Error::unavailable("documents were not read in time"));
        };
        let found = match read {
            Ok(found) => found,
            Err(error) => {
                // The version may have been dropped.
                let is_gone = error.code == ErrorCode::Unknown;
                if !error.is_retry() && !is_gone && !self.reader.is_excused(&error, began) {
                    self.violation(format!("documents of {} are refused: {error}", bucket.name));
                }
                return Err(error);
            }
        };
        self.count(|summary| summary.version_documents_read += ids.len() as u64);
        for (id, found) in ids.iter().zip(found) {
            let found = found.map(|found| serde_json::from_slice(&found).expect("JSON"));
            if found.as_ref() != must.get(id) {
                let (name, must) = (&bucket.name, must.get(id));
                self.violation(format!("{name} shows document {id} as {found:?}, not {must:?}"));
            }
        }
        Ok(())
    }
}
