//! Entry points for fuzzers that read two kinds of bytes of a change log: a group, and the side
//! file with the index of a segment.

use super::index::file::{HEADER_BYTES, IndexedSegment, RANGE_BYTES, parse_sections, range_count};
use super::items::format::{ITEM_HEADER_BYTES, ItemHeader};
use super::items::item::{LogEvent, items};

/// The random id of the log, and the LSN, under which the fuzzed group is read.
const PLACE: (u64, u64) = (4, 56);

/// Reads a group: first unchanged, then with the checksums of its items corrected.
pub fn group(data: &[u8]) {
    read_group(data);
    read_group(&group_with_checksums(data));
}

/// Recomputes the checksums of a group's items, as long as their lengths are valid.
pub fn group_with_checksums(data: &[u8]) -> Vec<u8> {
    let (log_id, mut lsn) = PLACE;
    let (mut out, mut rest) = (Vec::with_capacity(data.len()), data);
    while let Some((header, body)) = ItemHeader::take(&mut rest) {
        ItemHeader::put(&mut out, (log_id, lsn), (header.kind, header.vbucket), [body, &[]]);
        lsn += (ITEM_HEADER_BYTES + body.len()) as u64;
    }
    out.extend_from_slice(rest);
    out
}

fn read_group(data: &[u8]) {
    let (log_id, lsn) = PLACE;
    for item in items(log_id, lsn, data).flatten() {
        let _ = (item.changes(), item.transaction());
        if let Ok(LogEvent::Run(run)) = item.event() {
            let read = run.mutations().take_while(Result::is_ok).count() as u64;
            assert!(read <= run.last.0 - run.first.0 + 1, "more mutations than the run has");
        }
    }
}

/// Reads a side file with the index of a segment: first unchanged, then with its checksums
/// corrected. The segment is the one that the file's header names.
pub fn side_file(data: &[u8]) {
    read_side_file(data);
    let mut mended = data.to_vec();
    let Some(count) = data.get(32..36).and_then(|count| count.try_into().ok()) else { return };
    let ranges = u32::from_le_bytes(count) as usize;
    let Some(end) = ranges.checked_mul(RANGE_BYTES).map(|bytes| HEADER_BYTES + bytes) else {
        return;
    };
    if mended.len() < end {
        return;
    }
    for range in 0..ranges {
        let at = HEADER_BYTES + range * RANGE_BYTES;
        let word = |at: usize| {
            u32::from_le_bytes([data[at], data[at + 1], data[at + 2], data[at + 3]]) as usize
        };
        let (from, len) = (word(at + 24), word(at + 28));
        let section = data.get(from..).and_then(|rest| rest.get(..len)).unwrap_or_default();
        mended[at + 4..at + 8].copy_from_slice(&crc32c::crc32c(section).to_le_bytes());
    }
    let crc = crc32c::crc32c_append(crc32c::crc32c(&mended[..36]), &mended[HEADER_BYTES..end]);
    mended[36..40].copy_from_slice(&crc.to_le_bytes());
    read_side_file(&mended);
}

fn read_side_file(data: &[u8]) {
    let word = |at: usize| {
        data.get(at..at + 8).and_then(|word| word.try_into().ok()).map_or(0, u64::from_le_bytes)
    };
    let segment = IndexedSegment { log_id: word(8), base: word(16), end: word(24) };
    let Some(count) = range_count(data, segment) else { return };
    let Some(header) = data.get(..HEADER_BYTES + count * RANGE_BYTES) else { return };
    for section in parse_sections(header).unwrap_or_default() {
        let (from, len) = (section.at as usize, section.len as usize);
        let Some(bytes) = data.get(from..).and_then(|rest| rest.get(..len)) else { continue };
        let _ = section.parse(segment.base, bytes);
    }
}
