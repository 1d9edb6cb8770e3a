//! The last states of the documents of an epoch. Of several mutations of one document, only the
//! last one within the epoch counts.

use hashbrown::HashTable;
use proto::Result;
use proto::model::ids::hash_id;
use proto::rpc::mutation::{KeyVersions, KeyVersionsReader};

use crate::batch::{EpochBatch, Piece};

/// Almost all packed mutations are longer.
const MUTATION_BYTES: usize = 24;

/// The last state of a document in an epoch.
#[derive(Clone, Copy, Debug)]
pub struct Document<'a> {
    /// Hash of the document's id.
    pub hash: u64,
    /// Key-versions of the document.
    pub versions: KeyVersions<'a>,
}

/// Returns the last state of each document of an epoch, in the order of the documents' first
/// mutations.
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proto::model::cut::{Cut, EpochMark};
    use proto::model::ids::{BucketId, Epoch, Seqno};
    use proto::rpc::mutation::{KeyVersionsWriter, MutationKind};

    use super::*;
    use crate::log_record::Record;

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
