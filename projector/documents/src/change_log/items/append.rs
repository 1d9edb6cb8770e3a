//! Encodes a group of items for its place in the log.

use std::collections::BTreeMap;
use std::ops::Range;

use proto::model::ids::{Seqno, TransactionId, VbucketId};
use proto::{Error, ErrorCode, Result};
use storage::log::Lsn;

use super::format::{ITEM_HEADER_BYTES, ItemHeader, ItemKind, PURGE_POINT_BYTES, RunHead};
use super::group::{DraftItem, GroupBuilder, RunDraft};
use super::prepared_places::PreparedPlace;
use super::state::{Change, VbucketState};

/// A function that returns the number of bytes of a vbucket's log up to a seqno that readers can
/// see.
pub(super) type LookUp<'a> = &'a dyn Fn(VbucketId, Seqno) -> Result<u64>;

/// An encoder of groups. The buffers are kept for the next group.
#[derive(Default)]
pub(in crate::change_log) struct Encoder {
    /// The headers of all items, and the bodies that are not in the buffers of the group.
    heads: Vec<u8>,
    /// For each item, the end of its bytes in `heads`.
    ends: Vec<usize>,
    /// For each run (sequence of mutations), the LSN and the size of its item.
    pub(in crate::change_log) runs: Vec<(Lsn, u32)>,
    /// The places in the log of the changes of the group's prepared transactions.
    pub(in crate::change_log) prepared: Vec<(TransactionId, PreparedPlace)>,
    /// The changes that the group makes to the positions of vbuckets, with the LSNs of their
    /// items.
    pub(in crate::change_log) changes: Vec<(VbucketId, Change, Lsn)>,
}

/// The position of a vbucket after the items that are encoded so far.
#[derive(Clone, Copy)]
struct EncodedState {
    state: VbucketState,
    /// The seqno up to which the index that readers use is still valid for the vbucket; `None` if
    /// the vbucket was removed or restarted.
    known_to: Option<Seqno>,
}

/// The positions of the vbuckets that a group changes, while the group is being encoded.
struct EncodingStates<'a> {
    states: &'a [VbucketState],
    staged: BTreeMap<VbucketId, EncodedState>,
    look_up: LookUp<'a>,
}

impl EncodingStates<'_> {
    /// Returns the position of a vbucket after the items that are encoded so far.
    fn state_of(&self, vbucket: VbucketId) -> Result<EncodedState> {
        if let Some(staged) = self.staged.get(&vbucket) {
            return Ok(*staged);
        }
        let state = self.states.get(usize::from(vbucket.0)).copied();
        let state = state
            .ok_or_else(|| Error::internal(format!("the change log has no vbucket {vbucket}")))?;
        Ok(EncodedState { state, known_to: Some(state.extent.end) })
    }

    /// Returns the number of bytes of a vbucket's log up to a retained seqno.
    fn bytes_to(&self, vbucket: VbucketId, to: Seqno) -> Result<u64> {
        let EncodedState { state, known_to } = self.state_of(vbucket)?;
        match to {
            _ if to == state.extent.end => Ok(state.extent.bytes_end),
            _ if to == state.extent.purged => Ok(state.extent.bytes_purged),
            _ if known_to.is_some_and(|known| to <= known) => (self.look_up)(vbucket, to),
            _ => Err(Error::internal(format!(
                "a group goes back to seqno {to} of vbucket {vbucket}, which it brings itself"
            ))),
        }
    }

    fn apply(&mut self, vbucket: VbucketId, change: &Change, lsn: Lsn) -> Result<()> {
        let mut staged = self.state_of(vbucket)?;
        staged.state.apply(change, lsn).map_err(|why| {
            Error::new(ErrorCode::OutOfOrder, format!("vbucket {vbucket}: {why}"))
        })?;
        match change {
            _ if change.clears_vbucket() => staged.known_to = None,
            Change::Rewind { to, .. } => {
                staged.known_to = staged.known_to.map(|known| known.min(*to));
            }
            _ => {}
        }
        self.staged.insert(vbucket, staged);
        Ok(())
    }
}

impl Encoder {
    /// Encodes a group whose first item begins at `lsn`. Returns the new positions of the
    /// vbuckets that it changes.
    pub(in crate::change_log) fn encode(
        &mut self,
        group: &GroupBuilder,
        (log_id, mut lsn): (u64, Lsn),
        states: &[VbucketState],
        look_up: LookUp<'_>,
    ) -> Result<Vec<(VbucketId, VbucketState)>> {
        self.heads.clear();
        self.ends.clear();
        self.changes.clear();
        self.prepared.clear();
        self.runs.clear();
        self.runs.resize(group.runs().len(), (0, 0));
        let mut stage = EncodingStates { states, staged: BTreeMap::new(), look_up };
        for item in &group.items {
            let begin = self.heads.len();
            let body = self.item(&mut stage, group, item, (log_id, lsn))?;
            if body > u32::MAX as usize {
                return Err(Error::new(ErrorCode::OverLimit, "an item of more than 4 GiB"));
            }
            let item_bytes = self.heads.len() - begin + body;
            if let DraftItem::Run(run) = item {
                self.runs[*run as usize] = (lsn, item_bytes as u32);
            }
            if let DraftItem::Prepared(transaction, _) = item {
                let place = PreparedPlace { item: lsn, bytes: item_bytes as u32 };
                self.prepared.push((*transaction, place));
            }
            self.ends.push(self.heads.len());
            lsn += item_bytes as u64;
        }
        Ok(stage.staged.into_iter().map(|(vbucket, staged)| (vbucket, staged.state)).collect())
    }

    /// Returns the byte strings whose concatenation is the group that was encoded last.
    pub(in crate::change_log) fn parts<'a>(&'a self, group: &'a GroupBuilder) -> Vec<&'a [u8]> {
        let mut parts = Vec::with_capacity(2 * group.items.len());
        let mut begin = 0;
        for (item, end) in group.items.iter().zip(&self.ends) {
            parts.push(&self.heads[Range { start: begin, end: *end }]);
            begin = *end;
            match item {
                DraftItem::Run(run) => parts.push(&group.runs()[*run as usize].mutations),
                DraftItem::Record(body)
                | DraftItem::Documents(_, body)
                | DraftItem::Transaction(_, body)
                | DraftItem::Prepared(_, body) => parts.push(body),
                _ => {}
            }
        }
        parts
    }

    /// Encodes the header of an item, and those bytes of its body that are not in the group's
    /// buffers. Returns the number of the other bytes.
    fn item(
        &mut self,
        stage: &mut EncodingStates<'_>,
        group: &GroupBuilder,
        item: &DraftItem,
        place: (u64, Lsn),
    ) -> Result<usize> {
        let lsn = place.1;
        match item {
            DraftItem::Run(run) => return self.run(stage, &group.runs()[*run as usize], place),
            DraftItem::Record(body) => {
                return Ok(self.rest((ItemKind::Record, VbucketId(0)), place, body));
            }
            DraftItem::Transaction(kind, body) => {
                return Ok(self.rest((*kind, VbucketId(0)), place, body));
            }
            DraftItem::Prepared(_, body) => {
                return Ok(self.rest((ItemKind::Transaction, VbucketId(0)), place, body));
            }
            DraftItem::Documents(vbucket, body) => {
                stage.state_of(*vbucket)?;
                return Ok(self.rest((ItemKind::Documents, *vbucket), place, body));
            }
            DraftItem::Rewind(vbucket, to) => {
                let end = stage.state_of(*vbucket)?.state.extent.end;
                let to = (*to).min(end);
                let bytes = if to.0 == 0 { 0 } else { stage.bytes_to(*vbucket, to)? };
                self.change(stage, *vbucket, Change::Rewind { to, bytes }, lsn)?;
                self.words((ItemKind::Rewind, *vbucket), place, &[to.0, bytes]);
            }
            DraftItem::Remove(vbucket) => {
                self.change(stage, *vbucket, Change::Remove, lsn)?;
                self.words((ItemKind::Remove, *vbucket), place, &[]);
            }
            DraftItem::Begin(vbucket, purged) => {
                self.change(stage, *vbucket, Change::Begin { purged: *purged }, lsn)?;
                self.words((ItemKind::Begin, *vbucket), place, &[purged.0]);
            }
            DraftItem::Purge(points) => self.purge(stage, points, place)?,
        }
        Ok(0)
    }

    fn run(
        &mut self,
        stage: &mut EncodingStates<'_>,
        run: &RunDraft,
        (log_id, lsn): (u64, Lsn),
    ) -> Result<usize> {
        let RunDraft { vbucket, vbuuid, first, last, bytes, ref mutations } = *run;
        let bytes_before = stage.state_of(vbucket)?.state.extent.bytes_end;
        let head = RunHead { vbuuid, first, last, bytes_before, bytes }.encode();
        let item_bytes = (ITEM_HEADER_BYTES + head.len() + mutations.len()) as u32;
        let change = Change::Run { first, last, bytes_before, bytes, item_bytes };
        self.change(stage, vbucket, change, lsn)?;
        let of = (ItemKind::Run, vbucket);
        ItemHeader::put(&mut self.heads, (log_id, lsn), of, [&head, mutations]);
        self.heads.extend_from_slice(&head);
        Ok(mutations.len())
    }

    fn purge(
        &mut self,
        stage: &mut EncodingStates<'_>,
        points: &[(VbucketId, Seqno)],
        place: (u64, Lsn),
    ) -> Result<()> {
        let mut body = Vec::with_capacity(points.len() * PURGE_POINT_BYTES);
        for (vbucket, to) in points {
            let extent = stage.state_of(*vbucket)?.state.extent;
            let to = (*to).clamp(extent.purged, extent.end);
            let bytes = stage.bytes_to(*vbucket, to)?;
            self.change(stage, *vbucket, Change::Purge { to, bytes }, place.1)?;
            body.extend_from_slice(&vbucket.0.to_le_bytes());
            body.extend_from_slice(&to.0.to_le_bytes());
            body.extend_from_slice(&bytes.to_le_bytes());
        }
        let of = (ItemKind::Purge, VbucketId(0));
        ItemHeader::put(&mut self.heads, place, of, [&body, &[]]);
        self.heads.extend_from_slice(&body);
        Ok(())
    }

    fn change(
        &mut self,
        stage: &mut EncodingStates<'_>,
        vbucket: VbucketId,
        change: Change,
        lsn: Lsn,
    ) -> Result<()> {
        stage.apply(vbucket, &change, lsn)?;
        self.changes.push((vbucket, change, lsn));
        Ok(())
    }

    fn rest(&mut self, of: (ItemKind, VbucketId), place: (u64, Lsn), body: &[u8]) -> usize {
        ItemHeader::put(&mut self.heads, place, of, [body, &[]]);
        body.len()
    }

    fn words(&mut self, of: (ItemKind, VbucketId), place: (u64, Lsn), words: &[u64]) {
        let body: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        ItemHeader::put(&mut self.heads, place, of, [&body, &[]]);
        self.heads.extend_from_slice(&body);
    }
}
