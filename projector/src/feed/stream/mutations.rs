//! Sends the mutations of a stream: as frames, or as a marker for a large commit whose changes
//! the node has received already.

use std::sync::Arc;
use std::time::Duration;

use proto::Result;
use proto::model::cut::Position;
use proto::rpc::mutation::{Frame, StreamMessage};
use tokio::time::Instant;

use super::{FEW_BYTES, GATHER, INLINE_COST, MaintenanceStream, SendResult};
use crate::feed::context::{INLINE_BYTES, MESSAGE_COST};
use crate::feed::frames::Packing;
use crate::feed::markers;

impl MaintenanceStream {
    /// Sends the next frames of mutations; returns false if there are none.
    pub(super) async fn send_frames(&mut self) -> SendResult<bool> {
        let has_passed = self.pass_commits().await?;
        if self.batch.as_slice().is_empty() {
            self.batch = self.reader.next(&self.at, &self.vbuckets).await?.into_iter();
            // A commit whose mutations were read is published.
            self.markers.follow(&self.bucket, (&self.at, &self.vbuckets));
            let bytes: usize = self.batch.as_slice().iter().map(|m| m.bytes()).sum();
            if bytes > 0 {
                // Only after few mutations is there nothing left to read. Otherwise a stream that waits would miss the rest.
                let is_few = bytes < FEW_BYTES && self.reader.is_at_head();
                let gathers = if is_few { GATHER } else { Duration::ZERO };
                self.gathers_until = Instant::now() + gathers;
            }
        }
        if self.batch.as_slice().is_empty() {
            return Ok(has_passed);
        }
        // These checks come after the read. So no mutation or label belongs to a lost history, and a vbucket that was
        // taken over meanwhile is complete.
        self.send_vbucket_changes().await?;
        self.send_history().await?;
        let before = self.batch.len();
        let frames = self.next_frames().await?;
        // The stream may have stopped before a commit.
        let goes_on = self.batch.len() < before;
        self.send_all_of(frames).await?;
        self.send_ends().await?;
        Ok(goes_on || has_passed)
    }

    /// Decides for each large commit that the stream has reached whether its marker or its
    /// mutations are sent. Covers the mutations that a marker replaces with empty frames; returns
    /// false if there are none.
    pub(super) async fn pass_commits(&mut self) -> SendResult<bool> {
        if self.markers.is_empty() {
            return Ok(false);
        }
        self.send_vbucket_changes().await?;
        self.send_history().await?;
        while let Some(commit) = self.markers.undecided(&self.at) {
            match self.bodies.sent_part(&commit) {
                markers::SentPart::Whole(digest) => {
                    let marker = self.markers.decide_marker(&commit, digest);
                    self.bodies.count_left_out(commit.transaction, &self.context.left_out);
                    self.send(StreamMessage::Committed(marker)).await?;
                }
                markers::SentPart::Partly => break,
                markers::SentPart::Lost => self.markers.send_mutations(&commit),
            }
        }
        let mut has_passed = false;
        loop {
            let logs = self.logs.clone().unwrap_or_default();
            let empty = |(vbucket, from, to)| {
                let vbuuid = logs.branch_of(vbucket, to);
                Frame { vbucket, vbuuid, from, to, body: Default::default() }
            };
            let frames: Vec<_> =
                self.markers.ranges_to_cover(&self.at).into_iter().map(empty).collect();
            if frames.is_empty() {
                break;
            }
            self.send_all_of(frames).await?;
            has_passed = true;
        }
        self.markers.forget_passed(&self.at);
        Ok(has_passed)
    }

    pub(super) async fn send_all_of(&mut self, frames: Vec<Frame>) -> SendResult<()> {
        for frame in &frames {
            let position = Position { vbuuid: frame.vbuuid, seqno: frame.to };
            self.at.set(frame.vbucket, position);
            self.ahead.add(frame.vbucket, position, frame.bytes());
        }
        if !frames.is_empty() {
            self.send(StreamMessage::Frames(frames)).await?;
        }
        Ok(())
    }

    /// Packs the next frames of the batch. Cheap frames, with few mutations and cheap index
    /// expressions, are packed on this thread, others on a thread that may block.
    pub(super) async fn next_frames(&mut self) -> Result<Vec<Frame>> {
        let packing = Packing {
            context: Arc::clone(&self.context),
            node: self.node,
            indexes: self.indexes.all(),
            fields: self.indexes.fields(),
            logs: self.logs.clone().unwrap_or_default(),
            stops: self.markers.first_mutations(),
        };
        let mut batch = std::mem::take(&mut self.batch);
        let (frames, spent);
        let bytes: usize = batch.as_slice().iter().map(|mutation| mutation.bytes()).sum();
        if self.is_costly || bytes > INLINE_BYTES {
            let (at, vbuckets) = (self.at.clone(), self.vbuckets.clone());
            let work = move || {
                let packed = packing.pack(&mut batch, (&at, &vbuckets), MESSAGE_COST);
                (batch, packed)
            };
            (batch, (frames, spent)) = self.context.env.blocking(work).await;
        } else {
            let place = (&self.at, &self.vbuckets);
            (frames, spent) = packing.pack(&mut batch, place, INLINE_COST);
        }
        self.batch = batch;
        self.is_costly = spent >= INLINE_COST;
        frames
    }
}
