//! The buckets of an open transaction. For each bucket, they contain the epoch that the
//! transaction reads and its changes; all epochs belong to one moment.

use std::collections::BTreeMap;
use std::sync::Arc;

use proto::model::bucket::BucketInfo;
use proto::model::catalog::Catalog;
use proto::model::ids::{BucketId, Epoch, TransactionPlace};
use proto::model::index::{IndexInfo, IndexState};
use proto::{Error, ErrorCode, Result};

use super::commit::Part;
use crate::access::{Access, BucketTransaction, EpochPin, TransactionView};

/// The maximum number of buckets that a transaction changes.
const BUCKETS_MAX: usize = 64;

/// Returns the generation that a transaction reads of an index that was created after its first
/// read. If the transaction reads another version of the data set, this is the generation over
/// that version; an error if there is none.
fn generation_of_new_index(
    began: &Catalog,
    shown: &Arc<IndexInfo>,
    now: &Catalog,
) -> Result<Arc<IndexInfo>> {
    let read = began.current_bucket_of(now.user_bucket(shown.bucket));
    if read == shown.bucket || !began.buckets.contains_key(&read) {
        return Ok(Arc::clone(shown));
    }
    let mut older = now.generations.values();
    let is_same = |older: &&Arc<IndexInfo>| {
        older.id == shown.id && older.bucket == read && older.state.is_readable()
    };
    older.find(is_same).cloned().ok_or_else(|| {
        let name = &shown.spec.name;
        let what = format!(
            "index \"{name}\" has no entries of the version of its bucket in which the transaction began"
        );
        Error::new(ErrorCode::SnapshotTooOld, what).with_hint("begin the transaction again")
    })
}

/// The time limit of a transaction's wait for its epoch, in milliseconds.
const EPOCH_WAIT_MS: u64 = 10_000;

/// The buckets that a transaction reads or changes.
#[derive(Default)]
pub struct TransactionBuckets {
    /// The leases on the epochs that the transaction reads.
    pins: BTreeMap<BucketId, Box<dyn EpochPin>>,
    /// The transaction's changes in each bucket that it has changed.
    changes: BTreeMap<BucketId, Arc<dyn BucketTransaction>>,
    /// The catalog at the first read. The transaction reads the index generations in it until its
    /// end.
    catalog: Option<Arc<Catalog>>,
}

impl TransactionBuckets {
    /// Returns the buckets of a transaction that has begun its changes in one bucket.
    pub fn begun(bucket: BucketId, changes: Arc<dyn BucketTransaction>) -> Self {
        Self { changes: BTreeMap::from([(bucket, changes)]), ..Self::default() }
    }

    /// Returns true after the first read, which fixes the moment of all epochs.
    pub fn has_moment(&self) -> bool {
        !self.pins.is_empty()
    }

    /// Returns the epoch that the transaction reads in a bucket; `None` before it reads there.
    pub fn snapshot(&self, bucket: BucketId) -> Option<Epoch> {
        self.pins.get(&bucket).map(|pin| pin.epoch())
    }

    /// Stores the lease of the first read. This fixes the moment of all epochs and the
    /// generations of indexes.
    pub fn fix_moment(&mut self, bucket: BucketId, pin: Box<dyn EpochPin>) {
        self.catalog = Some(pin.catalog());
        self.pins.insert(bucket, pin);
    }

    /// Undoes [`Self::fix_moment`]. This is necessary if another version of the data set has become
    /// current, so that the read must be planned again.
    pub fn unfix_moment(&mut self) {
        self.catalog = None;
        self.pins.clear();
    }

    /// Returns the generation of an index that the transaction reads: the one that served at its
    /// first read and is kept readable by its lease. If the index was created later, this is the
    /// generation over the transaction's version of the data set. Returns the error
    /// `SnapshotTooOld` if the generation was dropped.
    pub fn generation_to_read(
        &self,
        shown: &Arc<IndexInfo>,
        now: &Catalog,
    ) -> Result<Arc<IndexInfo>> {
        let Some(catalog) = &self.catalog else { return Ok(Arc::clone(shown)) };
        let began = catalog.indexes.get(&shown.id);
        let Some(began) = began.filter(|began| began.state == IndexState::Maintenance) else {
            return generation_of_new_index(catalog, shown, now);
        };
        if began.local_id() == shown.local_id() {
            return Ok(Arc::clone(shown));
        }
        now.local_index(began.local_id()).cloned().ok_or_else(|| {
            let name = &shown.spec.name;
            let what = format!(
                "the generation of index \"{name}\" in which the transaction began is gone"
            );
            Error::new(ErrorCode::SnapshotTooOld, what).with_hint("begin the transaction again")
        })
    }

    /// Returns the bucket in which the transaction reads documents: the one that the bucket's
    /// name meant at its first read. For a data set, the lease keeps that version readable.
    pub fn bucket_to_read(
        &self,
        shown: &Arc<BucketInfo>,
        now: &Catalog,
    ) -> Result<Arc<BucketInfo>> {
        let Some(began) = &self.catalog else { return Ok(Arc::clone(shown)) };
        let of_user = now.user_bucket(shown.id);
        let read = began.current_bucket_of(of_user);
        if read == shown.id || !began.buckets.contains_key(&read) {
            return Ok(Arc::clone(shown));
        }
        now.buckets.get(&read).cloned().ok_or_else(|| {
            let what = "the version of the data set in which the transaction began is gone";
            Error::new(ErrorCode::SnapshotTooOld, what).with_hint("begin the transaction again")
        })
    }

    /// Returns the epoch that the transaction reads in a bucket, and leases it. The first call
    /// fixes a moment that covers all writes acknowledged before.
    pub async fn pin(&mut self, access: &Access, bucket: BucketId) -> Result<Epoch> {
        if let Some(epoch) = self.snapshot(bucket) {
            return Ok(epoch);
        }
        if let Some(first) = self.pins.values().next() {
            let pin = first.pin_at(bucket, EPOCH_WAIT_MS).await?;
            let epoch = pin.epoch();
            self.pins.insert(bucket, pin);
            return Ok(epoch);
        }
        let pin = access.pin_bucket(bucket, EPOCH_WAIT_MS).await?;
        let epoch = pin.epoch();
        self.fix_moment(bucket, pin);
        Ok(epoch)
    }

    /// Leases the epochs of the buckets that the transaction has changed but not read, if its
    /// moment is fixed. The commit then fails if another writer has changed one of the documents
    /// after the moment.
    pub async fn pin_changed(&mut self) -> Result<()> {
        let changed: Vec<_> = self.changes.keys().copied().collect();
        for bucket in changed {
            if let (None, Some(first)) = (self.snapshot(bucket), self.pins.values().next()) {
                let pin = first.pin_at(bucket, EPOCH_WAIT_MS).await?;
                self.pins.insert(bucket, pin);
            }
        }
        Ok(())
    }

    /// Returns what the transaction sees of a bucket: the epoch, if it reads in the bucket, and
    /// its changes. Returns an error if the changes are known to be lost.
    pub fn view(&self, bucket: BucketId) -> Result<TransactionView> {
        let changes = self.changes.get(&bucket);
        changes.map_or(Ok(()), |changes| changes.check())?;
        let own = changes.and_then(|changes| changes.own_changes());
        Ok(TransactionView { snapshot: self.snapshot(bucket), own })
    }

    /// Returns the transaction's changes in each bucket.
    pub fn changes(&self) -> impl Iterator<Item = (BucketId, &Arc<dyn BucketTransaction>)> {
        self.changes.iter().map(|(bucket, changes)| (*bucket, changes))
    }

    /// Returns the transaction's changes in a bucket; `None` if there are none.
    pub fn changes_in(&self, bucket: BucketId) -> Option<&Arc<dyn BucketTransaction>> {
        self.changes.get(&bucket)
    }

    /// Returns the transaction's changes in a bucket. The first call for a bucket begins the
    /// changes by calling `begin`.
    pub fn changes_or_begin(
        &mut self,
        bucket: BucketId,
        begin: impl FnOnce() -> Result<Arc<dyn BucketTransaction>>,
    ) -> Result<Arc<dyn BucketTransaction>> {
        if let Some(changes) = self.changes.get(&bucket) {
            return Ok(Arc::clone(changes));
        }
        if self.changes.len() >= BUCKETS_MAX {
            let what = format!("a transaction writes documents of at most {BUCKETS_MAX} buckets");
            return Err(Error::new(ErrorCode::OverLimit, what));
        }
        let begun = begin()?;
        self.changes.insert(bucket, Arc::clone(&begun));
        Ok(begun)
    }

    /// Drops the transaction's changes in a bucket, which rolls them back.
    pub fn forget_changes(&mut self, bucket: BucketId) {
        self.changes.remove(&bucket);
    }

    /// Returns the position after the transaction's changes so far in each bucket, to which it
    /// could be rolled back.
    pub fn places(&self) -> BTreeMap<BucketId, TransactionPlace> {
        let place =
            |changes: &Arc<dyn BucketTransaction>| changes.own_changes().map(|own| own.place);
        self.changes().map(|(bucket, own)| (bucket, place(own).unwrap_or_default())).collect()
    }

    /// Returns the transaction's changes in each bucket, with the epoch that it has read there,
    /// for the commit.
    pub fn parts(&self) -> Vec<Part> {
        let part = |(bucket, changes): (BucketId, &Arc<dyn BucketTransaction>)| Part {
            changes: Arc::clone(changes),
            snapshot: self.snapshot(bucket),
        };
        self.changes().map(part).collect()
    }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use proto::model::bucket::SourceKind;
    use proto::model::data_set::{DataSet, Files, Version, VersionStage};
    use proto::model::ids::{Generation, IndexId, NodeId};
    use proto::model::index::IndexSpec;

    use super::*;

    struct Pin(Arc<Catalog>);

    #[async_trait]
    impl EpochPin for Pin {
        fn epoch(&self) -> Epoch {
            Epoch(2)
        }
        fn catalog(&self) -> Arc<Catalog> {
            Arc::clone(&self.0)
        }
        async fn pin_at(&self, _: BucketId, _: u64) -> Result<Box<dyn EpochPin>> {
            Ok(Box::new(Pin(Arc::clone(&self.0))))
        }
    }

    const SET: BucketId = BucketId(1);
    const V1: BucketId = BucketId(2);
    const V2: BucketId = BucketId(3);

    fn catalog(stages: &[(BucketId, VersionStage)]) -> Catalog {
        let mut set = DataSet::new(1, 1, 0);
        let mut catalog = Catalog::default();
        let buckets = stages.iter().map(|(bucket, _)| *bucket).chain([SET]);
        for id in buckets {
            let info = BucketInfo::new(id, format!("b{}", id.0), 1, SourceKind::Files, NodeId(1));
            catalog.buckets.insert(id, Arc::new(info));
        }
        for (bucket, stage) in stages {
            let version = Version {
                name: format!("v{}", bucket.0 - 1),
                bucket: *bucket,
                files: Files { pattern: "x.csv".into(), id: "id".into() },
                nodes: Vec::new(),
                stage: *stage,
                partitions: Vec::new(),
            };
            set.versions.insert(bucket.0 - 1, version);
        }
        catalog.data_sets.insert(SET, set);
        catalog
    }

    fn generation(bucket: BucketId, generation: u32, state: IndexState) -> Arc<IndexInfo> {
        let info =
            IndexInfo::new(IndexId(7), bucket, IndexSpec::new("i", "b"), vec![vec![NodeId(9)]]);
        Arc::new(IndexInfo { generation: Generation(generation), state, ..info })
    }

    #[test]
    fn new_indexes_show_the_old_version() {
        use VersionStage::{Current, Kept};
        let mut buckets = TransactionBuckets::default();
        buckets.fix_moment(V1, Box::new(Pin(Arc::new(catalog(&[(V1, Current)])))));
        let younger = generation(V1, 1, IndexState::Maintenance);
        let mut now = catalog(&[(V1, Current)]);
        let read = |now: &Catalog, shown: &Arc<IndexInfo>| buckets.generation_to_read(shown, now);
        assert_eq!(read(&now, &younger).unwrap(), younger, "it is over the version that is read");

        now.data_sets = catalog(&[(V1, Kept), (V2, Current)]).data_sets;
        let next = generation(V2, 2, IndexState::Maintenance);
        let error = read(&now, &next).unwrap_err();
        assert_eq!(error.code, ErrorCode::SnapshotTooOld, "{error}");
        let retired = generation(V1, 1, IndexState::Retired);
        now.generations.insert(retired.local_id(), Arc::clone(&retired));
        assert_eq!(read(&now, &next).unwrap(), retired);
    }
}
