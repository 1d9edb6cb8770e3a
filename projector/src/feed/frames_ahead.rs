//! The frames that a stream has sent beyond the newest stability timestamp that its node has
//! received. Their bytes are bounded, because the node keeps them until a timestamp covers them.
//!
//! Timestamps advance differently in each vbucket: an incomplete commit of a producer stops them in
//! some vbuckets. The frames of the other vbuckets are still covered.
//!
//! A stream that catches up sends all timestamps before the frames that they cover. Such frames are
//! not counted, because the stream would otherwise wait for a timestamp that an idle bucket never
//! gets.

use std::sync::Arc;

use proto::model::cut::{Cut, Position};
use proto::model::ids::VbucketId;

pub(super) struct FramesAhead {
    /// The cut of the newest timestamp that was sent to the node; `None` before the first.
    announced: Option<Arc<Cut>>,
    /// The vbucket, the end and the size in bytes of each frame beyond `announced`.
    frames: Vec<(VbucketId, Position, usize)>,
    bytes: usize,
}

impl FramesAhead {
    pub fn new(announced: Option<Arc<Cut>>) -> Self {
        Self { announced, frames: Vec::new(), bytes: 0 }
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Counts a frame by its end and its size in bytes, unless a sent timestamp covers it.
    pub fn add(&mut self, vbucket: VbucketId, end: Position, bytes: usize) {
        let announced = self.announced.as_ref();
        if announced.is_none_or(|cut| cut.get(vbucket).seqno < end.seqno) {
            self.frames.push((vbucket, end, bytes));
            self.bytes += bytes;
        }
    }

    /// Records a timestamp that was sent, and removes the frames that it covers.
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
    fn frames_of_a_held_vbucket_do_not_keep_those_of_others_counted() {
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
