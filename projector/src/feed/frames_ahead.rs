//! The frames that a stream has sent beyond the newest timestamp that its node knows. Their bytes are bounded, because
//! the node keeps them until a timestamp covers them.
//!
//! A stream that catches up sends all timestamps before the frames that they cover. Such frames do not count, or the
//! stream would wait for a timestamp that an idle bucket never gets.

use std::collections::VecDeque;
use std::sync::Arc;

use proto::model::cut::{Cut, Position};
use proto::model::ids::VbucketId;

pub(super) struct FramesAhead {
    /// The cut of the newest timestamp that the node knows; `None` if unknown.
    announced: Option<Arc<Cut>>,
    /// Ends and sizes of the frames beyond `announced`.
    frames: VecDeque<(VbucketId, Position, usize)>,
    bytes: usize,
}

impl FramesAhead {
    pub fn new(announced: Option<Arc<Cut>>) -> Self {
        Self { announced, frames: VecDeque::new(), bytes: 0 }
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Counts a frame by its end and its size, unless a known timestamp covers it.
    pub fn add(&mut self, vbucket: VbucketId, end: Position, bytes: usize) {
        let announced = self.announced.as_ref();
        if announced.is_none_or(|cut| cut.get(vbucket).seqno < end.seqno) {
            self.frames.push_back((vbucket, end, bytes));
            self.bytes += bytes;
        }
    }

    /// Notes a timestamp that was sent, and forgets the frames that it covers.
    pub fn announce(&mut self, cut: Arc<Cut>) {
        while let Some((vbucket, end, bytes)) = self.frames.front()
            && cut.get(*vbucket).seqno >= end.seqno
        {
            self.bytes -= bytes;
            self.frames.pop_front();
        }
        self.announced = Some(cut);
    }
}
