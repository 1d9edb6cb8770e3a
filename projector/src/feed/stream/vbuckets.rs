//! The vbuckets that a stream carries, and the history that the stream announces.
//!
//! A stream belongs to one history of the bucket. It sends no stability timestamp from outside of
//! that history, and none that covers mutations which this projector lacks. The stream ends when
//! a part of the history is lost.

use std::sync::Arc;

use proto::Error;
use proto::model::ids::VbucketId;
use proto::rpc::mutation::StreamMessage;

use super::{MaintenanceStream, SendResult};

impl MaintenanceStream {
    /// Announces the branches of the history to the reader. Ends the stream if a part of the
    /// history was lost.
    pub(super) async fn send_history(&mut self) -> SendResult<()> {
        let (logs, losses) = self.bucket.logs();
        if losses != self.losses {
            let name = &self.bucket.info.name;
            let what = format!("part of the history of bucket {name} was lost");
            return Err(Error::unavailable(what).into());
        }
        if self.logs.as_ref() != Some(&logs) {
            self.logs = Some(Arc::clone(&logs));
            self.send(StreamMessage::History(logs)).await?;
        }
        Ok(())
    }

    /// Follows the hand-overs of vbuckets between projectors. A vbucket that this projector takes
    /// over joins the stream at the position at which the projector became its owner; the head
    /// has all later mutations. `frames` checks that no mutation is skipped.
    pub(super) async fn send_vbucket_changes(&mut self) -> SendResult<()> {
        let (ownership, joined_at) = self.bucket.joined_at();
        if Arc::ptr_eq(&ownership, &self.ownership) {
            return Ok(());
        }
        self.ownership = Arc::clone(&ownership);
        // A vbucket that left and returned has mutations that this stream has not read.
        let before = std::mem::replace(&mut self.joined_at, joined_at.clone());
        if let Some(vbucket) = self.vbuckets.iter().find(|v| before.get(v) != joined_at.get(v)) {
            let what = format!("another projector owned vbucket {vbucket} meanwhile");
            return Err(Error::unavailable(what).into());
        }
        self.send_ends().await?;
        if let Some(vbucket) = self.vbuckets.iter().find(|v| !ownership.owned.contains(*v)) {
            let what = format!(
                "another projector owns vbucket {vbucket}; it has the rest of the mutations"
            );
            return Err(Error::unavailable(what).into());
        }
        for vbucket in ownership.owned.iter().filter(|vbucket| ownership.is_writable(*vbucket)) {
            if !self.vbuckets.contains(vbucket) {
                let at = joined_at.get(&vbucket).copied().unwrap_or_default();
                self.vbuckets.insert(vbucket);
                self.at.set(vbucket, at);
                self.send(StreamMessage::StreamBegin { vbucket, at }).await?;
            }
        }
        Ok(())
    }

    /// Ends the vbuckets that this projector has released to another owner, once all their
    /// mutations were sent.
    pub(super) async fn send_ends(&mut self) -> SendResult<()> {
        if self.ownership.released.is_empty() {
            return Ok(());
        }
        let durable = self.bucket.durable();
        let here = |vbucket: &VbucketId| self.vbuckets.contains(*vbucket);
        let released: Vec<_> = self.ownership.released.iter().filter(here).collect();
        for vbucket in released {
            let at = self.at.get(vbucket);
            if at.seqno == durable.get(vbucket).seqno {
                self.vbuckets.remove(vbucket);
                self.send(StreamMessage::StreamEnd { vbucket, at }).await?;
            }
        }
        Ok(())
    }
}
