//! Decides if a catalog shows what a command has changed.

use std::sync::Arc;

use proto::model::catalog::Catalog;
use proto::model::copies::Copies;
use proto::model::data_set::DataSet;
use proto::model::index::{IndexInfo, IndexState};
use proto::rpc::api::CoordinatorChange;
use proto::rpc::command::Command;

/// True if a catalog shows the effect of a command.
pub(super) fn shows(catalog: &Catalog, command: &Command) -> bool {
    match command {
        Command::CreateBucket { name, .. } => catalog.bucket(name).is_some(),
        Command::CreateDataSet { name, .. } => catalog.bucket(name).is_some(),
        Command::LoadVersion { bucket, version, .. } => {
            data_set(catalog, bucket).is_none_or(|set| {
                let mut known = set.versions.values().map(|known| &known.name);
                let failed = set.failed.as_ref().map(|failed| &failed.name);
                known.any(|name| name == version) || failed == Some(version)
            })
        }
        Command::CancelVersion { bucket, version } => {
            let loading = data_set(catalog, bucket).and_then(DataSet::loading);
            loading.is_none_or(|(_, known)| known.name != *version)
        }
        Command::SetSliceBytesMax { index, bytes } => catalog.index(index).is_none_or(|index| {
            catalog.slice_bytes_max.get(&index.id).copied().unwrap_or(0) == *bytes
        }),
        Command::SetSeparateIncludedColumns { index, separate } => catalog
            .index(index)
            .is_none_or(|index| index.spec.separate_included_columns == *separate),
        Command::SetReplicas { index, replicas } => {
            catalog.index(index).is_none_or(|index| index.spec.replicas == *replicas)
        }
        Command::SetVersionIdle { bucket, idle_ms } => {
            data_set(catalog, bucket).is_none_or(|set| set.idle_ms == *idle_ms)
        }
        Command::CreateCopied { command, .. }
        | Command::On { command, .. }
        | Command::AllowEmpty { command } => shows(catalog, command),
        Command::SetCopies { bucket, copies } => {
            copies_of(catalog, bucket).is_none_or(|known| known.wanted == *copies)
        }
        Command::MoveBucket { bucket, to } => copies_of(catalog, bucket)
            .is_none_or(|known| known.move_to.unwrap_or(known.leader) == *to),
        Command::DropBucket { name, .. } => catalog.bucket(name).is_none(),
        Command::CreateIndex { spec, .. } => catalog.index(&spec.name).is_some(),
        Command::DropIndex { name, .. } => catalog.index(name).is_none(),
        Command::RenameIndex { from, before, .. } => {
            catalog.index(&before.name).is_none_or(|index| index.id != from.index)
        }
        Command::CancelBuild { name } => catalog.index(name).is_none_or(|index| {
            index.state != IndexState::Backfill && catalog.next_generation(index.id).is_none()
        }),
        Command::BuildGeneration { from, .. } => {
            let newest = catalog.newest_generations.get(&from.index);
            newest.is_some_and(|newest| *newest > from.generation)
                || !catalog.indexes.contains_key(&from.index)
        }
        Command::HandOver { bucket, vbuckets, to } => catalog.bucket(bucket).is_none_or(|bucket| {
            vbuckets.iter().all(|vbucket| {
                let transfer = bucket.assignment.transfer_of(*vbucket).map(|transfer| transfer.to);
                transfer.or(bucket.assignment.owner(*vbucket)) == Some(*to)
            })
        }),
        Command::CancelHandOver { bucket } => {
            catalog.bucket(bucket).is_none_or(|bucket| bucket.assignment.transfers().is_empty())
                && copies_of(catalog, bucket).is_none_or(|copies| copies.move_to.is_none())
        }
        Command::DrainNode { node, drain: true } => {
            let is_planned = |index: &IndexInfo| index.moves_all_from(*node);
            let serves = |index: &&Arc<IndexInfo>| index.state == IndexState::Maintenance;
            catalog.draining.contains(node)
                && catalog.indexes.values().filter(serves).all(|index| is_planned(index))
        }
        Command::DrainNode { node, drain: false } => !catalog.draining.contains(node),
        Command::RemoveNode { node } | Command::RemoveNodeForced { node } => {
            !catalog.nodes.contains_key(node)
        }
        Command::BuildIndexes { names, .. } => names
            .iter()
            .all(|name| catalog.index(name).is_none_or(|index| index.state != IndexState::Pending)),
        _ => true,
    }
}

/// The versions of a bucket.
fn data_set<'a>(catalog: &'a Catalog, bucket: &str) -> Option<&'a DataSet> {
    catalog.data_sets.get(&catalog.bucket(bucket)?.id)
}

/// True if a catalog shows a change of the coordinators.
pub(super) fn shows_change(catalog: &Catalog, change: &CoordinatorChange) -> bool {
    match change {
        CoordinatorChange::Add { node, .. } => catalog.nodes.contains_key(node),
        CoordinatorChange::Remove { node } => !catalog.nodes.contains_key(node),
    }
}

/// The copies of an embedded bucket.
fn copies_of<'a>(catalog: &'a Catalog, bucket: &str) -> Option<&'a Copies> {
    catalog.copies.get(&catalog.bucket(bucket)?.id)
}
