//! What the memory store writes into the commit log, and the collapsing of an epoch's mutations to the
//! last state of each document.

use bytes::Bytes;
use proto::cut::EpochMark;
use proto::ids::{Generation, IndexId};
use proto::index::IndexInfo;
use proto::mutation::{KeyVersions, KeyVersionsReader, KeyVersionsWriter};
use proto::{Error, Result};
use serde::{Deserialize, Serialize};

use super::back_index::FixedMap;
use super::{EpochBatch, Piece};

/// A record of the commit log.
#[derive(Debug, Serialize, Deserialize)]
pub enum Record {
    /// An epoch with the last state of each document that it changed (base zero).
    Epoch {
        /// The epoch.
        mark: EpochMark,
        /// Packed key-versions.
        body: Bytes,
    },
    /// Some documents of a build; they count when its `BuildEnd` follows.
    BuildPart {
        /// Parts before this one belong to an attempt that did not come to its end.
        first: bool,
        /// The index.
        index: IndexId,
        /// Its generation.
        generation: Generation,
        /// Packed key-versions.
        body: Bytes,
    },
    /// The slices of an index are built: they show the parts before, from this epoch on.
    BuildEnd {
        /// The index.
        info: Box<IndexInfo>,
        /// The epoch.
        mark: EpochMark,
    },
    /// An index is gone.
    Drop {
        /// The index.
        index: IndexId,
    },
}

impl Record {
    /// Its bytes.
    pub fn encode(&self) -> Result<Vec<u8>> {
        postcard::to_stdvec(self).map_err(|error| Error::internal(error.to_string()))
    }

    /// Reads it back.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        postcard::from_bytes(bytes)
            .map_err(|error| Error::new(proto::ErrorCode::Corrupt, error.to_string()))
    }
}

/// The mutations of an epoch, with only the last state of each document; seqnos absolute.
pub fn collapse(batch: &EpochBatch) -> Result<Bytes> {
    let mut last: FixedMap<&str, usize> = FixedMap::default();
    let mut states: Vec<(u64, KeyVersions<'_>)> = Vec::new();
    for Piece { body, base, after, to } in &batch.pieces {
        for versions in KeyVersionsReader::new(body) {
            let versions = versions?;
            let seqno = base.0.saturating_add(versions.seqno_minus_base);
            if seqno <= after.0 || seqno > to.0 {
                continue;
            }
            match last.get(versions.id) {
                Some(at) => states[*at] = (seqno, versions),
                None => {
                    last.insert(versions.id, states.len());
                    states.push((seqno, versions));
                }
            }
        }
    }
    let mut writer = KeyVersionsWriter::default();
    for (seqno, versions) in &states {
        write_state(&mut writer, *seqno, versions);
    }
    Ok(writer.finish())
}

fn write_state(writer: &mut KeyVersionsWriter, seqno: u64, versions: &KeyVersions<'_>) {
    writer.mutation(seqno, versions.kind, versions.id, versions.indexes().count());
    for keys in versions.indexes() {
        writer.index(keys.index, keys.generation, keys.entries);
        for entry in keys.entries() {
            writer.entry(entry.slice, entry.key, entry.include);
        }
    }
}
