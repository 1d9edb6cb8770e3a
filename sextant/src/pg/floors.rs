//! The epochs below which the scans of a session do not go back.
//!
//! Two scans of one session may be answered by different copies, of which one is behind. So the session remembers for each index the
//! newest epoch that it has read (*read floor*), and for each bucket what it has written. The first scan of the bucket behind a write asks the
//! coordinators for the oldest epoch that has the write, which becomes the bucket's *write floor*. Scans behind that compare numbers only.
//!
//! A rollback gives new numbers above all that it removes. So a read floor that it has removed stands for the first epoch behind it. A write
//! floor that it has removed does not: the write may be lost. Then the coordinators are asked again, and tell.

use std::collections::BTreeMap;

use proto::model::catalog::Catalog;
use proto::model::cut::WritePosition;
use proto::model::ids::{BucketId, Epoch, IndexId};
use proto::model::index::IndexInfo;
use proto::rpc::scan::Consistency;
use proto::{Error, ErrorCode, Result};

use super::state::SessionState;

/// How long a scan waits for an epoch that has the session's writes, in milliseconds.
const FLOOR_WAIT_MS: u64 = 1_000;
/// Indexes whose floors are kept although they may be dropped.
const INDEXES_MAX: usize = 1_024;

/// The floors of a session.
#[derive(Debug, Default)]
pub(super) struct Floors {
    read: BTreeMap<IndexId, (BucketId, Epoch)>,
    written: BTreeMap<BucketId, Written>,
}

/// The session's writes in a bucket.
#[derive(Debug)]
struct Written {
    position: WritePosition,
    /// The oldest epoch that has all of them; `None` before the coordinators were asked.
    epoch: Option<Epoch>,
}

impl Floors {
    /// Notes that a scan has read an epoch.
    pub(super) fn note_read(&mut self, (bucket, index): (BucketId, IndexId), epoch: Epoch) {
        let floor = &mut self.read.entry(index).or_insert((bucket, epoch)).1;
        *floor = epoch.max(*floor);
    }

    /// Forgets indexes that were dropped, if there are many.
    pub(super) fn forget_dropped(&mut self, catalog: &Catalog) {
        if self.read.len() > INDEXES_MAX {
            self.read.retain(|index, _| catalog.indexes.contains_key(index));
        }
    }

    /// Notes a write.
    pub(super) fn note_write(&mut self, position: WritePosition) {
        match self.written.get_mut(&position.bucket) {
            Some(written) => {
                written.position.merge(&position);
                written.epoch = None;
            }
            None => {
                self.written.insert(position.bucket, Written { position, epoch: None });
            }
        }
    }

    /// The session's writes in a bucket, if it is not known which epoch has them.
    pub(super) fn unsettled(&self, bucket: BucketId, catalog: &Catalog) -> Option<&WritePosition> {
        let written = self.written.get(&bucket)?;
        let bucket = catalog.buckets.get(&bucket);
        let is_dead = |epoch| bucket.is_some_and(|bucket| bucket.is_dead(epoch));
        written.epoch.is_none_or(is_dead).then_some(&written.position)
    }

    /// Notes the oldest epoch that has all writes of the session in a bucket.
    pub(super) fn settle(&mut self, bucket: BucketId, epoch: Epoch) {
        if let Some(written) = self.written.get_mut(&bucket) {
            written.epoch = Some(epoch);
        }
    }

    /// Forgets the writes in a bucket: some of them are lost, which was said.
    pub(super) fn forget_writes(&mut self, bucket: BucketId) {
        self.written.remove(&bucket);
    }

    /// The oldest epoch that a scan of an index may read.
    pub(super) fn of_index(&self, bucket: BucketId, index: IndexId) -> Epoch {
        let read = self.read.get(&index).map_or(Epoch(0), |floor| floor.1);
        read.max(self.of_writes(bucket))
    }

    /// The oldest epoch that a transaction may read in a bucket, through any index.
    pub(super) fn of_bucket(&self, bucket: BucketId) -> Epoch {
        let read = self.read.values().filter(|floor| floor.0 == bucket).map(|floor| floor.1);
        read.max().unwrap_or_default().max(self.of_writes(bucket))
    }

    fn of_writes(&self, bucket: BucketId) -> Epoch {
        self.written.get(&bucket).and_then(|written| written.epoch).unwrap_or_default()
    }

    /// True if the session has read other buckets.
    pub(super) fn has_others(&self, bucket: BucketId) -> bool {
        self.read.values().any(|floor| floor.0 != bucket)
    }
}

impl SessionState {
    /// The consistency of a scan outside of a transaction.
    pub(super) async fn consistency(&mut self, index: &IndexInfo) -> Result<Consistency> {
        let (bucket, asked) = (index.bucket, self.settings.consistency(index.bucket));
        if asked != Consistency::Any || !self.settings.keeps_floors() {
            return Ok(asked);
        }
        self.settle_writes(bucket).await?;
        Ok(match self.settings.floors.of_index(bucket, index.id) {
            Epoch(0) => Consistency::Any,
            floor => Consistency::AtLeast(floor),
        })
    }

    /// Finds the epoch that has the session's writes in a bucket. An error that says that some of them are lost comes once.
    async fn settle_writes(&mut self, bucket: BucketId) -> Result<()> {
        let catalog = self.backend.catalog();
        self.settings.floors.forget_dropped(&catalog);
        let Some(position) = self.settings.floors.unsettled(bucket, &catalog) else {
            return Ok(());
        };
        match self.backend.epoch_of(position, FLOOR_WAIT_MS).await {
            Ok(epoch) => {
                self.settings.floors.settle(bucket, epoch);
                Ok(())
            }
            Err(error) if error.code == ErrorCode::InvalidParameter => {
                self.settings.floors.forget_writes(bucket);
                let what = format!("a write of this session is lost: {}", error.message);
                Err(Error::new(ErrorCode::SnapshotTooOld, what)
                    .with_hint("the next scan reads what the source has now"))
            }
            Err(error) => {
                let what =
                    format!("no epoch has the last write of this session: {}", error.message);
                Err(Error::new(error.code, what).with_hint(
                    "try again, or SET consistency = 'stale' to read a state without it",
                ))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proto::model::bucket::{BucketInfo, SourceKind};
    use proto::model::cut::Position;
    use proto::model::ids::{NodeId, Seqno, VbucketId, Vbuuid};
    use proto::model::rollback::DeadEpochs;

    use super::*;

    const BUCKET: BucketId = BucketId(1);

    fn at(seqno: u64) -> WritePosition {
        let position = Position { vbuuid: Vbuuid(7), seqno: Seqno(seqno) };
        WritePosition { bucket: BUCKET, positions: vec![(VbucketId(0), position)] }
    }

    fn catalog(dead: Option<DeadEpochs>) -> Catalog {
        let mut bucket = BucketInfo::new(BUCKET, "b", 1, SourceKind::Push, NodeId(100));
        bucket.dead = Arc::new(dead.into_iter().collect());
        Catalog { buckets: [(BUCKET, Arc::new(bucket))].into(), ..Catalog::default() }
    }

    #[test]
    fn a_floor_never_falls_and_holds_for_its_index_alone() {
        let mut floors = Floors::default();
        for epoch in [5, 9, 7] {
            floors.note_read((BUCKET, IndexId(1)), Epoch(epoch));
        }
        assert_eq!(floors.of_index(BUCKET, IndexId(1)), Epoch(9));
        assert_eq!(floors.of_index(BUCKET, IndexId(2)), Epoch(0));
        assert_eq!(floors.of_bucket(BUCKET), Epoch(9), "a transaction may read any index");
        assert!(!floors.has_others(BUCKET) && floors.has_others(BucketId(2)));
    }

    #[test]
    fn a_write_is_asked_for_once_and_again_after_a_rollback_of_its_epoch() {
        let (mut floors, whole) = (Floors::default(), catalog(None));
        assert_eq!(floors.unsettled(BUCKET, &whole), None);
        floors.note_write(at(3));
        assert_eq!(floors.unsettled(BUCKET, &whole), Some(&at(3)));
        floors.settle(BUCKET, Epoch(8));
        assert_eq!(floors.unsettled(BUCKET, &whole), None);
        assert_eq!(floors.of_index(BUCKET, IndexId(2)), Epoch(8), "in all indexes of the bucket");
        let rolled_back = catalog(Some(DeadEpochs { point: None, to: Epoch(11) }));
        assert_eq!(floors.unsettled(BUCKET, &rolled_back), Some(&at(3)));
        floors.settle(BUCKET, Epoch(12));
        assert_eq!(floors.unsettled(BUCKET, &rolled_back), None);
        floors.note_write(at(4));
        assert_eq!(floors.unsettled(BUCKET, &rolled_back), Some(&at(4)));
        floors.forget_writes(BUCKET);
        assert_eq!(floors.unsettled(BUCKET, &rolled_back), None);
    }
}
