//! Versions of documents, and how they are encoded in the rows of the storage engine's fragments.
//!
//! ```text
//! row      := key: id of the document, id: empty, epoch: place of the version, tombstone: deletion, value
//! value    := seqno:varint document           the document is empty for a deletion
//! ```

use bytes::Bytes;
use proto::model::ids::{Seqno, SliceNo, VbucketId};
use proto::rpc::varint::take_varint;
use proto::{Error, ErrorCode, Result};
use storage::layers::Block;

/// Largest size of a varint in bytes.
const VARINT_BYTES_MAX: usize = 10;

/// The slice number of all rows. The storage engine's rows have one, but a document table has no
/// slices.
pub(super) const SLICE: SliceNo = SliceNo(0);

/// A borrowed version of a document that is to be added to a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VersionRef<'a> {
    /// The place of the version in the order of all versions; larger than that of each earlier
    /// version.
    pub place: u64,
    /// Id of the document.
    pub id: &'a str,
    /// Seqno of the mutation in the vbucket of the document.
    pub seqno: Seqno,
    /// The document; `None` for a deletion.
    pub document: Option<&'a [u8]>,
}

/// A document that was read from a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredVersion {
    /// Seqno of the mutation that wrote the document.
    pub seqno: Seqno,
    /// The text of the document as its client sent it.
    pub document: Bytes,
}

/// One version of a document, decoded from a row of a block.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowView<'a> {
    pub place: u64,
    pub seqno: Seqno,
    pub is_tombstone: bool,
    /// Two byte strings whose concatenation is the document.
    pub document: [&'a [u8]; 2],
}

impl<'a> RowView<'a> {
    /// Decodes a row of a block.
    #[inline]
    pub fn of(block: &'a Block, row: u32) -> Result<Self> {
        let (seqno, document) = split_value(block.value_pieces(row))?;
        let (place, is_tombstone) = (block.epoch(row).0, block.is_tombstone(row));
        Ok(Self { place, seqno, is_tombstone, document })
    }
}

/// Splits a row's value into seqno and document. The value is the concatenation of two byte
/// strings.
#[inline]
fn split_value(value: [&[u8]; 2]) -> Result<(Seqno, [&[u8]; 2])> {
    let [prefix, mut rest] = value;
    if prefix.is_empty() {
        let seqno = take_varint(&mut rest)?;
        return Ok((Seqno(seqno), [&[], rest]));
    }
    let mut head = [0; VARINT_BYTES_MAX];
    let mut len = 0;
    for (to, from) in head.iter_mut().zip(prefix.iter().chain(rest)) {
        *to = *from;
        len += 1;
    }
    let mut behind = &head[..len];
    let seqno = take_varint(&mut behind)?;
    let taken = len - behind.len();
    let of_prefix = taken.min(prefix.len());
    Ok((Seqno(seqno), [&prefix[of_prefix..], &rest[taken - of_prefix..]]))
}

/// Decodes the seqno at the beginning of a row's value. Also returns the remaining bytes.
pub(super) fn seqno_of(value: &[u8]) -> Result<(Seqno, &[u8])> {
    let mut rest = value;
    let seqno = take_varint(&mut rest)?;
    Ok((Seqno(seqno), rest))
}

/// Returns the vbucket of a document from the hash of its id.
#[inline]
pub(super) fn vbucket_of_hash(hash: u64, vbuckets: u16) -> VbucketId {
    VbucketId((hash % u64::from(vbuckets.max(1))) as u16)
}

/// Concatenates two byte strings into one buffer.
pub(super) fn joined(pieces: [&[u8]; 2]) -> Bytes {
    Bytes::from(pieces.concat())
}

/// Returns an id as text; an error if it is not UTF-8.
pub(super) fn id_text(id: &[u8]) -> Result<&str> {
    std::str::from_utf8(id)
        .map_err(|_| Error::new(ErrorCode::Corrupt, "the id of a document is not text"))
}

#[cfg(test)]
mod tests {
    use proto::model::ids::{hash_id, vbucket_of};
    use proto::rpc::varint::put_varint;

    use super::*;

    #[test]
    fn a_value_is_split_wherever_its_prefix_ends() {
        for seqno in [0, 1, 127, 128, 1 << 40, u64::MAX] {
            let mut value = Vec::new();
            put_varint(&mut value, seqno);
            value.extend_from_slice(b"{\"a\":1}");
            for at in 0..=value.len() {
                let (prefix, suffix) = value.split_at(at);
                let (found, document) = split_value([prefix, suffix]).unwrap();
                assert_eq!((found.0, &document.concat()[..]), (seqno, &b"{\"a\":1}"[..]));
            }
        }
        assert!(split_value([&[0x80], &[]]).is_err());
        assert!(split_value([&[], &[]]).is_err());
    }

    #[test]
    fn the_vbucket_of_a_hash_is_that_of_its_id() {
        for id in ["", "a", "user::17", "ß"] {
            for vbuckets in [1, 7, 1024] {
                assert_eq!(vbucket_of_hash(hash_id(id), vbuckets), vbucket_of(id, vbuckets));
            }
        }
    }
}
