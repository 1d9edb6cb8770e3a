//! The last change of each document in an epoch, and the documents that concern each index. Of
//! several mutations of one document, only the last one within the epoch counts.
//!
//! One pass over the changes gives each index the list of its documents. So the work for an epoch
//! is proportional to its key-versions; a search in each document for each index would be
//! proportional to documents × indexes. A list stores the position of each change in 8 bytes. A
//! change takes at least 3 bytes of the epoch, and 8 with an entry, so the size of an epoch bounds
//! the lists.

use std::collections::BTreeMap;

use hashbrown::HashTable;
use proto::model::ids::{LocalIndexId, Seqno, hash_id};
use proto::rpc::mutation::{IndexKeys, KeyVersions, KeyVersionsReader};
use proto::{Error, Result};

use crate::batch::{EpochBatch, VbucketMutations};

/// Typical minimum size of a packed mutation in bytes; almost all mutations are larger.
const MUTATION_BYTES: usize = 24;

/// The last change of a document in an epoch.
#[derive(Clone, Copy, Debug)]
pub struct Document<'a> {
    /// Hash of the document's id.
    pub hash: u64,
    /// The distance in epochs from the batch's epoch to the epoch of this change. Zero except in
    /// open transactions, where the number of each change serves as its epoch.
    pub later: u32,
    /// The document's entries in all indexes from this change on.
    pub versions: KeyVersions<'a>,
}

/// Returns the last change of each document of an epoch, in the order of the documents' first
/// mutations.
pub fn last_changes(batch: &EpochBatch) -> Result<Vec<Document<'_>>> {
    last_changes_where(batch, |_, _| Ok(true))
}

/// Returns the last change of each document, like [`documents`], but ignores the mutations for
/// which `counts` returns false.
pub fn last_changes_where<'a>(
    batch: &'a EpochBatch,
    mut counts: impl FnMut(Seqno, &KeyVersions<'a>) -> Result<bool>,
) -> Result<Vec<Document<'a>>> {
    let mutations = |piece: &VbucketMutations| {
        let most = piece.body.len() / MUTATION_BYTES;
        piece.to.0.saturating_sub(piece.after.0).min(most as u64) as usize
    };
    let count = batch.pieces.iter().map(mutations).sum();
    let mut documents: Vec<Document<'_>> = Vec::with_capacity(count);
    let mut places: HashTable<u32> = HashTable::with_capacity(count);
    for VbucketMutations { body, base, after, to } in &batch.pieces {
        for versions in KeyVersionsReader::new(body) {
            let versions = versions?;
            let seqno = base.0.saturating_add(versions.seqno_minus_base);
            if seqno <= after.0 || seqno > to.0 || !counts(Seqno(seqno), &versions)? {
                continue;
            }
            let hash = hash_id(versions.id);
            let same = |at: &u32| documents[*at as usize].versions.id == versions.id;
            match places.find(hash, same) {
                Some(at) => documents[*at as usize].versions = versions,
                None => {
                    let at = documents.len() as u32;
                    documents.push(Document { hash, later: 0, versions });
                    let documents = &documents;
                    places.insert_unique(hash, at, |at| documents[*at as usize].hash);
                }
            }
        }
    }
    Ok(documents)
}

/// The documents of an epoch, grouped by the indexes that they concern.
#[derive(Debug)]
pub struct EpochDocuments<'a> {
    documents: &'a [Document<'a>],
    by_index: BTreeMap<LocalIndexId, Vec<StatePlace>>,
}

/// The position of a document's entries in one index.
#[derive(Clone, Copy, Debug)]
struct StatePlace {
    /// Number of the document in the epoch.
    document: u32,
    /// Position of the index in the document's key-versions.
    state: u32,
}

impl<'a> EpochDocuments<'a> {
    /// Groups the documents by index and keeps their order.
    pub fn by_index(documents: &'a [Document<'a>]) -> Result<Self> {
        let mut by_index = BTreeMap::<_, Vec<StatePlace>>::new();
        for (n, document) in documents.iter().enumerate() {
            for (place, keys) in document.versions.indexes_with_offsets() {
                let place = StatePlace { document: narrow(n)?, state: narrow(place)? };
                by_index.entry(keys.index).or_default().push(place);
            }
        }
        Ok(Self { documents, by_index })
    }

    /// Returns the number of documents that concern an index.
    pub fn count_of_index(&self, index: LocalIndexId) -> usize {
        self.by_index.get(&index).map_or(0, Vec::len)
    }

    /// Returns the documents that concern an index, each with its entries in this index.
    pub fn of_index(
        &self,
        index: LocalIndexId,
    ) -> impl Iterator<Item = (&'a Document<'a>, IndexKeys<'a>)> + use<'_, 'a> {
        let documents = self.documents;
        let places = self.by_index.get(&index).into_iter().flatten();
        places.filter_map(move |place| {
            let document = documents.get(place.document as usize)?;
            Some((document, document.versions.entries_at(place.state as usize)?))
        })
    }
}

/// Converts an array position to 4 bytes. Messages, and so epochs and mutations, are far shorter
/// than 4 GiB.
fn narrow(place: usize) -> Result<u32> {
    u32::try_from(place).map_err(|_| Error::internal("an epoch is longer than 4 GiB"))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::collection::{btree_map, vec};
    use proptest::prelude::*;
    use proto::model::cut::{Cut, EpochMark};
    use proto::model::ids::{BucketId, Epoch, Generation, IndexId, Seqno, SliceNo};
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
            VbucketMutations {
                body: writer.finish(),
                base: Seqno(10),
                after: Seqno(after),
                to: Seqno(to),
            }
        };
        let first = piece(&[(1, "old"), (2, "a"), (3, "b"), (4, "a"), (5, "late")], 11, 14);
        EpochBatch { mark, pieces: vec![first, piece(&[(1, "c")], 0, 99)], commits: Vec::new() }
    }

    #[test]
    fn the_last_change_in_the_epoch_counts() {
        let batch = batch();
        let documents = last_changes(&batch).unwrap();
        let found: Vec<_> =
            documents.iter().map(|d| (d.versions.id, d.versions.seqno_minus_base)).collect();
        assert_eq!(found, [("a", 4), ("b", 3), ("c", 1)]);
    }

    /// A batch whose documents have random states in random indexes.
    fn batch_of(mutations: &[Vec<(u8, u8)>]) -> EpochBatch {
        let mut writer = KeyVersionsWriter::default();
        for (seqno, states) in (1..).zip(mutations) {
            // Few ids, so that documents change several times.
            writer.mutation(seqno, MutationKind::Upsert, &format!("{}", seqno % 7), states.len());
            for (index, entries) in states {
                writer.index(local(*index), usize::from(*entries));
                for entry in 0..*entries {
                    writer.entry(SliceNo(entry.into()), &seqno.to_be_bytes(), &[entry]);
                }
            }
        }
        let to = Seqno(mutations.len() as u64);
        let piece = VbucketMutations { body: writer.finish(), base: Seqno(0), after: Seqno(0), to };
        EpochBatch { pieces: vec![piece], ..batch() }
    }

    /// The local id of one of six generations.
    fn local(n: u8) -> LocalIndexId {
        let generation = Generation(u32::from(n % 2));
        LocalIndexId { index: IndexId(u64::from(n / 2)), generation }
    }

    proptest! {
        /// The lists of one pass equal those of a search in each document.
        #[test]
        fn each_index_has_the_documents_that_concern_it(
            mutations in vec(btree_map(0..5u8, 0..4u8, 0..5), 0..40),
        ) {
            let mutations: Vec<Vec<_>> =
                mutations.into_iter().map(|states| states.into_iter().collect()).collect();
            let batch = batch_of(&mutations);
            let documents = last_changes(&batch).unwrap();
            let by_index = EpochDocuments::by_index(&documents).unwrap();
            for index in (0..6).map(local) {
                let state = |document: &Document<'_>, keys: IndexKeys<'_>| {
                    let entries: Vec<_> =
                        keys.entries().map(|e| (e.slice, e.key.to_vec(), e.include.to_vec())).collect();
                    (document.versions.id.to_owned(), keys.index, entries)
                };
                let found: Vec<_> =
                    by_index.of_index(index).map(|(document, keys)| state(document, keys)).collect();
                let expected: Vec<_> = documents.iter().filter_map(|document| {
                    let keys = document.versions.indexes().find(|keys| keys.index == index)?;
                    Some(state(document, keys))
                }).collect();
                prop_assert_eq!(by_index.count_of_index(index), expected.len());
                prop_assert_eq!(found, expected);
            }
        }
    }

    #[test]
    fn records_are_decoded_or_damaged() {
        let bytes = Record::Epoch(batch()).encode().unwrap();
        let Record::Epoch(read) = Record::decode(&bytes).unwrap() else { panic!("an epoch") };
        assert_eq!(read.mark, batch().mark);
        assert_eq!(last_changes(&read).unwrap().len(), 3);
        for cut in 0..bytes.len() {
            assert!(Record::decode(&bytes[..cut]).is_err(), "cut at {cut}");
        }
        let bytes = Record::Truncate(batch().mark, Epoch(9)).encode().unwrap();
        assert!(
            matches!(Record::decode(&bytes), Ok(Record::Truncate(mark, Epoch(9))) if mark.epoch.0 == 5)
        );
    }
}
