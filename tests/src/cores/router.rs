//! A model of a router: the product's view of applied epochs, its choice of epochs, and its core of virtual scans, over
//! slices that move. Some tokens are kept for a while, and the rows of every scan are judged.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use proto::model::catalog::Catalog;
use proto::model::ids::{Epoch, NodeId, SliceId, SliceNo};
use proto::model::index::{IndexInfo, IndexState};
use proto::model::topology::TopologyProvider;
use proto::rpc::api::{Heartbeat, RouterReport};
use router::epochs::applied_epochs::{AppliedEpochs, oldest_for_scans};
use router::virtual_scan::{ScanPart, UnorderedProgress};

use super::world::{BUCKET, Event, ROUTER, World};

/// The time without progress after which a scan is abandoned, in milliseconds.
const PATIENCE_MS: u64 = 6_000;
/// Maximum number of concurrent scans.
const SCANS_MAX: usize = 4;

/// A scan in progress.
pub struct Scan {
    index: Arc<IndexInfo>,
    epoch: Epoch,
    progress: UnorderedProgress,
    rows: Vec<(u16, u32)>,
    since_ms: u64,
}

/// A simulated router.
#[derive(Default)]
pub struct RouterModel {
    /// The catalog that the router has received.
    pub catalog: Arc<Catalog>,
    /// The epochs that the indexers have reported as applied.
    pub applied: AppliedEpochs,
    /// Scans in progress, by number.
    scans: BTreeMap<u64, Scan>,
    last_scan: u64,
    /// The number of judged scans.
    pub judged: u64,
    /// The number of scans that were abandoned or refused.
    pub refused: u64,
}

/// The result of a scan's step.
enum Step {
    GoOn,
    Wait,
    Finished,
    Refused,
}

impl RouterModel {
    /// Returns the epochs that scans read.
    pub fn leased(&self) -> impl Iterator<Item = Epoch> {
        self.scans.values().map(|scan| scan.epoch)
    }

    /// Returns the next heartbeat of the router.
    pub fn heartbeat(&self) -> Heartbeat {
        let mut leases: Vec<_> = self.leased().map(|epoch| (BUCKET, epoch)).collect();
        leases.sort_unstable();
        leases.dedup();
        Heartbeat::new(ROUTER, 0, RouterReport { leases, ..RouterReport::default() })
    }
}

impl World {
    /// Starts a scan if there is an epoch for it.
    pub fn begin_scan(&mut self) {
        let router = &self.router;
        let ready = |index: &&Arc<IndexInfo>| index.state == IndexState::Maintenance;
        let indexes: Vec<_> = router.catalog.indexes.values().filter(ready).cloned().collect();
        if indexes.is_empty() || router.scans.len() >= SCANS_MAX {
            return;
        }
        let index = Arc::clone(&indexes[self.random.usize(..indexes.len())]);
        let from = oldest_for_scans(&router.catalog, BUCKET);
        let chosen = router.applied.newest_readable(&index);
        let Some(epoch) = chosen.filter(|e| from.is_some_and(|from| *e >= from)) else { return };
        self.judge_choice(epoch);
        let progress = UnorderedProgress::new(&index.topology);
        let since_ms = self.now_ms;
        self.router.last_scan += 1;
        let number = self.router.last_scan;
        let scan = Scan { index, epoch, progress, rows: Vec::new(), since_ms };
        self.router.scans.insert(number, scan);
        self.after(1, Event::ScanStep(number));
    }

    /// Records a violation if a new scan reads a dead epoch, or an epoch that may lack surviving
    /// mutations, according to the router's catalog.
    fn judge_choice(&mut self, epoch: Epoch) {
        let Some(bucket) = self.router.catalog.buckets.get(&BUCKET) else { return };
        let known = bucket.dead.iter().map(|dead| dead.to).max();
        let mut wrong = known.is_some_and(|to| epoch <= to);
        // Before its last stage a rollback has no epoch that a scan may read.
        wrong |= bucket.rollback.as_ref().is_some_and(|rollback| rollback.resumes.is_none());
        if wrong {
            self.judge.wrong(format!("a new scan reads epoch {epoch}, which hides what survived"));
        }
    }

    /// Reads the next batch of a scan.
    pub fn scan_step(&mut self, number: u64) {
        let Some(mut scan) = self.router.scans.remove(&number) else { return };
        let step = self.batch(&mut scan);
        match step {
            Step::Finished => {
                self.router.judged += 1;
                self.trace =
                    self.trace.rotate_left(9) ^ (scan.epoch.0 << 8 | scan.rows.len() as u64);
                self.judge.scanned(&self.source.history, scan.epoch, &scan.rows);
            }
            Step::Refused => self.router.refused += 1,
            Step::Wait if self.now_ms > scan.since_ms + PATIENCE_MS => self.router.refused += 1,
            Step::Wait | Step::GoOn => {
                if matches!(step, Step::GoOn) {
                    scan.since_ms = self.now_ms;
                }
                // Some tokens are kept for a while.
                let ms = match self.random.u32(..12) {
                    0 => self.random.u64(1_000..5_000),
                    _ => self.random.u64(1..120),
                };
                self.router.scans.insert(number, scan);
                self.after(ms, Event::ScanStep(number));
            }
        }
    }

    fn batch(&mut self, scan: &mut Scan) -> Step {
        let catalog = &self.router.catalog;
        if catalog.buckets.get(&BUCKET).is_none_or(|bucket| bucket.is_dead(scan.epoch))
            || !catalog.indexes.contains_key(&scan.index.id)
        {
            return Step::Refused;
        }
        let Some(part) = scan.progress.part(0) else { return Step::Finished };
        if part.slices.is_empty() {
            scan.progress.finish(&part);
            return Step::GoOn;
        }
        let home = scan.index.topology.replicas(part.slices[0]).first().copied();
        let Some(node) = part.hint.or(home) else { return Step::Wait };
        if self.is_refused(node, scan.epoch) {
            return Step::Refused;
        }
        let moved: Vec<SliceNo> =
            part.slices.iter().copied().filter(|s| !self.reads(node, scan, *s)).collect();
        if !moved.is_empty() {
            let found: Vec<(SliceNo, NodeId)> =
                moved.iter().filter_map(|s| Some((*s, self.found(scan, *s)?))).collect();
            scan.progress.note_moved(&found);
            return if found.len() < moved.len() { Step::Wait } else { Step::GoOn };
        }
        self.read_batch(scan, &part, node);
        Step::GoOn
    }

    /// True if a node knows that the epoch is dead.
    fn is_refused(&self, node: NodeId, epoch: Epoch) -> bool {
        let indexer = self.indexers.iter().find(|indexer| indexer.id == node && indexer.up);
        indexer.is_some_and(|indexer| indexer.is_dead(epoch))
    }

    /// True if a node can read a slice at the scan's epoch.
    fn reads(&self, node: NodeId, scan: &Scan, slice: SliceNo) -> bool {
        let id = SliceId { index: scan.index.id, generation: scan.index.generation, slice };
        self.indexers.iter().any(|indexer| {
            let copy = indexer.copies.get(&id).filter(|_| indexer.id == node && indexer.up);
            let floor = copy.and_then(|copy| copy.floor);
            floor.is_some_and(|floor| floor <= scan.epoch)
                && indexer.applied_epoch() >= scan.epoch
                && !self.is_refused(node, scan.epoch)
        })
    }

    /// Returns a node that can read a slice at the scan's epoch; `None` if there is none.
    fn found(&self, scan: &Scan, slice: SliceNo) -> Option<NodeId> {
        let nodes = self.router.applied.candidates(&scan.index, slice, scan.epoch);
        nodes.into_iter().find(|node| self.reads(*node, scan, slice))
    }

    fn read_batch(&mut self, scan: &mut Scan, part: &ScanPart, node: NodeId) {
        let Some(indexer) = self.indexers.iter().find(|indexer| indexer.id == node) else { return };
        let after =
            part.resume_after.as_ref().map(|entry| u16::from_be_bytes([entry[0], entry[1]]));
        let mut rows = Vec::new();
        for slice in &part.slices {
            let (index, generation) = (scan.index.id, scan.index.generation);
            let copy = indexer.copies.get(&SliceId { index, generation, slice: *slice });
            rows.extend(copy.into_iter().flat_map(|copy| copy.read(scan.epoch, after)));
        }
        rows.sort_unstable();
        let most = self.random.usize(4..40);
        let ends = rows.len() <= most;
        rows.truncate(most);
        if let Some((doc, _)) = rows.last() {
            scan.progress.advance(part, &Bytes::copy_from_slice(&doc.to_be_bytes()));
        }
        scan.rows.extend(rows);
        if ends {
            scan.progress.finish(part);
        }
    }
}
