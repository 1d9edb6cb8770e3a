//! Records that the engine writes into the commit log.
//!
//! A record contains the packed key-versions as they were received, without another encoding. A
//! replay repeats the work of the first application.
//!
//! ```text
//! record := kind:u8  len(header) header  body*        header: postcard; a body is a piece's
//! ```

use bytes::Bytes;
use proto::model::cut::EpochMark;
use proto::model::ids::{Epoch, Seqno};
use proto::rpc::varint::{put_varint, take_bytes};
use proto::{Error, ErrorCode, Result};
use serde::{Deserialize, Serialize};

use crate::batch::{EpochBatch, VbucketMutations};

/// A record of the commit log.
#[derive(Clone, Debug)]
pub enum Record {
    /// An epoch was applied.
    Epoch(EpochBatch),
    /// The bucket was rolled back to the epoch of the mark. The number is the newest epoch that
    /// was undone.
    Truncate(EpochMark, Epoch),
}

const EPOCH: u8 = 1;
const TRUNCATE: u8 = 2;

#[derive(Serialize, Deserialize)]
struct EpochHeader {
    mark: EpochMark,
    /// For each vbucket's mutations in the batch: base, after, to (see [`Piece`]), and the number
    /// of bytes.
    pieces: Vec<(Seqno, Seqno, Seqno, u64)>,
}

impl Record {
    /// Encodes the record.
    pub fn encode(&self) -> Result<Vec<u8>> {
        match self {
            Self::Epoch(EpochBatch { mark, pieces, .. }) => {
                let of = |piece: &VbucketMutations| {
                    (piece.base, piece.after, piece.to, piece.body.len() as u64)
                };
                let header =
                    EpochHeader { mark: mark.clone(), pieces: pieces.iter().map(of).collect() };
                let bodies: usize = pieces.iter().map(|piece| piece.body.len()).sum();
                let mut out = encode_header(EPOCH, &header, bodies)?;
                pieces.iter().for_each(|piece| out.extend_from_slice(&piece.body));
                Ok(out)
            }
            Self::Truncate(mark, to) => encode_header(TRUNCATE, &(mark, to), 0),
        }
    }

    /// Decodes a record.
    pub fn decode(record: &[u8]) -> Result<Self> {
        let corrupt =
            |what: &str| Error::new(ErrorCode::Corrupt, format!("damaged log record: {what}"));
        let (kind, mut rest) =
            record.split_first().ok_or_else(|| corrupt("the record is empty"))?;
        let header = take_bytes(&mut rest)?;
        match *kind {
            EPOCH => {
                let EpochHeader { mark, pieces } =
                    postcard::from_bytes(header).map_err(|error| corrupt(&error.to_string()))?;
                let mut read = Vec::new();
                for (base, after, to, len) in pieces {
                    let len = usize::try_from(len).unwrap_or(usize::MAX);
                    let (body, tail) = rest
                        .split_at_checked(len)
                        .ok_or_else(|| corrupt("the record ends too early"))?;
                    rest = tail;
                    read.push(VbucketMutations {
                        body: Bytes::copy_from_slice(body),
                        base,
                        after,
                        to,
                    });
                }
                Ok(Self::Epoch(EpochBatch { mark, pieces: read, commits: Vec::new() }))
            }
            TRUNCATE => postcard::from_bytes(header)
                .map(|(mark, to)| Self::Truncate(mark, to))
                .map_err(|error| corrupt(&error.to_string())),
            other => Err(corrupt(&format!("unknown kind {other}"))),
        }
    }
}

/// Encodes the kind and the header, with capacity for `more` further bytes.
fn encode_header(kind: u8, header: &impl Serialize, more: usize) -> Result<Vec<u8>> {
    let header = postcard::to_stdvec(header).map_err(|error| Error::internal(error.to_string()))?;
    let mut out = Vec::with_capacity(header.len() + more + 11);
    out.push(kind);
    put_varint(&mut out, header.len() as u64);
    out.extend_from_slice(&header);
    Ok(out)
}
