//! An unordered scan: reads its *parts* one after another. A part is a group of slices that are
//! read from one node. The next part begins while the present one is read.

use std::collections::VecDeque;
use std::pin::pin;

use bytes::Bytes;
use futures::future::{Either, join_all, select};
use proto::rpc::rows::RowBlock;
use proto::rpc::scan::ShardBatch;
use proto::{Error, Result};

use super::plan::ScanPlan;
use super::shard_stream::ShardStream;
use super::token::VirtualScan;
use super::virtual_scan::{ScanPart, ScanPartKind, UnorderedProgress};

/// Number of parts that run in parallel; rows are taken only from the first.
pub(crate) const PARALLEL_SHARDS: usize = 2;

/// An unordered scan in progress.
pub(crate) struct Unordered {
    plan: ScanPlan,
    progress: UnorderedProgress,
    /// The running parts with their streams, in the order in which they are read.
    running: VecDeque<(ScanPart, ShardStream)>,
}

impl Unordered {
    /// Creates a scan that begins at the position `progress`.
    pub fn new(plan: ScanPlan, progress: UnorderedProgress) -> Self {
        Self { plan, progress, running: VecDeque::new() }
    }

    /// Returns the next rows; `None` at the end. The scan's position moves only when
    /// [`Self::delivered`] is called.
    pub async fn next(&mut self) -> Result<Option<RowBlock>> {
        loop {
            self.begin_parts();
            let mut running = self.running.iter_mut();
            let Some((part, stream)) = running.next() else { return Ok(None) };
            // The others ask for their first batches while this one is waited for, and hold it up no longer.
            let others = join_all(running.map(|(_, stream)| stream.begin()));
            let batch = match select(pin!(stream.next()), pin!(others)).await {
                Either::Left((batch, _)) => batch?,
                Either::Right((_, batch)) => batch.await?,
            };
            match batch {
                ShardBatch::Rows(block) => return Ok(Some(block)),
                ShardBatch::Moved(places) => {
                    part.slices.retain(|slice| places.iter().all(|(moved, _)| moved != slice));
                    self.progress.note_moved(&places);
                }
                ShardBatch::Done => {
                    if let Some((part, _)) = self.running.pop_front() {
                        self.progress.finish(&part);
                    }
                }
                ShardBatch::Failed(_, error) => return Err(error),
                ShardBatch::Partials(_) => {
                    return Err(Error::internal("a scan of rows received aggregates"));
                }
            }
        }
    }

    /// Ends the running parts. The next read begins them again at the scan's position.
    pub fn park(&mut self) {
        self.running.clear();
    }

    /// Begins parts until [`PARALLEL_SHARDS`] run. A part of slices that have moved (a virtual
    /// scan) begins only when it is the next one to read, because more slices may be found to have
    /// moved before.
    fn begin_parts(&mut self) {
        while self.running.len() < PARALLEL_SHARDS
            && let Some(part) = self.progress.part(self.running.len())
        {
            let is_base = matches!(part.kind, ScanPartKind::Base(_));
            if !is_base && !self.running.is_empty() {
                return;
            }
            let resume_after = part.resume_after.clone();
            let plan = ScanPlan { resume_after, ..self.plan.clone() };
            let stream = plan.start(plan.place_slices(&part.slices), is_base);
            self.running.push_back((part, stream));
        }
    }

    /// Records that the rows up to this entry were delivered, or skipped by OFFSET.
    pub fn note_delivered(&mut self, entry: &[u8]) {
        if let Some((part, _)) = self.running.front() {
            self.progress.advance(part, entry);
        }
    }

    /// Returns the position for a token, see [`UnorderedProgress::for_token`].
    pub fn for_token(&self) -> (u16, Option<Bytes>, Vec<VirtualScan>) {
        self.progress.for_token()
    }
}
