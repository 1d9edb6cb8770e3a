//! The frames that a stream has sent beyond the newest stability timestamp that its node has
//! received. Their bytes are bounded, because the node keeps them until a timestamp covers them.
//!
//! An incomplete commit of a producer stops the timestamps in its vbuckets. The timestamps still
//! cover the frames of the other vbuckets, so each vbucket is compared separately.
//!
//! A stream that catches up with old mutations sends a timestamp before the frames that it
//! covers. Those frames are not counted: otherwise the stream of an idle bucket would wait for a
//! further timestamp that never comes.

use std::sync::Arc;

use proto::model::cut::{Cut, Position};
use proto::model::ids::VbucketId;

/// The frames that a stream has sent beyond its newest stability timestamp.
pub(super) struct FramesAhead {
    /// The cut of the newest timestamp that was sent to the node; `None` before the first.
    announced: Option<Arc<Cut>>,
    /// The vbucket, the end and the size in bytes of each frame beyond `announced`.
    frames: Vec<(VbucketId, Position, usize)>,
    bytes: usize,
}

impl FramesAhead {
    /// Creates the count of a stream whose node has received the timestamp of the cut
    /// `announced`.
    pub fn new(announced: Option<Arc<Cut>>) -> Self {
        Self { announced, frames: Vec::new(), bytes: 0 }
    }

    /// Returns the bytes of the frames that no sent timestamp covers.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Counts a frame that was sent, unless a sent timestamp covers it. `end` is the frame's last
    /// position and `bytes` its size.
    pub fn add(&mut self, vbucket: VbucketId, end: Position, bytes: usize) {
        let announced = self.announced.as_ref();
        if announced.is_none_or(|cut| cut.get(vbucket).seqno < end.seqno) {
            self.frames.push((vbucket, end, bytes));
            self.bytes += bytes;
        }
    }

    /// Records that a timestamp was sent, and stops counting the frames that it covers.
    pub fn announce(&mut self, cut: Arc<Cut>) {
        let Self { frames, bytes, .. } = self;
        frames.retain(|(vbucket, end, of_frame)| {
            let is_covered = cut.get(*vbucket).seqno >= end.seqno;
            *bytes -= if is_covered { *of_frame } else { 0 };
            !is_covered
        });
        self.announced = Some(cut);
    }
}

#[cfg(test)]
mod tests {
    use proto::model::ids::{Seqno, Vbuuid};

    use super::*;

    #[test]
    fn covered_frames_of_other_vbuckets_do_not_count() {
        let at = |seqno| Position { vbuuid: Vbuuid(1), seqno: Seqno(seqno) };
        let mut ahead = FramesAhead::new(None);
        ahead.add(VbucketId(0), at(1), 100);
        (1..=10).for_each(|seqno| ahead.add(VbucketId(1), at(seqno), 10));
        ahead.announce(Arc::new(Cut::from_positions(vec![at(0), at(9)])));
        assert_eq!(ahead.bytes(), 110, "the held frame, and the last one of the other vbucket");
        ahead.announce(Arc::new(Cut::from_positions(vec![at(1), at(10)])));
        assert_eq!(ahead.bytes(), 0);
    }
}
