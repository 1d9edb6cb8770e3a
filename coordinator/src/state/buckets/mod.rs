//! DDL of buckets. Buckets and indexes share one namespace. Ids are never reused.

pub mod state;

use std::sync::Arc;

use proto::model::assignment::VbucketAssignment;
use proto::model::bucket::{BucketInfo, SourceKind, VBUCKETS_MAX};
use proto::model::ids::{BucketId, NodeId};
use proto::rpc::command::{CreateBucket, DropBucket, Outcome, StateUsage};
use proto::{Error, ErrorCode, Result};

use crate::state::consequence::Consequence;
use crate::state::context::StateContext;
use crate::state::copies::check_new_copies;
use crate::state::decisions::Decisions;
use crate::state::effect::{Apply, Change, Effect};
use crate::state::indexes::checks::{check_name, check_range};
use crate::state::moves::hand_overs::choose_projectors;

/// The number of dependent indexes that the refusal of a DROP lists by name.
const DEPENDENTS_NAMED_MAX: usize = 10;

impl Apply for CreateBucket {
    fn apply(&self, state: &mut StateContext, decided: &Decisions) -> Change {
        let Self { name, vbuckets, source, projectors, copies, if_not_exists } = self;
        if *source == SourceKind::Files {
            return Err(Error::internal("a data set has its own command"));
        }
        copies.map_or(Ok(()), |copies| check_new_copies(copies, (name, *source)))?;
        if let Some(id) = existing_bucket(state, name, *if_not_exists)? {
            return Ok((Outcome::Bucket(id), Vec::new()));
        }
        let info = Arc::new(new_bucket(state, (name, *vbuckets, *source), *projectors)?);
        let (id, unique, copies) = (info.id, decided.unique, *copies);
        let mut effects = vec![Effect::CatalogChanged];
        effects.extend(state.carry_out(&Consequence::BucketMade { info, unique, copies }));
        Ok((Outcome::Bucket(id), effects))
    }
}

impl Apply for DropBucket {
    /// Drops a bucket with its indexes. With `restrict`, refuses to drop a bucket that has
    /// indexes.
    fn apply(&self, state: &mut StateContext, _decided: &Decisions) -> Change {
        let id = self.bucket;
        let info = state.bucket_of_command(id)?;
        if self.restrict {
            check_no_indexes(state, &info)?;
        }
        let versions = state.versions.get(id).into_iter().flat_map(|set| set.versions.values());
        let buckets: Vec<BucketId> = versions.map(|version| version.bucket).chain([id]).collect();
        let mut effects = vec![Effect::CatalogChanged];
        for bucket in buckets {
            effects.extend(state.carry_out(&Consequence::BucketDropped(bucket)));
        }
        Ok((Outcome::Done, effects))
    }
}

/// Returns the existing bucket with this name if IF NOT EXISTS was given, or `None` if the name
/// is free. Returns an error for an existing name without IF NOT EXISTS.
pub(in crate::state) fn existing_bucket(
    state: &StateContext,
    name: &str,
    if_not_exists: bool,
) -> Result<Option<BucketId>> {
    check_name(name)?;
    let found = state.bucket_named(name).filter(|_| if_not_exists);
    if found.is_none() {
        state.check_name_is_free(name)?;
    }
    Ok(found)
}

/// Returns a new bucket under the next id, on the projectors with the fewest buckets. Returns an
/// error if that would exceed a limit of the state.
pub(in crate::state) fn new_bucket(
    state: &StateContext,
    (name, vbuckets, source): (&str, u16, SourceKind),
    projectors: u16,
) -> Result<BucketInfo> {
    check_range("vbuckets", u64::from(vbuckets), 1, u64::from(VBUCKETS_MAX))?;
    let data_sets = usize::from(source == SourceKind::Files);
    state.check_free_capacity(StateUsage {
        vbuckets: vbuckets.into(),
        data_sets,
        ..StateUsage::of_name(name)
    })?;
    let projectors = choose_projectors(state, source, vbuckets, projectors)?;
    let assignment = VbucketAssignment::round_robin(vbuckets, &projectors);
    let info = BucketInfo::new(state.buckets.next(), name, vbuckets, source, NodeId(0));
    Ok(info.with_assignment(assignment))
}

/// Checks that a bucket has no indexes.
fn check_no_indexes(state: &StateContext, info: &BucketInfo) -> Result<()> {
    let of_bucket = state.indexes.on_bucket(state.current_bucket(info.id));
    let names = of_bucket.map(|index| index.spec.name.as_str());
    let names: Vec<&str> = names.take(DEPENDENTS_NAMED_MAX).collect();
    if names.is_empty() {
        return Ok(());
    }
    let name = &info.name;
    let message = format!("bucket \"{name}\" has indexes: {}", names.join(", "));
    Err(Error::new(ErrorCode::HasDependents, message)
        .with_hint(format!("drop them first, or DROP BUCKET {name} CASCADE")))
}
