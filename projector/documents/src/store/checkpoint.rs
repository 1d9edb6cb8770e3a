//! The checkpoint of a bucket.
//!
//! The newest commits of the record come last, and behind them the places of prepared transactions, whose changes the log has. Earlier
//! builds wrote a checkpoint without either, which is read as one that has none: its body, whose checksum is right, ends before them.

use proto::{Error, ErrorCode, Result};
use serde::ser::SerializeStruct as _;
use serde::{Serialize, Serializer};

use super::paired_file::{Contents, FileKind};
use crate::change_log::{LogState, PreparedPlaces, StoredCommits};
use crate::record::BucketRecord;
use crate::table::TableManifest;

/// The name and kind of a checkpoint's file.
pub const CHECKPOINT_FILE: (&str, FileKind) = ("checkpoint", FileKind::Checkpoint);

/// What a start need not replay.
#[derive(Clone, Debug)]
pub struct Checkpoint {
    /// The place in the change log, and the positions there.
    pub log: LogState,
    /// The record of the bucket there.
    pub record: BucketRecord,
    /// The fragments of the table. They have everything before the place, and may have more.
    pub table: TableManifest,
    /// The places of prepared transactions in the log. Of these a checkpoint that was read has no changes.
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
    use proto::model::commits::{Committed, TransactionEvent};
    use proto::model::ids::{BucketId, NodeId, TransactionId};

    use super::*;

    #[test]
    fn a_checkpoint_of_an_earlier_build_has_no_commits() {
        let info = BucketInfo::new(BucketId(1), "b", 1, SourceKind::Embedded, NodeId(1));
        let mut record = BucketRecord {
            info,
            branches: Vec::new(),
            ownership: Default::default(),
            given_up: BTreeMap::new(),
            commits: Default::default(),
        };
        let transaction = TransactionId(7);
        let committed = Committed { transaction, affected: 1, positions: Vec::new() };
        record.commits.add(&TransactionEvent::Committed(committed));
        let (log, table) = (LogState::new(1), TableManifest::new(1));
        let places = PreparedPlaces::default();
        let checkpoint = Checkpoint { log, record, table, places };
        let bytes = postcard::to_stdvec(&checkpoint).expect("encodes");
        let read = Checkpoint::decode(&bytes).expect("decodes");
        assert_eq!(read.record, checkpoint.record);
        let commits = &checkpoint.record.commits;
        let none = postcard::to_stdvec(&checkpoint.places).expect("encodes").len();
        let all = postcard::to_stdvec(commits).expect("encodes").len() + none;
        let earlier = &bytes[..bytes.len() - all];
        let read = Checkpoint::decode(earlier).expect("decodes");
        assert_eq!(read.record.commits, Default::default());
        assert_eq!(read.record.info, checkpoint.record.info);
        // Earlier builds had no places of prepared transactions, earlier ones no commits of producers, and still earlier ones no joint commits.
        let pushed = postcard::to_stdvec(commits.pushed()).expect("encodes").len();
        let joint = postcard::to_stdvec(commits.joint()).expect("encodes").len();
        let places_at = bytes.len() - none;
        let ends = [places_at, places_at - pushed, places_at - pushed - joint];
        for end in earlier.len() + 1..bytes.len() {
            let read = Checkpoint::decode(&bytes[..end]);
            assert_eq!(read.is_ok(), ends.contains(&end), "{end} of {} bytes", bytes.len());
        }
    }
}
