//! Places of the router for the scans of a merge.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::*;

/// A scan of some empty blocks, which holds one of the router's places from its first read until it is parked.
struct Placed {
    places: Arc<Semaphore>,
    place: Option<OwnedSemaphorePermit>,
    blocks: usize,
}

#[async_trait]
impl BatchSource for Placed {
    fn epoch(&self) -> Epoch {
        Epoch(1)
    }

    async fn next(&mut self) -> Result<Option<ScanBatch>> {
        if self.place.is_none() {
            self.place = Some(Arc::clone(&self.places).acquire_owned().await.expect("open"));
        }
        let left = self.blocks.checked_sub(1);
        self.blocks = left.unwrap_or_default();
        Ok(left.map(|_| ScanBatch::Rows(RowBlock::default())))
    }

    fn park(&mut self) {
        self.place = None;
    }

    fn end_page_after(&mut self, _rows: u64) {}

    fn page_is_full(&self) -> bool {
        false
    }

    fn token(&self) -> Result<Option<String>> {
        Ok(None)
    }
}

fn merge(places: &Arc<Semaphore>) -> Merged {
    let scan =
        |blocks| Scan::new(Box::new(Placed { places: Arc::clone(places), place: None, blocks }));
    Merged {
        scans: [3, 1, 2].map(scan).into(),
        epoch: Epoch(1),
        reverse: false,
        descending: vec![false],
        parts: Vec::new(),
        distinct: None,
        last: None,
        skip: 0,
        left: u64::MAX,
        page_left: u64::MAX,
    }
}

#[tokio::test(start_paused = true)]
async fn merges_go_on_with_fewer_places_than_they_have_scans() {
    let places = Arc::new(Semaphore::new(1));
    let ends = |mut merge: Merged| async move { merge.next().await.map(|batch| batch.is_none()) };
    let both = async { tokio::join!(ends(merge(&places)), ends(merge(&places))) };
    let both = tokio::time::timeout(Duration::from_secs(60), both).await;
    assert_eq!(both.expect("an end"), (Ok(true), Ok(true)));
}
