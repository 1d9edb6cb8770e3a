//! Versioned data sets: buckets whose documents are loaded from files, as complete versions.
//!
//! A *version* is an immutable map of ids to documents, read from files. It has the partitions of
//! its data set; a document belongs to the partition
//! [`vbucket_of`](crate::model::ids::vbucket_of) its id. Each partition is loaded by several
//! projectors, its *holders*.
//!
//! - **A version is a separate bucket**, with a vbucket for each partition. Its name consists of
//!   the names of the data set and the version, `b@v42`, and cannot be used in statements: the
//!   name of the data set refers to the current version. So a version has streams, epochs and
//!   builds like any other bucket.
//! - **LOAD** determines the projectors that take part. Each of them computes its partitions
//!   ([`holders_of`]), reads the files, and *advertises* each partition when it has stored it
//!   durably. The computation only avoids communication: afterwards, only the advertised holders
//!   count. A projector that joins later has no partition of the version.
//! - All projectors read all rows of the files, and report a summary of what they have read
//!   ([`FilesRead`]). If two summaries differ before the version is current, the version fails.
//! - A version is *complete* when each partition has a holder. It has two epochs: the empty first
//!   epoch of each bucket, and one that covers all partitions, which is published with the last
//!   advertisement. The vbuuid of a partition and the seqnos of its documents are determined by
//!   the version and its files, so all holders of a partition have equal data, and any of them
//!   may own its vbucket.
//! - Then each index of the data set gets a generation over the version. The version becomes
//!   current, and its generations serve, by one command. This happens when all generations can be
//!   read, and each projector that is neither silent nor in trouble has its partitions.
//! - Scans, transactions and tokens that began on the old version end on it. The old version is
//!   *kept* until it has had no reader for the data set's idle time; then its bucket and its
//!   generations are dropped. A version that was never read is dropped within seconds.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::model::ids::{BucketId, NodeId, Seqno, VbucketId, Vbuuid};

/// Default number of partitions of a data set.
pub const PARTITIONS_DEFAULT: u16 = 8;
/// Maximum number of partitions of a data set.
pub const PARTITIONS_MAX: u16 = 256;
/// Maximum number of holders of a partition.
pub const REPLICATION_MAX: u16 = 7;
/// Default time for which an old version is kept after the last request for it, in ms.
pub const IDLE_MS_DEFAULT: u64 = 10 * 60 * 1_000;
/// Maximum of the time for which an old version is kept, in ms.
pub const IDLE_MS_MAX: u64 = 7 * 24 * 60 * 60 * 1_000;
/// Maximum number of versions that a data set has at a time: the current one, one that is being
/// loaded, and older ones.
pub const VERSIONS_MAX: usize = 4;
/// The length limit of a version's name, in bytes.
pub const VERSION_NAME_BYTES_MAX: usize = 128;
/// The length limit of the pattern of a version's files, in bytes.
pub const PATTERN_BYTES_MAX: usize = 1_024;

/// A data set: its settings and its versions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataSet {
    /// The number of partitions of each version.
    pub partitions: u16,
    /// The number of holders of each partition; fewer if there are fewer projectors.
    pub replication: u16,
    /// The time for which an old version is kept after the last request for it, in ms.
    pub idle_ms: u64,
    /// The number of the newest version whose load has ever begun. Numbers grow and are not
    /// reused.
    pub newest: u64,
    /// The versions, by number. At most one is loading, and at most one is current.
    pub versions: BTreeMap<u64, Version>,
    /// The last version whose load has failed; removed when another load begins.
    pub failed: Option<FailedVersion>,
}

/// A version that could not be loaded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedVersion {
    /// The number of the version.
    pub number: u64,
    /// The name of the version.
    pub name: String,
    /// The reason: the file, the line in it, and the error.
    pub why: String,
}

/// A version of a data set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Version {
    /// The name that the user gave to the version.
    pub name: String,
    /// The bucket of the version.
    pub bucket: BucketId,
    /// The files from which the version is loaded.
    pub files: Files,
    /// The projectors that load the version, ascending. They do not change after the load has
    /// begun.
    pub nodes: Vec<NodeId>,
    /// The stage of the version's life.
    pub stage: VersionStage,
    /// The partitions of the version, in order.
    pub partitions: Vec<Partition>,
}

/// The stages of a version's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum VersionStage {
    /// Projectors read the version's files, and then indexers build its generations.
    Loading,
    /// The name of the data set refers to this version.
    Current,
    /// The version was current, and is still read by scans, transactions and tokens that began on
    /// it.
    Kept,
}

/// A partition of a version.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Partition {
    /// The projectors that store the partition, ascending.
    pub holders: Vec<NodeId>,
    /// The content of the partition, once a projector has loaded it.
    pub content: Option<PartitionContent>,
}

/// A summary of the contents of a partition, equal at all holders.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartitionContent {
    /// The number of rows in the files. The row numbers of a partition are its seqnos, from 1 on.
    pub rows: u64,
    /// The number of documents. If an id occurs in several rows, the last row is its document.
    pub documents: u64,
    /// The total length of ids and documents, in bytes.
    pub bytes: u64,
    /// A digest of all documents with their ids and seqnos, independent of their order.
    pub digest: u64,
}

impl PartitionContent {
    /// Adds a document to the summary.
    pub fn add(&mut self, id: &str, seqno: Seqno, document: &[u8]) {
        self.documents += 1;
        self.bytes += (id.len() + document.len()) as u64;
        let of_id = xxh3_64_with_seed(id.as_bytes(), seqno.0);
        self.digest = self.digest.wrapping_add(xxh3_64_with_seed(document, of_id));
    }

    /// Adds the summary of other documents of the partition, except its number of rows.
    pub fn add_all(&mut self, other: &Self) {
        self.documents += other.documents;
        self.bytes += other.bytes;
        self.digest = self.digest.wrapping_add(other.digest);
    }
}

/// A summary of all rows that one projector has read from the files of a version, including rows
/// of partitions that it does not store. Comparing the summaries of all projectors detects
/// differing files, even if each partition has one holder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilesRead {
    /// The number of files.
    pub files: u32,
    /// The number of rows.
    pub rows: u64,
    /// A digest of all rows, in their order: the polynomial of `DIGEST_BASE` whose coefficients
    /// are the hashes of the rows, modulo 2^64. Parts of the files can be read in parallel,
    /// because the digest of all rows can be computed from the digests of the parts.
    pub digest: u64,
}

/// The base of the digest of rows: an odd number, so that every row affects the digest.
const DIGEST_BASE: u64 = 0x9e37_79b9_7f4a_7c15;

impl FilesRead {
    /// Adds a row to the summary, by the hash of its id ([`super::ids::hash_id`]).
    pub fn add(&mut self, id_hash: u64, document: &[u8]) {
        self.rows += 1;
        let of_row = xxh3_64_with_seed(document, id_hash);
        self.digest = self.digest.wrapping_mul(DIGEST_BASE).wrapping_add(of_row);
    }

    /// Adds the rows of the next file, or of the next piece of a file, and their digest. Does not
    /// add the number of files.
    pub fn add_rows(&mut self, next: &Self) {
        self.rows += next.rows;
        let shifted = self.digest.wrapping_mul(power(DIGEST_BASE, next.rows));
        self.digest = shifted.wrapping_add(next.digest);
    }

    /// Returns true if both summaries are of equal rows. Equal rows in different files give equal
    /// versions.
    pub fn has_same_rows(&self, other: &Self) -> bool {
        (self.rows, self.digest) == (other.rows, other.digest)
    }
}

/// Returns `base` to the power of `exponent`, modulo 2^64.
fn power(base: u64, mut exponent: u64) -> u64 {
    let (mut result, mut square) = (1_u64, base);
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = result.wrapping_mul(square);
        }
        square = square.wrapping_mul(square);
        exponent >>= 1;
    }
    result
}

/// The description of a version's files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Files {
    /// The path of the files, relative to the projectors' directory of files. Its last component
    /// may contain one `*`. The ending determines the format.
    pub pattern: String,
    /// The field or column that contains the document's id.
    pub id: String,
}

impl DataSet {
    /// Creates a data set without versions.
    pub fn new(partitions: u16, replication: u16, idle_ms: u64) -> Self {
        let (newest, versions, failed) = (0, BTreeMap::new(), None);
        Self { partitions, replication, idle_ms, newest, versions, failed }
    }

    /// Returns the current version, with its number; `None` before any version is current.
    pub fn current(&self) -> Option<(u64, &Version)> {
        self.in_stage(VersionStage::Current)
    }

    /// Returns the version that is being loaded, with its number; `None` if there is none.
    pub fn loading(&self) -> Option<(u64, &Version)> {
        self.in_stage(VersionStage::Loading)
    }

    fn in_stage(&self, stage: VersionStage) -> Option<(u64, &Version)> {
        let mut versions = self.versions.iter().map(|(number, version)| (*number, version));
        versions.find(|(_, version)| version.stage == stage)
    }

    /// Returns the version whose bucket this is, with its number.
    pub fn version_of(&self, bucket: BucketId) -> Option<(u64, &Version)> {
        let mut versions = self.versions.iter().map(|(number, version)| (*number, version));
        versions.find(|(_, version)| version.bucket == bucket)
    }
}

impl Version {
    /// Returns true if each partition was stored by a holder, even if none has it any more.
    pub fn is_complete(&self) -> bool {
        self.partitions.iter().all(|partition| partition.content.is_some())
    }

    /// Returns the partitions that were loaded and that no projector has any more, ascending.
    pub fn lost_partitions(&self) -> impl Iterator<Item = VbucketId> {
        let all = (0..).map(VbucketId).zip(&self.partitions);
        let is_lost =
            |partition: &Partition| partition.holders.is_empty() && partition.content.is_some();
        all.filter(move |(_, partition)| is_lost(partition)).map(|(partition, _)| partition)
    }

    /// Returns the number of documents in the loaded partitions.
    pub fn documents(&self) -> u64 {
        self.contents().map(|content| content.documents).sum()
    }

    /// Returns the number of rows in the loaded partitions that a later row with the same id
    /// replaces.
    pub fn duplicates(&self) -> u64 {
        self.contents().map(|content| content.rows.saturating_sub(content.documents)).sum()
    }

    /// Returns the total length of ids and documents in the loaded partitions, in bytes.
    pub fn bytes(&self) -> u64 {
        self.contents().map(|content| content.bytes).sum()
    }

    fn contents(&self) -> impl Iterator<Item = &PartitionContent> {
        self.partitions.iter().filter_map(|partition| partition.content.as_ref())
    }

    /// Returns the partitions that a projector loads, ascending.
    pub fn partitions_of(&self, node: NodeId, replication: u16) -> Vec<VbucketId> {
        let holders = holders_of(self.partitions.len() as u16, replication, &self.nodes);
        let mine = (0..).map(VbucketId).zip(holders);
        mine.filter(|(_, holders)| holders.contains(&node))
            .map(|(partition, _)| partition)
            .collect()
    }

    /// Returns the projectors that hold a partition.
    pub fn holders(&self, partition: VbucketId) -> &[NodeId] {
        self.partitions.get(usize::from(partition.0)).map_or(&[], |partition| &partition.holders)
    }
}

/// Returns the branch (vbuuid) of all documents of a partition, which is equal on all holders.
pub fn branch_of_partition(bucket: BucketId, partition: VbucketId) -> Vbuuid {
    Vbuuid(xxh3_64_with_seed(&partition.0.to_le_bytes(), bucket.0).max(1))
}

/// Returns the name of the bucket of a version.
pub fn version_bucket_name(data_set: &str, version: &str) -> String {
    format!("{data_set}@{version}")
}

/// Returns the projectors that load each partition, at most `replication` for each. The places of
/// partition 0 are assigned to the projectors of `nodes` in turn, then those of partition 1, and
/// so on. No projector gets a partition twice; with fewer projectors than `replication`, each
/// gets all partitions.
///
/// `nodes` must be distinct and ascending.
pub fn holders_of(partitions: u16, replication: u16, nodes: &[NodeId]) -> Vec<Vec<NodeId>> {
    let copies = usize::from(replication).min(nodes.len());
    let mut turns = nodes.iter().copied().cycle();
    (0..partitions).map(|_| turns.by_ref().take(copies).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ids::hash_id;

    fn version(partitions: u16, nodes: &[u64]) -> Version {
        Version {
            name: "v1".into(),
            bucket: BucketId(7),
            files: Files { pattern: "x.csv".into(), id: "id".into() },
            nodes: nodes.iter().copied().map(NodeId).collect(),
            stage: VersionStage::Loading,
            partitions: vec![Partition::default(); usize::from(partitions)],
        }
    }

    #[test]
    fn partitions_are_assigned_as_the_table_of_the_design_says() {
        let version = version(5, &[0, 1, 2, 3, 4]);
        let of = |node| version.partitions_of(NodeId(node), 3).into_iter().map(|p| p.0).collect();
        let table: Vec<Vec<u16>> = (0..5).map(of).collect();
        assert_eq!(table, [[0, 1, 3], [0, 2, 3], [0, 2, 4], [1, 2, 4], [1, 3, 4]]);
    }

    #[test]
    fn every_partition_has_as_many_distinct_holders_as_there_can_be() {
        for nodes in 1..=6_u64 {
            let ids: Vec<NodeId> = (1..=nodes).map(NodeId).collect();
            for (partitions, replication) in [(1, 1), (5, 3), (8, 2), (7, 7), (256, 5)] {
                let holders = holders_of(partitions, replication, &ids);
                assert_eq!(holders.len(), usize::from(partitions));
                let wanted = usize::from(replication).min(ids.len());
                let mut loads = BTreeMap::<NodeId, usize>::new();
                for holders in &holders {
                    let distinct: std::collections::BTreeSet<_> = holders.iter().collect();
                    assert_eq!((holders.len(), distinct.len()), (wanted, wanted));
                    holders.iter().for_each(|node| *loads.entry(*node).or_default() += 1);
                }
                let (least, most) = (loads.values().min(), loads.values().max());
                let is_full = usize::from(partitions) * wanted >= ids.len();
                assert!(!is_full || most.unwrap() - least.unwrap() <= 1, "{loads:?}");
            }
        }
    }

    #[test]
    fn rows_are_the_same_if_their_ids_documents_and_order_are() {
        let read = |rows: &[(&str, &str)], files| {
            let mut read = FilesRead { files, ..FilesRead::default() };
            rows.iter().for_each(|(id, document)| read.add(hash_id(id), document.as_bytes()));
            read
        };
        let one = read(&[("a", "1"), ("b", "2")], 1);
        let all = [("a", "1"), ("b", "2"), ("c", "3"), ("a", "4"), ("d", "1")];
        for cut in 0..=all.len() {
            let mut parts = read(&all[..cut], 1);
            parts.add_rows(&read(&all[cut..], 1));
            assert_eq!(parts, read(&all, 1), "read in two parts");
        }
        assert!(one.has_same_rows(&read(&[("a", "1"), ("b", "2")], 2)));
        for other in [
            &[("b", "2"), ("a", "1")][..],
            &[("a", "1")],
            &[("a", "1"), ("b", "3")],
            &[("a", "2"), ("b", "1")],
            &[("a", "1"), ("c", "2")],
        ] {
            assert!(!one.has_same_rows(&read(other, 1)), "{other:?}");
        }
    }

    #[test]
    fn a_version_is_complete_when_each_partition_is_known() {
        let mut version = version(2, &[1]);
        let content = PartitionContent { rows: 5, documents: 4, bytes: 100, digest: 1 };
        version.partitions[0] = Partition { holders: vec![NodeId(1)], content: Some(content) };
        assert!(!version.is_complete());
        version.partitions[1] = version.partitions[0].clone();
        assert!(version.is_complete());
        assert_eq!((version.documents(), version.duplicates(), version.bytes()), (8, 2, 200));
    }
}
