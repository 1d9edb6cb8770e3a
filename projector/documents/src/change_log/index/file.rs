//! The side file of a closed log segment, which contains the segment's index: for each vbucket,
//! the places of its runs (sequences of mutations).
//!
//! ```text
//! BASE.index := header  range*  section*                                             (little endian)
//! header     := "sxli" version:u32 log_id:u64 base:u64 end:u64 ranges:u32 crc:u32    crc: of the rest and of all ranges
//! range      := vbucket:u16 0:u16 crc:u32 first:u64 last:u64 at:u32 len:u32          crc: of the section
//! section    := (count item_bytes lsn bytes_before)*       varints; the last two are differences to the run before
//! ```
//!
//! The file is derived from its segment, so it is not synced. A missing, old or damaged file is
//! written again.

use proto::model::ids::{Seqno, VbucketId};
use proto::rpc::varint::{put_varint, take_varint};
use storage::log::Lsn;

use super::segment::{RunEntry, SegmentIndex, SeqnoRange};
use crate::change_log::items::format::{u32_at, u64_at};

const MAGIC: &[u8; 4] = b"sxli";
const VERSION: u32 = 1;
/// The size in bytes of the header.
pub(in crate::change_log) const HEADER_BYTES: usize = 40;
/// The size in bytes of a range.
pub(in crate::change_log) const RANGE_BYTES: usize = 32;

/// The identity of the closed segment that an index belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::change_log) struct IndexedSegment {
    pub(in crate::change_log) log_id: u64,
    pub(in crate::change_log) base: Lsn,
    pub(in crate::change_log) end: Lsn,
}

/// The section of one vbucket in a side file: the vbucket's range of seqnos, and the place of its
/// entries in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::change_log) struct Section {
    pub(super) range: SeqnoRange,
    pub(in crate::change_log) at: u32,
    pub(in crate::change_log) len: u32,
    crc: u32,
}

/// Encodes the index of a segment as the bytes of its side file.
pub(super) fn encode(segment: IndexedSegment, index: &SegmentIndex) -> Vec<u8> {
    let (ranges, mut sections) = (index.ranges(), Vec::new());
    let sections_at = HEADER_BYTES + ranges.len() * RANGE_BYTES;
    let mut out = vec![0; HEADER_BYTES];
    for range in &ranges {
        let begin = sections.len();
        put_runs(&mut sections, segment.base, index.runs(range.vbucket));
        let crc = crc32c::crc32c(&sections[begin..]);
        out.extend_from_slice(&u32::from(range.vbucket.0).to_le_bytes());
        out.extend_from_slice(&crc.to_le_bytes());
        out.extend_from_slice(&range.first.0.to_le_bytes());
        out.extend_from_slice(&range.last.0.to_le_bytes());
        out.extend_from_slice(&((sections_at + begin) as u32).to_le_bytes());
        out.extend_from_slice(&((sections.len() - begin) as u32).to_le_bytes());
    }
    out[..4].copy_from_slice(MAGIC);
    out[4..8].copy_from_slice(&VERSION.to_le_bytes());
    out[8..16].copy_from_slice(&segment.log_id.to_le_bytes());
    out[16..24].copy_from_slice(&segment.base.to_le_bytes());
    out[24..32].copy_from_slice(&segment.end.to_le_bytes());
    out[32..36].copy_from_slice(&(ranges.len() as u32).to_le_bytes());
    let crc = header_crc(&out);
    out[36..40].copy_from_slice(&crc.to_le_bytes());
    out.extend_from_slice(&sections);
    out
}

fn header_crc(header: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&header[..36]), &header[HEADER_BYTES..])
}

fn put_runs(out: &mut Vec<u8>, base: Lsn, runs: &[RunEntry]) {
    let (mut lsn, mut bytes) = (base, 0);
    for run in runs {
        put_varint(out, u64::from(run.count));
        put_varint(out, u64::from(run.item_bytes));
        put_varint(out, run.lsn - lsn);
        put_varint(out, run.bytes_before.wrapping_sub(bytes));
        (lsn, bytes) = (run.lsn, run.bytes_before);
    }
}

/// Returns the number of ranges that a side file's header names; `None` if the header belongs to
/// another segment. The checksum is not checked yet.
pub(in crate::change_log) fn range_count(header: &[u8], segment: IndexedSegment) -> Option<usize> {
    let is_of = header.len() >= HEADER_BYTES
        && &header[..4] == MAGIC
        && u32_at(header, 4) == VERSION
        && u64_at(header, 8) == segment.log_id
        && u64_at(header, 16) == segment.base
        && u64_at(header, 24) == segment.end;
    is_of.then(|| u32_at(header, 32) as usize).filter(|count| *count <= usize::from(u16::MAX) + 1)
}

/// Decodes the header of a side file with all ranges; `None` if it is damaged.
pub(in crate::change_log) fn parse_sections(header: &[u8]) -> Option<Vec<Section>> {
    if header.len() < HEADER_BYTES || header_crc(header) != u32_at(header, 36) {
        return None;
    }
    let section = |range: &[u8]| Section {
        range: SeqnoRange {
            vbucket: VbucketId(u16::from_le_bytes([range[0], range[1]])),
            first: Seqno(u64_at(range, 8)),
            last: Seqno(u64_at(range, 16)),
        },
        crc: u32_at(range, 4),
        at: u32_at(range, 24),
        len: u32_at(range, 28),
    };
    Some(header[HEADER_BYTES..].chunks_exact(RANGE_BYTES).map(section).collect())
}

impl Section {
    /// Decodes the index entries in the bytes of this section; `None` if they are damaged. `base`
    /// is the LSN at which the segment begins.
    pub(in crate::change_log) fn parse(&self, base: Lsn, section: &[u8]) -> Option<Vec<RunEntry>> {
        if crc32c::crc32c(section) != self.crc {
            return None;
        }
        let (mut rest, mut runs) = (section, Vec::new());
        let (mut first, mut lsn, mut bytes_before) = (self.range.first, base, 0u64);
        while !rest.is_empty() {
            let count = u32::try_from(take_varint(&mut rest).ok()?).ok()?;
            let item_bytes = u32::try_from(take_varint(&mut rest).ok()?).ok()?;
            lsn = lsn.checked_add(take_varint(&mut rest).ok()?)?;
            bytes_before = bytes_before.wrapping_add(take_varint(&mut rest).ok()?);
            runs.push(RunEntry { first, bytes_before, lsn, item_bytes, count });
            first = Seqno(first.0.checked_add(u64::from(count))?);
        }
        (Some(first.0) == self.range.last.0.checked_add(1)).then_some(runs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_of_a_range_up_to_the_largest_seqno_is_refused() {
        let (first, last) = (Seqno(u64::MAX - 1), Seqno(u64::MAX));
        let range = SeqnoRange { vbucket: VbucketId(1), first, last };
        let mut section = Vec::new();
        put_runs(
            &mut section,
            0,
            &[RunEntry { first, bytes_before: 0, lsn: 8, item_bytes: 60, count: 1 }],
        );
        let crc = crc32c::crc32c(&section);
        let named = Section { range, at: 0, len: section.len() as u32, crc };
        assert_eq!(named.parse(0, &section), None);
    }
}
