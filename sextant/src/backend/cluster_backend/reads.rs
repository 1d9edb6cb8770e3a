//! The leases and scans that a router returns, wrapped so that they count rows and times.

use std::sync::Arc;

use async_trait::async_trait;
use proto::Result;
use proto::model::catalog::Catalog;
use proto::model::ids::{BucketId, Epoch};
use router::{PinnedEpoch, ScanBatch, ScanStream};
use tokio::time::Instant;

use crate::access::{BatchSource, EpochPin};
use crate::backend::counters::Counters;

/// A lease on an epoch that the router has granted.
pub(super) struct RouterPin(pub PinnedEpoch);

#[async_trait]
impl EpochPin for RouterPin {
    fn epoch(&self) -> Epoch {
        self.0.epoch()
    }

    fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(self.0.catalog())
    }

    async fn pin_at(&self, bucket: BucketId, timeout_ms: u64) -> Result<Box<dyn EpochPin>> {
        Ok(Box::new(RouterPin(self.0.pin_at(bucket, timeout_ms).await?)))
    }
}

/// A scan of the router, which counts its rows and measures its duration.
pub(super) struct CountedBatches {
    pub scan: ScanStream,
    pub began: Instant,
    pub counters: Arc<Counters>,
}

#[async_trait]
impl BatchSource for CountedBatches {
    fn epoch(&self) -> Epoch {
        self.scan.epoch()
    }

    async fn next(&mut self) -> Result<Option<ScanBatch>> {
        let batch = self.scan.next().await?;
        match &batch {
            Some(ScanBatch::Rows(block)) => self.counters.scan_rows.inc_by(u64::from(block.rows)),
            Some(ScanBatch::Aggregates(_)) => 0,
            None => {
                self.counters.scan_whole.observe(self.began.elapsed().as_secs_f64());
                0
            }
        };
        Ok(batch)
    }

    fn park(&mut self) {
        self.scan.park();
    }

    fn end_page_after(&mut self, rows: u64) {
        self.scan.end_page_after(rows);
    }

    fn page_is_full(&self) -> bool {
        self.scan.page_is_full()
    }

    fn token(&self) -> Result<Option<String>> {
        self.scan.token()
    }
}
