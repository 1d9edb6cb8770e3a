//! Compares a restored slice with its source copy, by checksum.

use proto::lock::lock;
use proto::model::node::NodeInfo;
use proto::rpc::export::checksum_time_limit;
use proto::{Error, ErrorCode, Result};
use tokio::time::{Instant, timeout};

use super::incoming_move::IncomingMove;
use crate::context::NodeContext;

impl IncomingMove {
    /// Compares a restored slice with the copy on its source by checksum, at the newest epoch of
    /// the received files. A difference is an error, so that damage in transit never becomes
    /// visible. Does nothing for a move, whose copies the coordinator compares.
    pub(super) async fn compare(&self, context: &NodeContext, source: &NodeInfo) -> Result<()> {
        if self.id.is_some() {
            return Ok(());
        }
        let mut received = self.received.lock().await;
        let Some((mine, head)) = received.as_ref().and_then(|mine| Some((mine, mine.head()?)))
        else {
            return Ok(());
        };
        let bytes: u64 = head.files.iter().map(|(_, len)| len).sum();
        let patience = checksum_time_limit(bytes);
        // No bytes arrive during the comparison; this must not count as silence.
        let until = Instant::now() + patience;
        let before = std::mem::replace(&mut lock(&self.state).progressed, until);
        let indexer = context.directory.indexer(source);
        let theirs = timeout(patience, indexer.checksum(self.slice, head.epoch));
        let (theirs, ours) = tokio::join!(theirs, mine.checksum(self.slice.slice));
        let answered = matches!(theirs, Ok(Ok(_)));
        lock(&self.state).progressed = if answered { Instant::now() } else { before };
        let late = |_| Error::unavailable(format!("node {} did not answer in time", source.id));
        let (theirs, ours) = (theirs.map_err(late)??, ours?);
        if ours == theirs {
            return Ok(());
        }
        let (slice, node, epoch) = (self.slice, source.id, head.epoch);
        tracing::warn!(%slice, %node, %epoch, ?ours, ?theirs, "the copied files differ from the source's copy");
        *received = None;
        lock(&self.state).absent.insert(node);
        let what = format!("the files of node {node} differ from its copy at epoch {epoch}");
        Err(Error::new(ErrorCode::Corrupt, what))
    }
}
