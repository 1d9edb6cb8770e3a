//! An epoch's mutations as the store reads them, and as they stand in the commit log.
//!
//! Of several mutations of one document only the last one within the epoch counts. The log keeps the
//! packed key-versions as they came, so that nothing is encoded anew, and a replay does the same work
//! as the first time.
//!
//! ```text
//! record := kind:u8  len(header) header  body*        header: postcard; a body is a piece's
//! ```

use bytes::Bytes;
use hashbrown::HashTable;
use proto::model::cut::EpochMark;
use proto::model::ids::{Epoch, Seqno, hash_id};
use proto::rpc::mutation::{KeyVersions, KeyVersionsReader};
use proto::rpc::varint::{put_varint, take_bytes};
use proto::{Error, ErrorCode, Result};
use serde::{Deserialize, Serialize};

use super::{EpochBatch, Piece};

/// Few packed mutations have fewer bytes.
const MUTATION_BYTES: usize = 24;

/// The last state of a document in an epoch.
#[derive(Clone, Copy, Debug)]
pub struct Document<'a> {
    /// The hash of its id.
    pub hash: u64,
    /// Its key-versions.
    pub versions: KeyVersions<'a>,
}

/// The last state of each document of an epoch, in the order in which the documents came first.
pub fn documents(batch: &EpochBatch) -> Result<Vec<Document<'_>>> {
    let mutations = |piece: &Piece| {
        let most = piece.body.len() / MUTATION_BYTES;
        piece.to.0.saturating_sub(piece.after.0).min(most as u64) as usize
    };
    let count = batch.pieces.iter().map(mutations).sum();
    let mut documents: Vec<Document<'_>> = Vec::with_capacity(count);
    let mut places: HashTable<u32> = HashTable::with_capacity(count);
    for Piece { body, base, after, to } in &batch.pieces {
        for versions in KeyVersionsReader::new(body) {
            let versions = versions?;
            let seqno = base.0.saturating_add(versions.seqno_minus_base);
            if seqno <= after.0 || seqno > to.0 {
                continue;
            }
            let hash = hash_id(versions.id);
            let same = |at: &u32| documents[*at as usize].versions.id == versions.id;
            match places.find(hash, same) {
                Some(at) => documents[*at as usize].versions = versions,
                None => {
                    let at = documents.len() as u32;
                    documents.push(Document { hash, versions });
                    let documents = &documents;
                    places.insert_unique(hash, at, |at| documents[*at as usize].hash);
                }
            }
        }
    }
    Ok(documents)
}

/// A record of the commit log.
#[derive(Clone, Debug)]
pub enum Record {
    /// An epoch was applied.
    Epoch(EpochBatch),
    /// The bucket went back to an epoch; the number is the newest that was taken back.
    Truncate(EpochMark, Epoch),
}

const EPOCH: u8 = 1;
const TRUNCATE: u8 = 2;

#[derive(Serialize, Deserialize)]
struct EpochHeader {
    mark: EpochMark,
    /// For each piece: base, after, to, bytes.
    pieces: Vec<(Seqno, Seqno, Seqno, u64)>,
}

impl Record {
    /// Its bytes.
    pub fn encode(&self) -> Result<Vec<u8>> {
        match self {
            Self::Epoch(EpochBatch { mark, pieces }) => {
                let of =
                    |piece: &Piece| (piece.base, piece.after, piece.to, piece.body.len() as u64);
                let header =
                    EpochHeader { mark: mark.clone(), pieces: pieces.iter().map(of).collect() };
                let bodies: usize = pieces.iter().map(|piece| piece.body.len()).sum();
                let mut out = head(EPOCH, &header, bodies)?;
                pieces.iter().for_each(|piece| out.extend_from_slice(&piece.body));
                Ok(out)
            }
            Self::Truncate(mark, to) => head(TRUNCATE, &(mark, to), 0),
        }
    }

    /// Reads it back.
    pub fn decode(record: &[u8]) -> Result<Self> {
        let corrupt = |what: &str| Error::new(ErrorCode::Corrupt, format!("a log record: {what}"));
        let (kind, mut rest) = record.split_first().ok_or_else(|| corrupt("it is empty"))?;
        let header = take_bytes(&mut rest)?;
        match *kind {
            EPOCH => {
                let EpochHeader { mark, pieces } =
                    postcard::from_bytes(header).map_err(|error| corrupt(&error.to_string()))?;
                let mut read = Vec::new();
                for (base, after, to, len) in pieces {
                    let len = usize::try_from(len).unwrap_or(usize::MAX);
                    let (body, tail) =
                        rest.split_at_checked(len).ok_or_else(|| corrupt("it ends too soon"))?;
                    rest = tail;
                    read.push(Piece { body: Bytes::copy_from_slice(body), base, after, to });
                }
                Ok(Self::Epoch(EpochBatch { mark, pieces: read }))
            }
            TRUNCATE => postcard::from_bytes(header)
                .map(|(mark, to)| Self::Truncate(mark, to))
                .map_err(|error| corrupt(&error.to_string())),
            other => Err(corrupt(&format!("kind {other}"))),
        }
    }
}

fn head(kind: u8, header: &impl Serialize, more: usize) -> Result<Vec<u8>> {
    let header = postcard::to_stdvec(header).map_err(|error| Error::internal(error.to_string()))?;
    let mut out = Vec::with_capacity(header.len() + more + 11);
    out.push(kind);
    put_varint(&mut out, header.len() as u64);
    out.extend_from_slice(&header);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proto::model::cut::Cut;
    use proto::model::ids::BucketId;
    use proto::rpc::mutation::{KeyVersionsWriter, MutationKind};

    use super::*;

    fn batch() -> EpochBatch {
        let mark = EpochMark {
            bucket: BucketId(1),
            epoch: Epoch(5),
            parent: Epoch(4),
            cut: Arc::new(Cut::zero(2)),
            horizon: Epoch(3),
            points: Arc::default(),
        };
        let piece = |ids: &[(u64, &str)], after, to| {
            let mut writer = KeyVersionsWriter::default();
            for (seqno, id) in ids {
                writer.mutation(*seqno, MutationKind::Upsert, id, 0);
            }
            Piece { body: writer.finish(), base: Seqno(10), after: Seqno(after), to: Seqno(to) }
        };
        let first = piece(&[(1, "old"), (2, "a"), (3, "b"), (4, "a"), (5, "late")], 11, 14);
        EpochBatch { mark, pieces: vec![first, piece(&[(1, "c")], 0, 99)] }
    }

    #[test]
    fn the_last_state_within_the_epoch_counts() {
        let batch = batch();
        let documents = documents(&batch).unwrap();
        let found: Vec<_> =
            documents.iter().map(|d| (d.versions.id, d.versions.seqno_minus_base)).collect();
        assert_eq!(found, [("a", 4), ("b", 3), ("c", 1)]);
    }

    #[test]
    fn records_come_back_and_damage_is_an_error() {
        let bytes = Record::Epoch(batch()).encode().unwrap();
        let Record::Epoch(read) = Record::decode(&bytes).unwrap() else { panic!("an epoch") };
        assert_eq!(read.mark, batch().mark);
        assert_eq!(documents(&read).unwrap().len(), 3);
        for cut in 0..bytes.len() {
            assert!(Record::decode(&bytes[..cut]).is_err(), "cut at {cut}");
        }
        let bytes = Record::Truncate(batch().mark, Epoch(9)).encode().unwrap();
        assert!(
            matches!(Record::decode(&bytes), Ok(Record::Truncate(mark, Epoch(9))) if mark.epoch.0 == 5)
        );
    }
}
