//! Determines the consistency of a scan outside of a transaction from the settings of its session
//! and the epochs that the session has read ([`super::floors`]).

use proto::model::cut::{Position, WritePosition};
use proto::model::ids::{BucketId, Epoch, VbucketId};
use proto::model::index::IndexInfo;
use proto::rpc::scan::Consistency;
use proto::{Error, ErrorCode, Result};

use super::floors::at_least;
use super::state::SessionState;

/// The time limit of a scan's wait for an epoch that contains the session's writes, in
/// milliseconds.
const FLOOR_WAIT_MS: u64 = 1_000;

/// Adds the position `own` of a later write to `all`. A position on the same branch replaces the
/// earlier one; positions in other vbuckets are added.
fn add_later(all: &mut WritePosition, own: &WritePosition) {
    let is_later = |(vbucket, at): &&(VbucketId, Position)| {
        let known = all.positions.iter().find(|(known, _)| known == vbucket);
        known.is_none_or(|(_, known)| known.vbuuid == at.vbuuid && known.seqno < at.seqno)
    };
    let positions = own.positions.iter().filter(is_later).copied().collect();
    all.merge(&WritePosition { bucket: own.bucket, positions });
}

impl SessionState {
    /// Returns the consistency of a scan of an index outside of a transaction.
    pub(in crate::pg) async fn consistency(&mut self, index: &IndexInfo) -> Result<Consistency> {
        let (bucket, asked) = (index.bucket, self.settings.consistency(index.bucket));
        if asked == Consistency::RequestPlus || !self.settings.keeps_floors() {
            return Ok(asked);
        }
        self.find_write_epoch(bucket).await?;
        let floors = &self.settings.floors;
        Ok(match asked {
            _ if floors.is_open(bucket) => Consistency::RequestPlus,
            Consistency::AtPlus(positions) => {
                let mut all = WritePosition { bucket, positions };
                floors.last_write(bucket).into_iter().for_each(|own| add_later(&mut all, own));
                Consistency::AtPlus(all.positions)
            }
            _ => at_least(floors.floor_of_index(bucket, index.id)),
        })
    }

    /// Returns an error if a transaction would read an older epoch than its session has already
    /// read. This can happen while the bucket is held at an old epoch.
    pub(in crate::pg) fn check_floor(&self, index: &IndexInfo, epoch: Epoch) -> Result<()> {
        let floor = self.settings.floors.floor_of_index(index.bucket, index.id);
        let is_any = self.settings.consistency(index.bucket) == Consistency::Any;
        if epoch >= floor || !is_any || !self.settings.keeps_floors() {
            return Ok(());
        }
        let name = &index.spec.name;
        let what = format!(
            "index \"{name}\": the transaction reads epoch {epoch}, and this session has seen or written epoch {floor}"
        );
        Err(Error::unavailable(what).with_hint(
            "the bucket is held back: begin the transaction again, or SET consistency = 'stale'",
        ))
    }

    /// Returns true if a rollback has removed the epoch that contained the session's writes.
    pub(in crate::pg) fn is_rolled_back(&self, bucket: BucketId) -> bool {
        self.settings.keeps_floors()
            && self.settings.floors.is_rolled_back(bucket, &self.access.catalog())
    }

    /// Asks the coordinators for the epoch that contains the session's writes in a bucket. If
    /// some of the writes are lost, returns an error, but only once.
    pub(in crate::pg) async fn find_write_epoch(&mut self, bucket: BucketId) -> Result<()> {
        if !self.settings.floors.has_written(bucket) {
            return Ok(());
        }
        let catalog = self.access.catalog();
        let Some(positions) = self.settings.floors.writes_without_epoch(bucket, &catalog) else {
            return Ok(());
        };
        let mut newest = Epoch(0);
        for position in positions {
            match self.access.epoch_of(position, FLOOR_WAIT_MS).await {
                Ok(epoch) => newest = newest.max(epoch),
                Err(error) if error.code == ErrorCode::InvalidParameter => {
                    self.settings.floors.forget_writes(bucket);
                    let what = format!("a write of this session is lost: {}", error.message);
                    return Err(Error::new(ErrorCode::SnapshotTooOld, what)
                        .with_hint("the next scan reads what the source has now"));
                }
                Err(error) if error.code == ErrorCode::Unknown => return Err(error),
                Err(error) => {
                    let what =
                        format!("no epoch has the last write of this session: {}", error.message);
                    return Err(Error::unavailable(what).with_hint(
                        "try again, or SET consistency = 'stale' to read a state without it",
                    ));
                }
            }
        }
        self.settings.floors.set_write_epoch(bucket, newest);
        Ok(())
    }
}
