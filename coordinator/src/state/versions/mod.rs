//! Versioned data sets: DDL, and the reports of projectors about the versions that they load ([`proto::model::data_set`]).
//!
//! Each version is a bucket of its own. The history of a version is known beforehand: when the last partition is advertised, it
//! publishes the only epoch that the version has. So the source of a version is never queried, compared or rolled back: a projector that
//! has lost a partition is no holder any more, and the indexes of the version stay as they are.

pub mod builds;
pub mod partitions;
pub mod removal;

use std::sync::Arc;

use proto::model::assignment::VbucketAssignment;
use proto::model::bucket::{BucketInfo, SourceKind};
use proto::model::data_set::{
    DataSet, Files, IDLE_MS_MAX, PARTITIONS_MAX, PATTERN_BYTES_MAX, Partition, REPLICATION_MAX,
    VERSION_NAME_BYTES_MAX, VERSIONS_MAX, Version, VersionStage, holders_of, version_bucket_name,
};
use proto::model::ids::{BucketId, NodeId};
use proto::model::node::Role;
use proto::rpc::command::{
    BuildVersion, CancelVersion, CreateDataSet, DropVersion, LoadVersion, Outcome, OwnPartitions,
    PartitionsLoaded, PartitionsLost, SetVersionIdle, SwitchVersion, VersionFailed,
};
use proto::{Error, ErrorCode, Result};

use crate::state::capacity::limits::{
    DATA_SETS_MAX, LOADING_NODES_MAX, VERSIONS_EACH_MIN, VERSIONS_IN_ALL_MAX,
};
use crate::state::context::StateContext;
use crate::state::decisions::Decisions;
use crate::state::effect::{Apply, Change, Effect, catalog_changed, nothing};
use crate::state::indexes::checks::{check_name, check_range};

fn wrong_state(what: String, hint: impl Into<String>) -> Error {
    Error::new(ErrorCode::WrongState, what).with_hint(hint)
}

fn bad(what: String) -> Error {
    Error::new(ErrorCode::InvalidParameter, what)
}

impl Apply for CreateDataSet {
    fn apply(&self, state: &mut StateContext, decided: &Decisions) -> Change {
        let set = DataSet::new(self.partitions, self.replication, self.idle_ms);
        state.creating(decided.unique, |state| {
            state.create_data_set(&self.name, set, self.if_not_exists)
        })
    }
}

impl Apply for SetVersionIdle {
    fn apply(&self, state: &mut StateContext, _decided: &Decisions) -> Change {
        state.set_version_idle(self.bucket, self.idle_ms)
    }
}

impl Apply for LoadVersion {
    fn apply(&self, state: &mut StateContext, decided: &Decisions) -> Change {
        state.creating(decided.unique, |state| {
            let version = (self.bucket, &*self.version);
            let made = state.load_version(version, &self.files, &decided.silent)?;
            if self.allow_empty {
                state.empty_allowed.insert(BucketId(state.last_bucket));
            }
            Ok(made)
        })
    }
}

impl Apply for CancelVersion {
    fn apply(&self, state: &mut StateContext, _decided: &Decisions) -> Change {
        state.cancel_version(self.bucket, &self.version)
    }
}

impl Apply for PartitionsLoaded {
    fn apply(&self, state: &mut StateContext, _decided: &Decisions) -> Change {
        state.partitions_loaded(self.bucket, self.node, &self.partitions, self.read)
    }
}

impl Apply for PartitionsLost {
    fn apply(&self, state: &mut StateContext, _decided: &Decisions) -> Change {
        state.partitions_lost(self.bucket, self.node, &self.partitions)
    }
}

impl Apply for VersionFailed {
    fn apply(&self, state: &mut StateContext, _decided: &Decisions) -> Change {
        state.version_failed(self.bucket, self.node, &self.error)
    }
}

impl Apply for OwnPartitions {
    fn apply(&self, state: &mut StateContext, _decided: &Decisions) -> Change {
        state.own_partitions(self.bucket, &self.owners)
    }
}

impl Apply for BuildVersion {
    fn apply(&self, state: &mut StateContext, decided: &Decisions) -> Change {
        state.build_version(self.from, self.bucket, &decided.silent)
    }
}

impl Apply for SwitchVersion {
    fn apply(&self, state: &mut StateContext, _decided: &Decisions) -> Change {
        state.switch_version(self.data_set, self.version)
    }
}

impl Apply for DropVersion {
    fn apply(&self, state: &mut StateContext, _decided: &Decisions) -> Change {
        state.drop_version(self.data_set, self.version)
    }
}

impl StateContext {
    pub(in crate::state) fn create_data_set(
        &mut self,
        name: &str,
        set: DataSet,
        if_not_exists: bool,
    ) -> Change {
        check_range("partitions", set.partitions.into(), 1, PARTITIONS_MAX.into())?;
        check_range("replication", set.replication.into(), 1, REPLICATION_MAX.into())?;
        check_idle(set.idle_ms)?;
        let newest = self.last_bucket;
        if self.data_sets.len() >= DATA_SETS_MAX && self.bucket_named(name).is_none() {
            let what = format!(
                "there are {DATA_SETS_MAX} buckets made FROM FILES, the most that are possible"
            );
            return Err(Error::new(ErrorCode::OverLimit, what)
                .with_hint("DROP BUCKET what is no longer needed"));
        }
        let made = self.create_bucket((name, 1, SourceKind::Files), 1, if_not_exists)?;
        if self.last_bucket > newest {
            self.data_sets.insert(BucketId(self.last_bucket), set);
        }
        Ok(made)
    }

    pub(in crate::state) fn set_version_idle(&mut self, id: BucketId, idle_ms: u64) -> Change {
        check_idle(idle_ms)?;
        self.data_set_of_command(id)?;
        let Some(set) = self.data_sets.get_mut(&id) else { return nothing() };
        if std::mem::replace(&mut set.idle_ms, idle_ms) == idle_ms {
            return nothing();
        }
        catalog_changed()
    }

    pub(in crate::state) fn load_version(
        &mut self,
        (id, version): (BucketId, &str),
        files: &Files,
        silent: &[NodeId],
    ) -> Change {
        let info = self.data_set_of_command(id)?;
        let name = &*info.name;
        check_version(version, files)?;
        let bucket_name = version_bucket_name(name, version);
        self.check_new_version(id, name, version)?;
        self.check_free(&bucket_name)?;
        let nodes = self.loading_projectors(silent)?;
        let set = &self.data_sets[&id];
        let partitions = set.partitions;
        self.check_room_for_bucket(&bucket_name, partitions)?;
        let holders = holders_of(partitions, set.replication, &nodes);
        let owners = holders.iter().filter_map(|holders| holders.first().copied()).collect();
        let info =
            BucketInfo::new(BucketId(0), bucket_name, partitions, SourceKind::Files, NodeId(0))
                .with_assignment(VbucketAssignment::of_owners(owners));
        let (bucket, mut effects) = self.add_bucket(info);
        let partitions = vec![Partition::default(); usize::from(partitions)];
        let (stage, files) = (VersionStage::Loading, files.clone());
        let version = Version { name: version.to_owned(), bucket, files, nodes, stage, partitions };
        let Some(set) = self.data_sets.get_mut(&id) else { return nothing() };
        set.newest += 1;
        set.failed = None;
        set.versions.insert(set.newest, version);
        let number = set.newest;
        effects.push(Effect::CatalogChanged);
        Ok((Outcome::Version(id, number), effects))
    }

    /// Checks that a data set has room for a version of that name, and loads no other.
    fn check_new_version(&self, id: BucketId, name: &str, version: &str) -> Result<()> {
        let set = &self.data_sets[&id];
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
            return Err(
                Error::new(ErrorCode::Exists, what).with_hint("give the new one another name")
            );
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
        if self.versions_reserved_with(id) > VERSIONS_IN_ALL_MAX {
            let all: usize = self.data_sets.values().map(|set| set.versions.len()).sum();
            let what = format!(
                "there are {all} versions in all buckets, and more than {VERSIONS_EACH_MIN} of one bucket are not possible now"
            );
            return Err(Error::new(ErrorCode::OverLimit, what).with_hint(
                "wait until old ones have gone, set a shorter version_idle, or DROP BUCKET what is no longer needed",
            ));
        }
        Ok(())
    }

    /// The number of versions including one more of a data set, where each possible data set counts with at least its guaranteed number.
    fn versions_reserved_with(&self, more: BucketId) -> usize {
        let possible = DATA_SETS_MAX.saturating_sub(self.data_sets.len()) * VERSIONS_EACH_MIN;
        let of_set = |(id, set): (&BucketId, &DataSet)| {
            (set.versions.len() + usize::from(*id == more)).max(VERSIONS_EACH_MIN)
        };
        possible + self.data_sets.iter().map(of_set).sum::<usize>()
    }

    /// The projectors that a new version is given to, ascending: all that are not silent, if there are any.
    fn loading_projectors(&self, silent: &[NodeId]) -> Result<Vec<NodeId>> {
        let projectors = self.nodes.values().filter(|node| node.role == Role::Projector);
        let all: Vec<NodeId> = projectors.map(|node| node.id).collect();
        let live: Vec<NodeId> = all.iter().copied().filter(|id| !silent.contains(id)).collect();
        let mut nodes = if live.is_empty() { all } else { live };
        nodes.truncate(LOADING_NODES_MAX);
        match nodes.is_empty() {
            true => {
                Err(Error::unavailable("no projector is registered that could load the version")
                    .with_hint("start a projector, or wait until one has registered"))
            }
            false => Ok(nodes),
        }
    }

    pub(in crate::state) fn cancel_version(&mut self, id: BucketId, version: &str) -> Change {
        let info = self.data_set_of_command(id)?;
        let name = &*info.name;
        let mut versions = self.data_sets[&id].versions.iter();
        let Some((number, known)) = versions.find(|(_, known)| known.name == version) else {
            let what = format!("bucket \"{name}\" has no version '{version}'");
            return Err(Error::new(ErrorCode::Unknown, what).with_hint("SHOW VERSIONS lists them"));
        };
        if known.stage != VersionStage::Loading {
            let what = format!("version '{version}' of bucket \"{name}\" is not loading");
            return Err(wrong_state(what, "only a version that is loading can be cancelled"));
        }
        self.remove_version(id, *number)
    }

    /// Makes the version that is loading current. Its generations serve from here on.
    pub(in crate::state) fn switch_version(&mut self, id: BucketId, number: u64) -> Change {
        let Some(set) = self.data_sets.get(&id) else { return nothing() };
        let Some((_, version)) = set.loading().filter(|(loading, _)| *loading == number) else {
            return nothing();
        };
        let (from, to) = (self.current_bucket(id), version.bucket);
        if !self.is_published(version) || !self.switch_generations(from, to) {
            return nothing();
        }
        // Projectors that come later are compared by their own partitions only.
        self.files_read.remove(&to);
        self.empty_allowed.remove(&to);
        let Some(set) = self.data_sets.get_mut(&id) else { return nothing() };
        for (known, version) in &mut set.versions {
            match version.stage {
                VersionStage::Current => version.stage = VersionStage::Kept,
                VersionStage::Loading if *known == number => version.stage = VersionStage::Current,
                VersionStage::Loading | VersionStage::Kept => {}
            }
        }
        catalog_changed()
    }

    /// Removes a version without readers.
    pub(in crate::state) fn drop_version(&mut self, id: BucketId, number: u64) -> Change {
        let stage = self.data_sets.get(&id).and_then(|set| set.versions.get(&number));
        match stage.map(|version| version.stage) {
            Some(VersionStage::Kept) => self.remove_version(id, number),
            _ => nothing(),
        }
    }

    fn data_set_of_command(&self, id: BucketId) -> Result<Arc<BucketInfo>> {
        let info = self.bucket_of_command(id)?;
        match self.data_sets.contains_key(&id) {
            true => Ok(info),
            false => {
                let name = &info.name;
                let what = format!("bucket \"{name}\" has no versions: it was not made FROM FILES");
                Err(Error::new(ErrorCode::Unsupported, what)
                    .with_hint("CREATE BUCKET … FROM FILES makes one that has"))
            }
        }
    }

    /// The versioned data sets, by their buckets.
    pub fn data_sets(&self) -> impl Iterator<Item = (BucketId, &DataSet)> {
        self.data_sets.iter().map(|(id, set)| (*id, set))
    }
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
