//! The identifiers of the cluster's objects. Each is a newtype, so that a seqno is never confused
//! with an epoch, and is ordered, so that it can be a key of an ordered map.

use std::fmt;
use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

id!(/// A process of the cluster, whatever its roles: a coordinator member, a projector, an indexer.
    NodeId(u64));
id!(/// A bucket; numbers are never used twice, so a bucket that is dropped and made again has a new one.
    BucketId(u64));
id!(/// An index definition; numbers are never used twice.
    IndexId(u64));
id!(/// One of the V ordered change streams of a bucket.
    VbucketId(u16));
id!(/// The branch of a vbucket's history that a mutation was made on. Zero is no branch.
    Vbuuid(u64));
id!(/// A mutation's position in its vbucket, counted from 1. Zero is "nothing yet".
    Seqno(u64));
id!(/// The number of a stability timestamp, counted per bucket; it only grows and is never used twice.
    Epoch(u64));
id!(/// A slice of an index: the unit that is stored and moved.
    SliceNo(u16));
id!(/// One complete set of slices built for one definition of an index.
    Generation(u32));
id!(/// The number of one state of an index's topology in the replicated topology history.
    TopologyNo(u64));
id!(/// One move of one slice; numbers are never used twice.
    MoveId(u64));
id!(/// A transaction: a random number that its session has drawn. It names the transaction at every node.
    TransactionId(u64));
id!(/// A transaction of the producer of a pushed bucket: the producer's own number, above zero, which it uses once in that bucket.
    ProducerTransactionId(u64));
id!(/// A place in a transaction: the number of its changes of documents and of its rollbacks to savepoints so far. Places only grow.
    TransactionPlace(u64));
id!(/// A user; numbers are never used twice, so a user that is dropped and made again has a new one.
    UserId(u64));
id!(/// A token of a user; numbers are never used twice.
    TokenId(u64));

/// The number of an index with one of its generations. Slices, files and messages belong to one
/// generation, and several generations of one index can exist at a time.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct LocalIndexId {
    /// The index that the generation belongs to.
    pub index: IndexId,
    /// The generation of the index.
    pub generation: Generation,
}

impl LocalIndexId {
    /// Returns the range of all generations of an index.
    pub fn all_of(index: IndexId) -> RangeInclusive<Self> {
        let at = |generation| Self { index, generation: Generation(generation) };
        at(0)..=at(u32::MAX)
    }

    /// Returns the id of a slice of this generation.
    pub const fn slice(self, slice: SliceNo) -> SliceId {
        SliceId { index: self.index, generation: self.generation, slice }
    }
}

impl fmt::Display for LocalIndexId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.index, self.generation)
    }
}

/// The id of a slice: its index, the generation of that index, and the slice's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SliceId {
    /// The index that the slice belongs to.
    pub index: IndexId,
    /// The generation of the index.
    pub generation: Generation,
    /// The slice's number in that generation.
    pub slice: SliceNo,
}

impl SliceId {
    /// Returns the generation that the slice belongs to.
    pub fn local_index(self) -> LocalIndexId {
        LocalIndexId { index: self.index, generation: self.generation }
    }
}

impl fmt::Display for SliceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.local_index(), self.slice)
    }
}

/// Returns the hash of a document id: XXH3, 64 bits, seed 0, as users can compute it. The hash
/// determines the vbucket, `hash(id) mod` the number of vbuckets. In an index that is partitioned
/// by id it also determines the slice, `(hash(id) >> 32) mod` the number of slices, from other
/// bits, so that the two are independent.
pub fn hash_id(id: &str) -> u64 {
    xxhash_rust::xxh3::xxh3_64(id.as_bytes())
}

/// Returns the vbucket of a document id in a bucket with this number of vbuckets.
pub fn vbucket_of(id: &str, vbuckets: u16) -> VbucketId {
    VbucketId((hash_id(id) % u64::from(vbuckets.max(1))) as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generation_and_its_slices_are_named_by_index_and_generation() {
        let local = LocalIndexId { index: IndexId(7), generation: Generation(1) };
        assert_eq!(local.to_string(), "7.1");
        assert_eq!(local.slice(SliceNo(3)).to_string(), "7.1/3");
        assert_eq!(local.slice(SliceNo(3)).local_index(), local);
    }

    /// Producers assign documents to vbuckets by this hash, so it must never change. The expected
    /// values are from the C library of xxHash.
    #[test]
    fn the_hash_of_an_id_is_the_published_one() {
        let long = "x".repeat(250);
        for (id, hash, vbucket) in [
            ("a", 0xe6c6_32b6_1e96_4e1f, 31),
            ("abc", 0x78af_5f94_892f_3950, 16),
            ("order-000042", 0xab4b_0cb9_a112_6f2a, 42),
            (&long, 0xd915_419f_e826_136d, 45),
        ] {
            assert_eq!((hash_id(id), vbucket_of(id, 64)), (hash, VbucketId(vbucket)), "{id}");
        }
    }
}
