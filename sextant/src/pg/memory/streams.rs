//! The leases and scans of the cluster in memory.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use proto::Result;
use proto::model::catalog::Catalog;
use proto::model::ids::{BucketId, Epoch};
use proto::rpc::rows::RowBlockBuilder;
use proto::value::Value;
use proto::value::key::encode_entry;
use router::ScanBatch;

use super::state::MemoryState;
use crate::access::{BatchSource, EpochPin};

/// A lease on a copy of the documents. The copy has an epoch and a catalog.
pub(super) struct MemoryPin(pub Arc<Mutex<MemoryState>>, pub (Epoch, Arc<Catalog>));

#[async_trait]
impl EpochPin for MemoryPin {
    fn epoch(&self) -> Epoch {
        self.1.0
    }

    fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&self.1.1)
    }

    /// Pins the present epoch. In this cluster, one epoch applies to all buckets.
    async fn pin_at(&self, _: BucketId, _: u64) -> Result<Box<dyn EpochPin>> {
        self.0.lock().unwrap().pins += 1;
        Ok(Box::new(MemoryPin(Arc::clone(&self.0), self.1.clone())))
    }
}

impl Drop for MemoryPin {
    fn drop(&mut self) {
        self.0.lock().unwrap().pins -= 1;
    }
}

/// A scan: its remaining batches, its epoch, and a counter of parked scans.
pub(super) struct MemoryBatches(pub std::vec::IntoIter<ScanBatch>, pub Epoch, pub Arc<AtomicU64>);

#[async_trait]
impl BatchSource for MemoryBatches {
    fn epoch(&self) -> Epoch {
        self.1
    }

    async fn next(&mut self) -> Result<Option<ScanBatch>> {
        // Like a network, it sometimes has nothing ready.
        tokio::task::yield_now().await;
        Ok(self.0.next())
    }

    fn park(&mut self) {
        self.2.fetch_add(1, Ordering::Relaxed);
    }

    fn end_page_after(&mut self, _: u64) {}

    fn page_is_full(&self) -> bool {
        false
    }

    fn token(&self) -> Result<Option<String>> {
        Ok(None)
    }
}

/// An endless scan: a counter of requested batches, true if the scan never answers, and a counter
/// of parked scans.
pub(super) struct EndlessScan(pub Arc<AtomicU64>, pub bool, pub Arc<AtomicU64>);

#[async_trait]
impl BatchSource for EndlessScan {
    fn epoch(&self) -> Epoch {
        Epoch(1)
    }

    async fn next(&mut self) -> Result<Option<ScanBatch>> {
        if self.1 {
            std::future::pending::<()>().await;
        }
        let first = self.0.fetch_add(1, Ordering::Relaxed) * 100;
        let mut block = RowBlockBuilder::default();
        for n in first..first + 100 {
            let mut entry = Vec::new();
            encode_entry(&[Value::int(n as i64)], &[false], "id", &mut entry)?;
            block.push(&entry, b"");
        }
        Ok(Some(ScanBatch::Rows(block.finish())))
    }

    fn park(&mut self) {
        self.2.fetch_add(1, Ordering::Relaxed);
    }

    fn end_page_after(&mut self, _: u64) {}

    fn page_is_full(&self) -> bool {
        false
    }

    fn token(&self) -> Result<Option<String>> {
        Ok(None)
    }
}
