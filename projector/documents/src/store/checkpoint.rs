//! The checkpoint of a bucket: its durable state, from which a start replays the log.
//!
//! In the file, the fields are followed by the record's newest commits, and then by the places in
//! the log at which the changes of prepared transactions are.

use proto::{Error, ErrorCode, Result};
use serde::ser::SerializeStruct as _;
use serde::{Serialize, Serializer};

use super::paired_file::{Contents, FileKind};
use crate::change_log::{LogState, PreparedPlaces, StoredCommits};
use crate::record::BucketRecord;
use crate::table::TableManifest;

/// The name and the kind of the file with a checkpoint.
pub const CHECKPOINT_FILE: (&str, FileKind) = ("checkpoint", FileKind::Checkpoint);

/// The durable state of a bucket as of an LSN, from which a start replays the log.
#[derive(Clone, Debug)]
pub struct Checkpoint {
    /// The LSN up to which the checkpoint covers the change log, and the positions of the
    /// vbuckets there.
    pub log: LogState,
    /// The record of the bucket at that LSN.
    pub record: BucketRecord,
    /// The fragments of the table. They contain all changes before the LSN, and may contain later
    /// ones.
    pub table: TableManifest,
    /// The places in the log of the changes of prepared transactions. When a checkpoint is read,
    /// its record lacks these changes.
    pub places: PreparedPlaces,
}

const FIELDS: [&str; 5] = ["log", "record", "table", "commits", "places"];

impl Serialize for Checkpoint {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("Checkpoint", FIELDS.len())?;
        out.serialize_field(FIELDS[0], &self.log)?;
        out.serialize_field(FIELDS[1], &self.record)?;
        out.serialize_field(FIELDS[2], &self.table)?;
        let StoredCommits { commits, places } = self.places.stored(&self.record.commits);
        out.serialize_field(FIELDS[3], &commits)?;
        out.serialize_field(FIELDS[4], &places)?;
        out.end()
    }
}

impl Contents for Checkpoint {
    fn decode(body: &[u8]) -> Result<Self> {
        let ((log, mut record, table), rest): ((LogState, BucketRecord, TableManifest), _) =
            postcard::take_from_bytes(body).map_err(|error| {
                Error::new(ErrorCode::Corrupt, format!("the body cannot be decoded: {error}"))
            })?;
        let StoredCommits { commits, places } = StoredCommits::decode(rest)?;
        record.commits = commits;
        Ok(Self { log, record, table, places })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proto::model::bucket::{BucketInfo, SourceKind};
    use proto::model::commits::{CommittedTransaction, TransactionEvent};
    use proto::model::ids::{BucketId, NodeId, TransactionId};

    use super::*;

    #[test]
    fn a_checkpoint_has_the_newest_commits_and_one_that_is_cut_is_damage() {
        let info = BucketInfo::new(BucketId(1), "b", 1, SourceKind::Embedded, NodeId(1));
        let mut record = BucketRecord {
            info,
            branches: Vec::new(),
            ownership: Default::default(),
            given_up: BTreeMap::new(),
            commits: Default::default(),
        };
        let transaction = TransactionId(7);
        let committed = CommittedTransaction { transaction, affected: 1, positions: Vec::new() };
        record.commits.apply_event(&TransactionEvent::Committed(committed));
        let (log, table) = (LogState::new(1), TableManifest::new(1));
        let places = PreparedPlaces::default();
        let checkpoint = Checkpoint { log, record, table, places };
        let bytes = postcard::to_stdvec(&checkpoint).expect("encodes");
        let read = Checkpoint::decode(&bytes).expect("decodes");
        assert_eq!(read.record, checkpoint.record);
        for end in 0..bytes.len() {
            let cut = Checkpoint::decode(&bytes[..end]).expect_err("a part is missing");
            assert_eq!(cut.code, ErrorCode::Corrupt, "{end} of {} bytes", bytes.len());
        }
    }
}
