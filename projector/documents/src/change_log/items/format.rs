//! Encodes and decodes the headers of the items of a group. [`crate::change_log`] describes the
//! meaning of the fields.

use proto::model::ids::{Seqno, VbucketId, Vbuuid};
use storage::log::Lsn;

/// The hint in errors about a damaged change log.
pub(in crate::change_log) const HINT: &str = "restore the file from a copy, or go on without what is lost: `sextant source recover --accept-loss`";

/// The number of bytes of an item's header.
pub(in crate::change_log) const ITEM_HEADER_BYTES: usize = 12;
/// The number of bytes of a run's fixed fields, which precede its mutations.
pub(super) const RUN_HEAD_BYTES: usize = 40;
/// The number of bytes that one vbucket takes in the body of a purge item.
pub(super) const PURGE_POINT_BYTES: usize = 18;

/// The kind of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::change_log) enum ItemKind {
    Run = 1,
    Record = 2,
    Rewind = 3,
    Remove = 4,
    Begin = 5,
    Documents = 6,
    Purge = 7,
    Committed = 8,
    Transaction = 9,
}

impl ItemKind {
    fn parse(kind: u8) -> Option<Self> {
        use ItemKind::*;
        [Run, Record, Rewind, Remove, Begin, Documents, Purge, Committed, Transaction]
            .into_iter()
            .find(|known| *known as u8 == kind)
    }
}

/// The header of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::change_log) struct ItemHeader {
    crc: u32,
    /// The number of bytes of the body.
    pub(super) len: u32,
    pub(in crate::change_log) kind: ItemKind,
    /// The vbucket that the item concerns; zero if it concerns no vbucket.
    pub(in crate::change_log) vbucket: VbucketId,
}

impl ItemHeader {
    /// Appends the header of an item that begins at `lsn`. The item's body is the concatenation
    /// of the byte strings in `body`.
    pub(in crate::change_log) fn put(
        out: &mut Vec<u8>,
        (log_id, lsn): (u64, Lsn),
        (kind, vbucket): (ItemKind, VbucketId),
        body: [&[u8]; 2],
    ) {
        let len: usize = body.iter().map(|part| part.len()).sum();
        let mut fields = [0; ITEM_HEADER_BYTES - 4];
        fields[..4].copy_from_slice(&(len as u32).to_le_bytes());
        fields[4] = kind as u8;
        fields[6..].copy_from_slice(&vbucket.0.to_le_bytes());
        let crc = crc32c::crc32c_append(place_crc(log_id, lsn), &fields);
        let crc = body.iter().fold(crc, |crc, part| crc32c::crc32c_append(crc, part));
        out.extend_from_slice(&crc.to_le_bytes());
        out.extend_from_slice(&fields);
    }

    /// Removes the header and the body of an item from the front of a group's bytes; `None` if
    /// there are too few bytes. The checksum is not checked.
    pub(in crate::change_log) fn take<'a>(rest: &mut &'a [u8]) -> Option<(Self, &'a [u8])> {
        let (header, tail) = rest.split_at_checked(ITEM_HEADER_BYTES)?;
        let len = u32_at(header, 4);
        let kind = ItemKind::parse(header[8]).filter(|_| header[9] == 0)?;
        let vbucket = VbucketId(u16::from_le_bytes([header[10], header[11]]));
        let (body, tail) = tail.split_at_checked(len as usize)?;
        *rest = tail;
        Some((Self { crc: u32_at(header, 0), len, kind, vbucket }, body))
    }

    /// Returns true if the header's checksum is valid for this body, at this LSN of this log.
    pub(super) fn is_valid(&self, (log_id, lsn): (u64, Lsn), body: &[u8]) -> bool {
        let mut fields = [0; ITEM_HEADER_BYTES - 4];
        fields[..4].copy_from_slice(&self.len.to_le_bytes());
        fields[4] = self.kind as u8;
        fields[6..].copy_from_slice(&self.vbucket.0.to_le_bytes());
        let crc = crc32c::crc32c_append(place_crc(log_id, lsn), &fields);
        crc32c::crc32c_append(crc, body) == self.crc
    }

    /// Returns the size in bytes of the item, header included.
    pub(in crate::change_log) fn item_bytes(&self) -> u32 {
        self.len.saturating_add(ITEM_HEADER_BYTES as u32)
    }
}

fn place_crc(log_id: u64, lsn: Lsn) -> u32 {
    let mut place = [0; 16];
    place[..8].copy_from_slice(&log_id.to_le_bytes());
    place[8..].copy_from_slice(&lsn.to_le_bytes());
    crc32c::crc32c(&place)
}

/// The fixed fields at the beginning of a run's body. A run is a sequence of mutations of one
/// vbucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::change_log) struct RunHead {
    /// The branch of all mutations of the run.
    pub(super) vbuuid: Vbuuid,
    pub(in crate::change_log) first: Seqno,
    pub(super) last: Seqno,
    /// The number of bytes of the vbucket's log before the run, since the log began.
    pub(super) bytes_before: u64,
    /// The number of bytes of the run's mutations.
    pub(in crate::change_log) bytes: u64,
}

impl RunHead {
    pub(super) fn encode(&self) -> [u8; RUN_HEAD_BYTES] {
        let words = [self.vbuuid.0, self.first.0, self.last.0, self.bytes_before, self.bytes];
        let mut out = [0; RUN_HEAD_BYTES];
        for (to, word) in out.chunks_exact_mut(8).zip(words) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        out
    }

    /// Removes the fixed fields of a run from the front of an item's body; `None` if there are
    /// too few bytes.
    pub(super) fn take(rest: &mut &[u8]) -> Option<Self> {
        let (head, tail) = rest.split_at_checked(RUN_HEAD_BYTES)?;
        *rest = tail;
        Some(Self {
            vbuuid: Vbuuid(u64_at(head, 0)),
            first: Seqno(u64_at(head, 8)),
            last: Seqno(u64_at(head, 16)),
            bytes_before: u64_at(head, 24),
            bytes: u64_at(head, 32),
        })
    }
}

pub(in crate::change_log) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

pub(in crate::change_log) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}
