//! Tests of the router's permits for the scans of a merge.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::*;

/// A scan of empty blocks that holds one of the router's permits from its first read until it is
/// parked.
struct Placed {
    places: Arc<Semaphore>,
    place: Option<OwnedSemaphorePermit>,
    /// The duration of each read.
    slow: Duration,
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
        tokio::time::sleep(self.slow).await;
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

fn merge(places: &Arc<Semaphore>) -> MergedScans {
    // Scans take their first places one by one.
    let scan = |blocks| {
        let placed =
            Placed { places: Arc::clone(places), place: None, slow: Duration::ZERO, blocks };
        Scan { is_parked: true, ..Scan::new(Box::new(placed)) }
    };
    merge_of([3, 1, 2].map(scan).into())
}

fn merge_of(scans: Vec<Scan>) -> MergedScans {
    MergedScans {
        scans,
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
    let ends =
        |mut merge: MergedScans| async move { merge.next().await.map(|batch| batch.is_none()) };
    let both = async { tokio::join!(ends(merge(&places)), ends(merge(&places))) };
    let both = tokio::time::timeout(Duration::from_secs(60), both).await;
    assert_eq!(both.expect("an end"), (Ok(true), Ok(true)));
}

#[tokio::test(start_paused = true)]
async fn a_slow_scan_takes_no_place_from_the_others() {
    let places = Arc::new(Semaphore::new(3));
    let scan = |slow| {
        let place = Some(Arc::clone(&places).try_acquire_owned().expect("a place"));
        let slow = Duration::from_millis(slow);
        Scan::new(Box::new(Placed { places: Arc::clone(&places), place, slow, blocks: 3 }))
    };
    let mut merge = merge_of([0, 200, 0].map(scan).into());
    assert_eq!(merge.next().await.map(|batch| batch.is_none()), Ok(true));
    assert_eq!(places.available_permits(), 0, "each scan has kept its place");
}
