//! Applies the DDL of versioned data sets, and the reports of projectors about the versions that
//! they load ([`proto::model::data_set`]).
//!
//! Each version is a separate bucket. The history of a version is known beforehand: when the last
//! partition is reported as loaded, the version publishes its only epoch. So the source of a
//! version is never queried, compared or rolled back. A projector that has lost a partition is no
//! longer listed as a holder of it, and the indexes of the version stay as they are.

pub mod partitions;
pub mod queries;
pub mod removal;
pub mod state;

use std::sync::Arc;

use proto::model::assignment::VbucketAssignment;
use proto::model::bucket::{BucketInfo, SourceKind};
use proto::model::data_set::{
    DataSet, Files, IDLE_MS_MAX, PARTITIONS_MAX, PATTERN_BYTES_MAX, Partition, REPLICATION_MAX,
    VERSION_NAME_BYTES_MAX, VERSIONS_MAX, Version, VersionStage, holders_of, version_bucket_name,
};
use proto::model::ids::{BucketId, NodeId};
use proto::model::index::{IndexInfo, IndexState};
use proto::model::node::Role;
use proto::rpc::command::{
    BuildVersion, CancelVersion, CreateDataSet, DropVersion, LoadVersion, Outcome, SetVersionIdle,
    StateUsage, SwitchVersion,
};
use proto::{Error, ErrorCode, Result};

use crate::state::buckets::{existing_bucket, new_bucket};
use crate::state::capacity::limits::{
    DATA_SETS_MAX, LOADING_NODES_MAX, VERSIONS_EACH_MIN, VERSIONS_IN_ALL_MAX,
};
use crate::state::consequence::Consequence;
use crate::state::context::StateContext;
use crate::state::decisions::Decisions;
use crate::state::effect::{Apply, Change, Effect, catalog_changed, nothing};
use crate::state::indexes::checks::{check_name, check_range};
use crate::state::indexes::generations::new_generation;
use crate::state::versions::removal::remove_version;

fn wrong_state(what: String, hint: impl Into<String>) -> Error {
    Error::new(ErrorCode::WrongState, what).with_hint(hint)
}

fn bad(what: String) -> Error {
    Error::new(ErrorCode::InvalidParameter, what)
}

impl Apply for CreateDataSet {
    fn apply(&self, state: &mut StateContext, decided: &Decisions) -> Change {
        let set = DataSet::new(self.partitions, self.replication, self.idle_ms);
        check_range("partitions", set.partitions.into(), 1, PARTITIONS_MAX.into())?;
        check_range("replication", set.replication.into(), 1, REPLICATION_MAX.into())?;
        check_idle(set.idle_ms)?;
        if let Some(id) = existing_bucket(state, &self.name, self.if_not_exists)? {
            return Ok((Outcome::Bucket(id), Vec::new()));
        }
        let info = Arc::new(new_bucket(state, (&self.name, 1, SourceKind::Files), 1)?);
        let (id, unique) = (info.id, decided.unique);
        state.versions.create(id, set);
        let mut effects = vec![Effect::CatalogChanged];
        effects.extend(state.carry_out(&Consequence::BucketMade { info, unique, copies: None }));
        Ok((Outcome::Bucket(id), effects))
    }
}

impl Apply for SetVersionIdle {
    fn apply(&self, state: &mut StateContext, _decided: &Decisions) -> Change {
        check_idle(self.idle_ms)?;
        data_set_of_command(state, self.bucket)?;
        let Some(set) = state.versions.get_mut(self.bucket) else { return nothing() };
        if std::mem::replace(&mut set.idle_ms, self.idle_ms) == self.idle_ms {
            return nothing();
        }
        catalog_changed()
    }
}

impl Apply for LoadVersion {
    fn apply(&self, state: &mut StateContext, decided: &Decisions) -> Change {
        let (id, version) = (self.bucket, &*self.version);
        let (info, set) = data_set_of_command(state, id)?;
        check_version(version, &self.files)?;
        let name = version_bucket_name(&info.name, version);
        check_new_version(state, (id, set), (&info.name, version))?;
        state.check_name_is_free(&name)?;
        let nodes = loading_projectors(state, &decided.silent)?;
        let partitions = set.partitions;
        state.check_free_capacity(StateUsage {
            vbuckets: partitions.into(),
            ..StateUsage::of_name(&name)
        })?;
        let holders = holders_of(partitions, set.replication, &nodes);
        let owners = holders.iter().filter_map(|holders| holders.first().copied()).collect();
        let bucket = state.buckets.next();
        let info = BucketInfo::new(bucket, name, partitions, SourceKind::Files, NodeId(0));
        let info = Arc::new(info.with_assignment(VbucketAssignment::of_owners(owners)));
        let Some(set) = state.versions.get_mut(id) else { return nothing() };
        set.newest += 1;
        set.failed = None;
        let number = set.newest;
        let partitions = vec![Partition::default(); usize::from(partitions)];
        let (name, files) = (version.to_owned(), self.files.clone());
        let stage = VersionStage::Loading;
        set.versions.insert(number, Version { name, bucket, files, nodes, stage, partitions });
        if self.allow_empty {
            state.versions.allow_empty(bucket);
        }
        let unique = decided.unique;
        let mut effects = vec![Effect::CatalogChanged];
        effects.extend(state.carry_out(&Consequence::BucketMade { info, unique, copies: None }));
        Ok((Outcome::Version(id, number), effects))
    }
}

/// Checks that a data set may begin to load a version: the name is new, no other version is
/// loading, and the limits of versions allow it.
fn check_new_version(
    state: &StateContext,
    (id, set): (BucketId, &DataSet),
    (name, version): (&str, &str),
) -> Result<()> {
    if let Some((_, loading)) = set.loading() {
        let what = format!("version '{}' of bucket \"{name}\" is loading", loading.name);
        let hint = format!(
            "SHOW VERSIONS shows how far it is; ALTER BUCKET {name} CANCEL VERSION '{}' ends it",
            loading.name
        );
        return Err(wrong_state(what, hint));
    }
    if set.versions.values().any(|known| known.name == version) {
        let what = format!("bucket \"{name}\" has a version '{version}'");
        return Err(Error::new(ErrorCode::Exists, what).with_hint("give the new one another name"));
    }
    if set.versions.len() >= VERSIONS_MAX {
        let what =
            format!("bucket \"{name}\" has {VERSIONS_MAX} versions, which may still be read");
        let hint = format!(
            "an old one goes within seconds if nobody has read it, and else when nobody has asked for it during version_idle ({} s)",
            set.idle_ms / 1_000
        );
        return Err(wrong_state(what, hint));
    }
    if versions_reserved_with(state, id) > VERSIONS_IN_ALL_MAX {
        let all: usize = state.versions.sets().values().map(|set| set.versions.len()).sum();
        let what = format!(
            "there are {all} versions in all buckets, and more than {VERSIONS_EACH_MIN} of one bucket are not possible now"
        );
        return Err(Error::new(ErrorCode::OverLimit, what).with_hint(
            "wait until old ones have gone, set a shorter version_idle, or DROP BUCKET what is no longer needed",
        ));
    }
    Ok(())
}

/// Returns the number of versions that count towards the limit if the data set `more` gets one
/// more. Each possible data set counts with at least [`VERSIONS_EACH_MIN`].
fn versions_reserved_with(state: &StateContext, more: BucketId) -> usize {
    let possible = DATA_SETS_MAX.saturating_sub(state.versions.sets().len()) * VERSIONS_EACH_MIN;
    let of_set = |(id, set): (&BucketId, &DataSet)| {
        (set.versions.len() + usize::from(*id == more)).max(VERSIONS_EACH_MIN)
    };
    possible + state.versions.sets().iter().map(of_set).sum::<usize>()
}

/// Returns the projectors that are to load a new version, ascending: those that are not silent,
/// or all if every one is silent. Returns at most [`LOADING_NODES_MAX`], and an error if there is
/// no projector.
fn loading_projectors(state: &StateContext, silent: &[NodeId]) -> Result<Vec<NodeId>> {
    let all: Vec<NodeId> = state.nodes.of_role(Role::Projector).map(|node| node.id).collect();
    let live: Vec<NodeId> = all.iter().copied().filter(|id| !silent.contains(id)).collect();
    let mut nodes = if live.is_empty() { all } else { live };
    nodes.truncate(LOADING_NODES_MAX);
    match nodes.is_empty() {
        true => Err(Error::unavailable("no projector is registered that could load the version")
            .with_hint("start a projector, or wait until one has registered")),
        false => Ok(nodes),
    }
}

impl Apply for CancelVersion {
    fn apply(&self, state: &mut StateContext, _decided: &Decisions) -> Change {
        let version = &self.version;
        let (info, set) = data_set_of_command(state, self.bucket)?;
        let name = &*info.name;
        let Some((number, known)) = set.versions.iter().find(|(_, known)| known.name == *version)
        else {
            let what = format!("bucket \"{name}\" has no version '{version}'");
            return Err(Error::new(ErrorCode::Unknown, what).with_hint("SHOW VERSIONS lists them"));
        };
        if known.stage != VersionStage::Loading {
            let what = format!("version '{version}' of bucket \"{name}\" is not loading");
            return Err(wrong_state(what, "only a version that is loading can be cancelled"));
        }
        let number = *number;
        remove_version(state, self.bucket, number)
    }
}

impl Apply for BuildVersion {
    /// Begins the generation of an index over a complete version. It will serve after the switch
    /// to the version. It replaces an unfinished generation over a version that has lost a
    /// partition which the build needs.
    fn apply(&self, state: &mut StateContext, decided: &Decisions) -> Change {
        let (from, bucket) = (self.from, self.bucket);
        // The version may have been dropped, or the index changed, since the leader looked.
        let named = state.indexes.get(from.index).filter(|_| state.version_of(bucket).is_some());
        let Some(info) = named.filter(|info| info.local_id() == from) else { return nothing() };
        let is_begun = matches!(info.state, IndexState::Maintenance | IndexState::Backfill);
        let next = state.indexes.next_generation(from.index);
        let is_kept =
            |next: &Arc<IndexInfo>| next.bucket == bucket || !state.waits_for_lost_partition(next);
        if !is_begun || next.is_some_and(is_kept) {
            return nothing();
        }
        let replaces = next.map(|next| next.local_id());
        let spec = &next.unwrap_or(info).spec;
        let how = (state.buckets.unique_id(bucket), &decided.silent[..]);
        let info = new_generation(state, info, (spec, bucket), how)?;
        let id = info.local_id();
        state.carry_out(&Consequence::GenerationBegun { info, replaces });
        Ok((Outcome::Generation(id), vec![Effect::CatalogChanged]))
    }
}

impl Apply for SwitchVersion {
    /// Makes the version that is loading the current one. Its generations then serve.
    fn apply(&self, state: &mut StateContext, _decided: &Decisions) -> Change {
        let id = self.data_set;
        let set = state.versions.get(id);
        let loading = set.and_then(|set| set.loading()).filter(|(no, _)| *no == self.version);
        let Some((_, version)) = loading else { return nothing() };
        let (from, to) = (state.current_bucket(id), version.bucket);
        if !state.is_published(version) || !state.indexes.can_switch(from, to) {
            return nothing();
        }
        state.carry_out(&Consequence::VersionSwitched { from, to });
        // Projectors that come later are compared by their own partitions only.
        state.versions.end_loading(to);
        let Some(set) = state.versions.get_mut(id) else { return nothing() };
        for (known, version) in &mut set.versions {
            match version.stage {
                VersionStage::Current => version.stage = VersionStage::Kept,
                VersionStage::Loading if *known == self.version => {
                    version.stage = VersionStage::Current;
                }
                VersionStage::Loading | VersionStage::Kept => {}
            }
        }
        catalog_changed()
    }
}

impl Apply for DropVersion {
    /// Removes an older version, which has no readers any more.
    fn apply(&self, state: &mut StateContext, _decided: &Decisions) -> Change {
        let set = state.versions.get(self.data_set);
        let version = set.and_then(|set| set.versions.get(&self.version));
        match version.map(|version| version.stage) {
            Some(VersionStage::Kept) => remove_version(state, self.data_set, self.version),
            _ => nothing(),
        }
    }
}

/// Returns the data set that a command is about, with its bucket.
fn data_set_of_command(state: &StateContext, id: BucketId) -> Result<(Arc<BucketInfo>, &DataSet)> {
    let info = state.bucket_of_command(id)?;
    let Some(set) = state.versions.get(id) else {
        let name = &info.name;
        let what = format!("bucket \"{name}\" has no versions: it was not made FROM FILES");
        return Err(Error::new(ErrorCode::Unsupported, what)
            .with_hint("CREATE BUCKET … FROM FILES makes one that has"));
    };
    Ok((info, set))
}

fn check_idle(idle_ms: u64) -> Result<()> {
    check_range("version_idle in ms", idle_ms, 0, IDLE_MS_MAX)
}

fn check_version(version: &str, files: &Files) -> Result<()> {
    if version.is_empty()
        || version.len() > VERSION_NAME_BYTES_MAX
        || version.contains(char::is_control)
    {
        let what = format!(
            "the name of a version has 1 to {VERSION_NAME_BYTES_MAX} bytes and no control characters"
        );
        return Err(bad(what));
    }
    if files.pattern.is_empty() || files.pattern.len() > PATTERN_BYTES_MAX {
        return Err(bad(format!("the pattern of files has 1 to {PATTERN_BYTES_MAX} bytes")));
    }
    check_name(&files.id)
}

#[cfg(test)]
pub(crate) mod tests;

#[cfg(test)]
#[path = "switch_tests.rs"]
mod switch_tests;
