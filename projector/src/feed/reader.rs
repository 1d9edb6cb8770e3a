//! The reader of a maintenance stream. The reader gets mutations from one of two places:
//!
//! - **the head**: the newest mutations, which are kept in memory for all up-to-date streams;
//! - **the store's log**, if the stream begins in the past or lags behind the head. The reader
//!   then reads the log up to the end that the log had when the stream began, and continues from
//!   the head.

use std::sync::Arc;

use proto::Result;
use proto::model::assignment::VbucketSet;
use proto::model::cut::Cut;
use proto::model::ids::{NodeId, Seqno, VbucketId};

use super::context::StreamContext;
use super::log_reader;
use crate::source::view::bucket::Bucket;
use crate::source::view::head::HeadPosition;
use crate::source::{LogRange, Mutation};

/// The size in memory, in bytes, of the mutations that are packed into frames at once: about a
/// thousand small documents, which take a few milliseconds between two awaits.
const HEAD_READ_BYTES: usize = 1 << 20;

/// The place from which the next mutations are read.
#[derive(Clone)]
pub(super) enum ReadFrom {
    Head(HeadPosition),
    /// The log up to the cut `to`. Afterwards the head, from its position `then` on.
    Log {
        to: Arc<Cut>,
        then: HeadPosition,
    },
}

/// The reader of one stream.
pub(super) struct Reader {
    context: Arc<StreamContext>,
    bucket: Arc<Bucket>,
    node: NodeId,
    from: ReadFrom,
    /// The cut of the next timestamp, up to which the log is read now.
    goal: Option<Arc<Cut>>,
}

impl Reader {
    pub fn new(
        context: Arc<StreamContext>,
        bucket: Arc<Bucket>,
        node: NodeId,
        from: ReadFrom,
    ) -> Self {
        Self { context, bucket, node, from, goal: None }
    }

    /// Returns true if the reader reads from the head and not from the log.
    pub fn is_at_head(&self) -> bool {
        matches!(self.from, ReadFrom::Head(_))
    }

    /// Returns the next mutations after a cut, in some vbuckets. The list is empty if there are
    /// none yet.
    pub async fn next(&mut self, at: &Cut, vbuckets: &VbucketSet) -> Result<Vec<Arc<Mutation>>> {
        loop {
            match self.from.clone() {
                ReadFrom::Head(from) => match self.bucket.read_head(from, HEAD_READ_BYTES) {
                    Some((batch, next)) => {
                        self.from = ReadFrom::Head(next);
                        return Ok(batch);
                    }
                    None => {
                        let (to, then, _) = self.bucket.end();
                        tracing::debug!(node = %self.node, bucket = %self.bucket.info.name, "fell behind the head");
                        self.from = ReadFrom::Log { to: Arc::new(to), then };
                    }
                },
                ReadFrom::Log { to, then } => {
                    let Some((vbucket, end)) = self.next_log_range(&to, at, vbuckets) else {
                        self.from = ReadFrom::Head(then);
                        continue;
                    };
                    let after = at.get(vbucket).seqno;
                    let bucket = self.bucket.info.id;
                    let range = LogRange { bucket, vbucket, after, to: end };
                    return log_reader::read(&self.context, &self.bucket, range).await;
                }
            }
        }
    }

    /// Returns the vbucket to read next from the log, and the seqno up to which it is read. All
    /// vbuckets are read up to a timestamp before any of them is read further. So the receiver
    /// can apply the mutations at each timestamp, and need not collect all missing ones.
    fn next_log_range(
        &mut self,
        to: &Cut,
        at: &Cut,
        vbuckets: &VbucketSet,
    ) -> Option<(VbucketId, Seqno)> {
        let behind = |goal: &Cut| {
            let ends = to.iter().map(|(v, end)| (v, end.seqno.min(goal.get(v).seqno)));
            let here = |v: &VbucketId| vbuckets.contains(*v);
            ends.into_iter().find(|(v, end)| here(v) && at.get(*v).seqno < *end)
        };
        self.goal.as_deref().and_then(&behind).or_else(|| {
            self.goal = self.bucket.next_goal(vbuckets, at);
            self.goal.as_deref().and_then(&behind).or_else(|| behind(to))
        })
    }
}
