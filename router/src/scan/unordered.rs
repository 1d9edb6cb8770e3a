//! Runs the parts of an unordered scan one after another, the next one begun ahead.

use std::collections::VecDeque;

use bytes::Bytes;
use proto::rpc::rows::RowBlock;
use proto::rpc::scan::ShardBatch;
use proto::token::VirtualScan;
use proto::{Error, Result};

use super::plan::ScanPlan;
use super::shard_stream::ShardStream;
use super::virtual_scan::{Part, PartKind, Progress};

/// Shard scans that run side by side; only the first is read.
pub(crate) const SIDE_BY_SIDE: usize = 2;

/// An unordered scan in progress.
pub(crate) struct Unordered {
    plan: ScanPlan,
    progress: Progress,
    /// Parts that run, in the order in which they are read.
    running: VecDeque<(Part, ShardStream)>,
}

impl Unordered {
    /// A scan that goes on where it is.
    pub fn new(plan: ScanPlan, progress: Progress) -> Self {
        Self { plan, progress, running: VecDeque::new() }
    }

    /// The next rows, `None` at the end. Until they are [`Self::delivered`] the scan stands before them.
    pub async fn next(&mut self) -> Result<Option<RowBlock>> {
        loop {
            self.begin_parts();
            let Some((part, stream)) = self.running.front_mut() else { return Ok(None) };
            match stream.next().await? {
                ShardBatch::Rows(block) => return Ok(Some(block)),
                ShardBatch::Moved(places) => {
                    part.slices.retain(|slice| places.iter().all(|(moved, _)| moved != slice));
                    self.progress.found_moved(&places);
                }
                ShardBatch::Done => {
                    if let Some((part, _)) = self.running.pop_front() {
                        self.progress.finish(&part);
                    }
                }
                ShardBatch::Partials(_) => {
                    return Err(Error::internal("aggregates in a scan of rows"));
                }
            }
        }
    }

    /// Ends the parts that run; they are begun again where the scan stands.
    pub fn park(&mut self) {
        self.running.clear();
    }

    /// Begins the first parts that do not run. A virtual scan is begun only when it is the next: the map may
    /// still change before that.
    fn begin_parts(&mut self) {
        while self.running.len() < SIDE_BY_SIDE
            && let Some(part) = self.progress.part(self.running.len())
        {
            let is_base = matches!(part.kind, PartKind::Base(_));
            if !is_base && !self.running.is_empty() {
                return;
            }
            let resume_after = part.resume_after.clone();
            let plan = ScanPlan { resume_after, ..self.plan.clone() };
            let slices = part.slices.clone();
            let stream = if is_base { plan.start_base(slices) } else { plan.start(slices) };
            self.running.push_back((part, stream));
        }
    }

    /// Rows of the last block up to this entry have been delivered or left out.
    pub fn delivered(&mut self, entry: &[u8]) {
        if let Some((part, _)) = self.running.front() {
            self.progress.advance(part, entry);
        }
    }

    /// What a token says of the place.
    pub fn for_token(&self) -> (u16, Option<Bytes>, Vec<VirtualScan>) {
        self.progress.for_token()
    }
}
