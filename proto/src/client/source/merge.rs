//! Merges the streams of a bucket's projectors into one.
//!
//! Each projector of a bucket streams the vbuckets that it owns. The merged stream is the one
//! that a single projector with all vbuckets would send, so that an indexer does not depend on
//! the number of projectors:
//!
//! - `Begin`, once all streams have begun: each vbucket is on exactly one of them, and all carry
//!   equal indexes;
//! - `History`, once all streams with vbuckets have sent their history, and again when the
//!   history of a vbucket changes;
//! - frames as they arrive, and each stability timestamp when the first stream sends it;
//! - an index joins or leaves when *all* streams have announced it. A stream that has announced
//!   the change is not read further until the others have announced it, so that the index joins
//!   at one cut, as in a single stream.
//!
//! A vbucket that is handed over ends on one stream (STREAM_END) and begins on another
//! (STREAM_BEGIN), at the same position. If a stream begins a vbucket before the other stream has
//! ended it, the first is not read further until then. If the STREAM_END never comes, because a
//! projector died or a stream lags too far, the merged stream ends. Its reader then opens a new
//! one from its watermarks; the new owner also has the vbucket's earlier log.
//!
//! The merge does no I/O. Its caller ends the merged stream if [`Merge::waits`] stays true for
//! long.

use std::sync::Arc;

use crate::error::{Error, ErrorCode, Result};
use crate::model::assignment::VbucketSet;
use crate::model::cut::{Cut, Position};
use crate::model::history::{Branches, FailoverLogs};
use crate::model::ids::{Epoch, NodeId, VbucketId};
use crate::model::index::IndexInfo;
use crate::rpc::mutation::StreamMessage;

/// The merge of a bucket's streams: takes their messages, and returns those of the merged stream.
pub struct Merge {
    parts: Vec<ProjectorStream>,
    /// For each vbucket, the number of the stream that carries it.
    home: Vec<Option<usize>>,
    /// The position of each vbucket after the frames that were returned.
    at: Cut,
    logs: Vec<Branches>,
    told: Option<Arc<FailoverLogs>>,
    newest: Epoch,
    stage: Stage,
}

/// The progress of the merged stream: the message that it waits for, or `Flows` after the first
/// history.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// A stream has not sent its beginning yet.
    Begin,
    /// A stream has not sent its history yet.
    History,
    Flows,
}

/// The stream of one projector, as far as it was read.
struct ProjectorStream {
    projector: NodeId,
    vbuckets: VbucketSet,
    begin: Option<(Cut, Vec<Arc<IndexInfo>>)>,
    has_told: bool,
    held: Option<StreamWait>,
    /// True if the messages of the stream are ignored: it has no vbuckets, and its indexes differ
    /// from those of the other streams.
    is_left_out: bool,
}

/// The reason why a stream is not read further for now.
enum StreamWait {
    /// The other streams must announce the same change of an index first.
    Index(StreamMessage),
    /// Another stream must end this vbucket first. The position is where this stream begins it.
    Vbucket(VbucketId, Position),
}

/// Compares two streams' records of one index. Returns the newer record if both lead to the same
/// frames, otherwise `None`.
fn common_index_record(one: Arc<IndexInfo>, other: &Arc<IndexInfo>) -> Option<Arc<IndexInfo>> {
    let frames_of = |index: &IndexInfo| {
        (index.id, index.generation, Arc::clone(&index.topology), index.moves.clone())
    };
    if frames_of(&one) != frames_of(other) {
        return None;
    }
    Some(if one.revision < other.revision { Arc::clone(other) } else { one })
}

/// Returns true if two messages announce the same change of an index.
fn is_same_index_change(one: &StreamMessage, other: &StreamMessage) -> bool {
    match (one, other) {
        (
            StreamMessage::IndexJoin { index: one, .. },
            StreamMessage::IndexJoin { index: other, .. },
        ) => common_index_record(Arc::clone(one), other).is_some(),
        (one, other) => one == other,
    }
}

/// Returns the error for streams that disagree about the indexes.
fn indexes_differ_error() -> Error {
    Error::unavailable("the projectors of a bucket know different indexes")
}

impl Merge {
    /// Creates the merge of the streams of these projectors, for a bucket with this number of vbuckets.
    pub fn new(vbuckets: u16, projectors: impl IntoIterator<Item = NodeId>) -> Self {
        let part = |projector| ProjectorStream {
            projector,
            vbuckets: VbucketSet::default(),
            begin: None,
            has_told: false,
            held: None,
            is_left_out: false,
        };
        Self {
            parts: projectors.into_iter().map(part).collect(),
            home: vec![None; usize::from(vbuckets)],
            at: Cut::zero(vbuckets),
            logs: vec![Branches::new(); usize::from(vbuckets)],
            told: None,
            newest: Epoch(0),
            stage: Stage::Begin,
        }
    }

    /// Returns true if the next message of a stream may be read now.
    pub fn may_read(&self, part: usize) -> bool {
        let part = &self.parts[part];
        !part.is_left_out
            && part.held.is_none()
            && match self.stage {
                Stage::Begin => part.begin.is_none(),
                Stage::History => !part.has_told,
                Stage::Flows => true,
            }
    }

    /// Returns true if a stream waits for another one, or if no stream carries some vbucket.
    pub fn is_waiting(&self) -> bool {
        let is_held = |part: &ProjectorStream| part.held.is_some() && !part.is_left_out;
        self.parts.iter().any(is_held) || self.home.contains(&None)
    }

    /// Processes the next message of stream number `part`. Returns the resulting messages of the
    /// merged stream.
    pub fn process_message(
        &mut self,
        part: usize,
        message: StreamMessage,
    ) -> Result<Vec<StreamMessage>> {
        match message {
            StreamMessage::Begin { at, indexes, vbuckets } => {
                if self.stage != Stage::Begin || self.parts[part].begin.is_some() {
                    return Err(self.protocol_error(part, "it begins twice"));
                }
                self.parts[part].vbuckets = vbuckets;
                self.parts[part].begin = Some((at, indexes));
                self.merge_begins()
            }
            _ if self.parts[part].begin.is_none() => {
                Err(self.protocol_error(part, "it does not begin with Begin"))
            }
            StreamMessage::History(logs) => Ok(self.merge_histories(part, &logs)),
            StreamMessage::Frames(frames) => {
                for frame in &frames {
                    if self.home.get(usize::from(frame.vbucket.0)) != Some(&Some(part)) {
                        return Err(
                            self.protocol_error(part, "a frame of a vbucket that it has not begun")
                        );
                    }
                    let position = Position { vbuuid: frame.vbuuid, seqno: frame.to };
                    self.at.set(frame.vbucket, position);
                }
                Ok(vec![StreamMessage::Frames(frames)])
            }
            StreamMessage::Epoch(mark) => {
                let is_new = mark.epoch > self.newest;
                self.newest = self.newest.max(mark.epoch);
                Ok(if is_new { vec![StreamMessage::Epoch(mark)] } else { Vec::new() })
            }
            message @ (StreamMessage::IndexJoin { .. } | StreamMessage::IndexLeave { .. }) => {
                self.parts[part].held = Some(StreamWait::Index(message));
                self.merge_index_change()
            }
            message @ (StreamMessage::Bodies(_)
            | StreamMessage::TransactionBack { .. }
            | StreamMessage::Committing { .. }
            | StreamMessage::Committed(_)
            | StreamMessage::TransactionsEnded(_)) => Ok(vec![message]),
            StreamMessage::StreamBegin { vbucket, at } => {
                self.stream_begin(part, vbucket, at)?;
                Ok(Vec::new())
            }
            StreamMessage::StreamEnd { vbucket, at } => {
                self.stream_end(part, vbucket, at)?;
                Ok(Vec::new())
            }
        }
    }

    /// Returns the error for a stream that violates the protocol.
    fn protocol_error(&self, part: usize, what: &str) -> Error {
        Error::internal(format!("the stream of projector {}: {what}", self.parts[part].projector))
    }

    /// Returns the first message of the merged stream once all streams have begun. Returns an
    /// error if a vbucket is on none or on two of them, or if their indexes differ.
    fn merge_begins(&mut self) -> Result<Vec<StreamMessage>> {
        let Some(begins) =
            self.parts.iter_mut().map(|part| part.begin.clone()).collect::<Option<Vec<_>>>()
        else {
            return Ok(Vec::new());
        };
        for (n, (at, _)) in begins.iter().enumerate() {
            for vbucket in self.parts[n].vbuckets.iter() {
                let Some(home) = self.home.get_mut(usize::from(vbucket.0)) else { continue };
                if home.replace(n).is_some() {
                    let what = format!("vbucket {vbucket} is being handed over");
                    return Err(Error::unavailable(what));
                }
                self.at.set(vbucket, at.get(vbucket));
            }
        }
        if let Some(vbucket) = self.home.iter().position(Option::is_none) {
            return Err(Error::unavailable(format!("vbucket {vbucket} is being handed over")));
        }
        let mut agreed_on: Option<Vec<Arc<IndexInfo>>> = None;
        // Parts with vbuckets come first: their records of the indexes count.
        let mut order: Vec<_> =
            begins.into_iter().map(|(_, indexes)| indexes).enumerate().collect();
        order.sort_by_key(|(n, _)| self.parts[*n].vbuckets.is_empty());
        for (n, mut other) in order {
            other.sort_by_key(|index| index.local_id());
            let Some(indexes) = agreed_on.take() else {
                agreed_on = Some(other);
                continue;
            };
            let same = indexes.len() == other.len();
            let both = indexes
                .iter()
                .zip(&other)
                .map(|(one, other)| common_index_record(Arc::clone(one), other));
            agreed_on = match both.collect::<Option<_>>().filter(|_| same) {
                Some(both) => Some(both),
                None if self.parts[n].vbuckets.is_empty() => {
                    self.parts[n].is_left_out = true;
                    Some(indexes)
                }
                None => return Err(indexes_differ_error()),
            };
        }
        let indexes = agreed_on.unwrap_or_default();
        self.stage = Stage::History;
        let vbuckets = VbucketSet::all(self.at.vbuckets());
        Ok(vec![StreamMessage::Begin { at: self.at.clone(), indexes, vbuckets }])
    }

    /// Stores the history of a stream's vbuckets. Returns the merged history if it is complete
    /// and has changed.
    fn merge_histories(&mut self, part: usize, logs: &FailoverLogs) -> Vec<StreamMessage> {
        self.parts[part].has_told = true;
        for vbucket in self.parts[part].vbuckets.iter() {
            if let Some(branches) = self.logs.get_mut(usize::from(vbucket.0)) {
                *branches = logs.get(vbucket).cloned().unwrap_or_default();
            }
        }
        // A part without vbuckets is not waited for.
        let tells =
            |part: &ProjectorStream| part.has_told || part.is_left_out || part.vbuckets.is_empty();
        if !self.parts.iter().all(tells) {
            return Vec::new();
        }
        self.stage = Stage::Flows;
        let logs = FailoverLogs::new(self.logs.clone());
        if self.told.as_ref().is_some_and(|told| **told == logs) {
            return Vec::new();
        }
        let logs = Arc::new(logs);
        self.told = Some(Arc::clone(&logs));
        vec![StreamMessage::History(logs)]
    }

    /// Returns the change of an index once all streams have announced it, and lets them be read
    /// again.
    fn merge_index_change(&mut self) -> Result<Vec<StreamMessage>> {
        let held = self.parts.iter().filter(|part| !part.vbuckets.is_empty());
        let held = held.map(|part| match &part.held {
            Some(StreamWait::Index(message)) => Some(message),
            _ => None,
        });
        let Some(held) = held.collect::<Option<Vec<_>>>() else { return Ok(Vec::new()) };
        let mut said = held.into_iter().cloned();
        let Some(mut message) = said.next() else { return Ok(Vec::new()) };
        for other in said {
            message = match (message, other) {
                (
                    StreamMessage::IndexJoin { index, .. },
                    StreamMessage::IndexJoin { index: other, .. },
                ) => {
                    let index =
                        common_index_record(index, &other).ok_or_else(indexes_differ_error)?;
                    StreamMessage::IndexJoin { index, at: Cut::default() }
                }
                (
                    leave @ StreamMessage::IndexLeave { .. },
                    other @ StreamMessage::IndexLeave { .. },
                ) if leave == other => leave,
                _ => return Err(indexes_differ_error()),
            };
        }
        if let StreamMessage::IndexJoin { at, .. } = &mut message {
            *at = self.at.clone();
        }
        for part in &mut self.parts {
            let said = matches!(part.held.take(), Some(StreamWait::Index(said)) if is_same_index_change(&said, &message));
            part.is_left_out |= part.vbuckets.is_empty() && !said;
        }
        Ok(vec![message])
    }

    /// Begins a vbucket on a stream, or makes the stream wait until another one has ended the
    /// vbucket.
    fn stream_begin(&mut self, part: usize, vbucket: VbucketId, at: Position) -> Result<()> {
        match self.home.get(usize::from(vbucket.0)).copied() {
            Some(Some(home)) if home != part => {
                self.parts[part].held = Some(StreamWait::Vbucket(vbucket, at));
                Ok(())
            }
            Some(None) => self.begin_vbucket(part, vbucket, at),
            _ => Err(self.protocol_error(
                part,
                "STREAM_BEGIN of a vbucket that it has begun or that is none",
            )),
        }
    }

    /// Ends a vbucket on a stream, and begins it on the stream that waits for this.
    fn stream_end(&mut self, part: usize, vbucket: VbucketId, at: Position) -> Result<()> {
        if self.home.get(usize::from(vbucket.0)) != Some(&Some(part)) {
            return Err(self.protocol_error(part, "STREAM_END without STREAM_BEGIN"));
        }
        if self.at.get(vbucket).seqno != at.seqno {
            return Err(self.protocol_error(part, "STREAM_END before the vbucket's last frame"));
        }
        self.parts[part].vbuckets.remove(vbucket);
        self.home[usize::from(vbucket.0)] = None;
        let waiting = self.parts.iter().enumerate().find_map(|(n, part)| match part.held {
            Some(StreamWait::Vbucket(held, at)) if held == vbucket => Some((n, at)),
            _ => None,
        });
        let Some((next, at)) = waiting else { return Ok(()) };
        self.parts[next].held = None;
        self.begin_vbucket(next, vbucket, at)
    }

    /// Makes stream number `part` the carrier of a vbucket that no stream carries. Returns an
    /// error if `at` is not where the previous stream ended it.
    fn begin_vbucket(&mut self, part: usize, vbucket: VbucketId, at: Position) -> Result<()> {
        if at.seqno != self.at.get(vbucket).seqno {
            let what = format!("vbucket {vbucket} goes on at {}, not where it ended", at.seqno);
            return Err(Error::new(ErrorCode::DropData, what));
        }
        self.parts[part].vbuckets.insert(vbucket);
        self.home[usize::from(vbucket.0)] = Some(part);
        Ok(())
    }
}

#[cfg(test)]
#[path = "merge_tests.rs"]
mod tests;
