//! DDL of buckets. Buckets and indexes share one namespace. Ids are never reused.

pub mod record;

use std::sync::Arc;

use proto::model::assignment::VbucketAssignment;
use proto::model::bucket::{BucketInfo, SourceKind, VBUCKETS_MAX};
use proto::model::ids::{BucketId, IndexId, NodeId};
use proto::rpc::command::{CreateBucket, DropBucket, Outcome};
use proto::{Error, ErrorCode, Result};

use crate::state::buckets::record::BucketState;
use crate::state::capacity::limits::DROPPED_BUCKETS_MAX;
use crate::state::context::StateContext;
use crate::state::copies::{check_copied, first_copies};
use crate::state::decisions::Decisions;
use crate::state::effect::{Apply, Change, Effect};
use crate::state::epochs::history::EpochHistory;
use crate::state::indexes::checks::{check_name, check_range};

/// The number of indexes that the refusal of a DROP names.
const DEPENDENTS_NAMED_MAX: usize = 10;

impl Apply for CreateBucket {
    fn apply(&self, state: &mut StateContext, decided: &Decisions) -> Change {
        let Self { name, vbuckets, source, projectors, copies, if_not_exists } = self;
        if *source == SourceKind::Files {
            return Err(Error::internal("a data set has its own command"));
        }
        copies.map_or(Ok(()), |copies| check_copied(copies, (name, *source)))?;
        state.creating(decided.unique, |state| {
            let newest = state.last_bucket;
            let made =
                state.create_bucket((name, *vbuckets, *source), *projectors, *if_not_exists)?;
            if let Some(copies) = copies.filter(|_| state.last_bucket > newest) {
                state.wants_copies(BucketId(state.last_bucket), copies);
            }
            Ok(made)
        })
    }
}

impl Apply for DropBucket {
    fn apply(&self, state: &mut StateContext, _decided: &Decisions) -> Change {
        state.drop_bucket(self.bucket, self.restrict)
    }
}

impl StateContext {
    pub(in crate::state) fn create_bucket(
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
        let info = BucketInfo::new(BucketId(0), name, vbuckets, source, NodeId(0))
            .with_assignment(assignment);
        let (id, effects) = self.add_bucket(info);
        Ok((Outcome::Bucket(id), effects))
    }

    /// Adds a bucket under the next number, with its first epoch.
    pub(in crate::state) fn add_bucket(&mut self, info: BucketInfo) -> (BucketId, Vec<Effect>) {
        self.last_bucket += 1;
        let id = BucketId(self.last_bucket);
        let info = BucketInfo { id, ..info };
        let epochs = EpochHistory::new(id, info.vbuckets, self.steady_ms);
        let first = epochs.last().clone();
        self.copies.extend(first_copies(&info).map(|copies| (id, copies)));
        self.buckets.insert(id, BucketState { info: Arc::new(info), epochs, logs: Arc::default() });
        self.note_published(id);
        self.thin_epochs();
        (id, vec![Effect::CatalogChanged, Effect::EpochPublished(first)])
    }

    /// Drops a bucket with its indexes, or with `restrict` only a bucket without any.
    pub(in crate::state) fn drop_bucket(&mut self, id: BucketId, restrict: bool) -> Change {
        let info = self.bucket_of_command(id)?;
        if restrict {
            self.check_no_indexes(&info.name, id)?;
        }
        let current = self.current_bucket(id);
        let of_bucket = self.indexes.values().filter(|record| record.info.bucket == current);
        let indexes: Vec<IndexId> = of_bucket.map(|record| record.info.id).collect();
        indexes.into_iter().for_each(|index| self.remove_index(index));
        let versions = self.data_sets.remove(&id).map(|set| set.versions).unwrap_or_default();
        let buckets = versions.into_values().map(|version| version.bucket).chain([id]);
        let gone: Vec<Effect> = buckets.map(|bucket| self.remove_bucket(bucket)).collect();
        let revoked = self.forget_grants_on(id);
        let effects = [Effect::CatalogChanged].into_iter().chain(gone).chain(revoked);
        Ok((Outcome::Done, effects.collect()))
    }

    /// Removes the record of a bucket that has no indexes.
    pub(in crate::state) fn remove_bucket(&mut self, id: BucketId) -> Effect {
        self.remember_dropped(id);
        self.buckets.remove(&id);
        self.skips.epochs.remove(&id);
        self.moments.remove(&id);
        self.bucket_ids.remove(&id);
        self.copies.remove(&id);
        self.files_read.remove(&id);
        self.empty_allowed.remove(&id);
        Effect::BucketDropped(id)
    }

    /// Keeps the random id of a dropped bucket in the catalog, so that projectors remove its documents.
    fn remember_dropped(&mut self, bucket: BucketId) {
        self.dropped_buckets.push((bucket, self.unique_id(bucket)));
        let too_many = self.dropped_buckets.len().saturating_sub(DROPPED_BUCKETS_MAX);
        self.dropped_buckets.drain(..too_many);
    }

    fn check_no_indexes(&self, name: &str, bucket: BucketId) -> Result<()> {
        let bucket = self.current_bucket(bucket);
        let of_bucket = self.indexes.values().filter(|index| index.info.bucket == bucket);
        let names = of_bucket.map(|index| index.info.spec.name.as_str());
        let names: Vec<&str> = names.take(DEPENDENTS_NAMED_MAX).collect();
        if names.is_empty() {
            return Ok(());
        }
        let message = format!("bucket \"{name}\" has indexes: {}", names.join(", "));
        Err(Error::new(ErrorCode::HasDependents, message)
            .with_hint(format!("drop them first, or DROP BUCKET {name} CASCADE")))
    }
}
