//! DDL of buckets. Buckets and indexes share one namespace. Ids are never reused.

use std::sync::Arc;

use proto::model::assignment::VbucketAssignment;
use proto::model::bucket::{BucketInfo, SourceKind, VBUCKETS_MAX};
use proto::model::ids::{BucketId, NodeId};
use proto::rpc::command::Outcome;

use super::bucket::BucketState;
use super::checks::{check_name, check_range};
use super::context::StateContext;
use super::effect::{Change, Effect};
use super::epoch_history::EpochHistory;
use super::lookup::no_bucket;

impl StateContext {
    pub(super) fn create_bucket(
        &mut self,
        (name, vbuckets, source): (&str, u16, SourceKind),
        projectors: u16,
        if_not_exists: bool,
    ) -> Change {
        check_name(name)?;
        if let Some(id) = self.bucket_named(name).filter(|_| if_not_exists) {
            return Ok((Outcome::Bucket(id), Vec::new()));
        }
        self.check_free(name)?;
        check_range("vbuckets", u64::from(vbuckets), 1, u64::from(VBUCKETS_MAX))?;
        self.check_room_for_bucket(name, vbuckets)?;
        let assignment = VbucketAssignment::round_robin(
            vbuckets,
            &self.choose_projectors(source, vbuckets, projectors)?,
        );
        self.last_bucket += 1;
        let id = BucketId(self.last_bucket);
        let info =
            BucketInfo::new(id, name, vbuckets, source, NodeId(0)).with_assignment(assignment);
        let epochs = EpochHistory::new(id, vbuckets, self.steady_ms);
        let first = epochs.last().clone();
        self.buckets.insert(id, BucketState { info: Arc::new(info), epochs, logs: Arc::default() });
        self.thin_epochs();
        Ok((Outcome::Bucket(id), vec![Effect::CatalogChanged, Effect::EpochPublished(first)]))
    }

    pub(super) fn drop_bucket(&mut self, name: &str, if_exists: bool) -> Change {
        let Some(id) = self.bucket_named(name) else {
            return if if_exists { Ok((Outcome::Done, Vec::new())) } else { Err(no_bucket(name)) };
        };
        self.buckets.remove(&id);
        self.indexes.retain(|_, index| index.info.bucket != id);
        Ok((Outcome::Done, vec![Effect::CatalogChanged, Effect::BucketDropped(id)]))
    }
}
