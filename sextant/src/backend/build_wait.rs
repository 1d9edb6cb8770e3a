//! Functions that wait for the end of a build.
//!
//! A build belongs to the catalog, not to the statement that waits for it. The statement watches
//! the catalog of its router until the index serves scans, has another definition, or was
//! dropped. `CANCEL BUILD` is a command that removes an index only while it is in the state
//! `backfill`, so it never removes an index that has just begun to serve. The build of an ALTER
//! INDEX may need a partition that the present version of a data set has lost. The build is then
//! restarted over the next version, and its statement waits for that.

use std::sync::Arc;

use proto::model::catalog::Catalog;
use proto::model::ids::{BucketId, Generation, IndexId, LocalIndexId};
use proto::model::index::IndexInfo;
use proto::{Error, ErrorCode, Result};
use router::Router;

/// Waits until an index, or one generation of it, serves scans. Returns an error if its build
/// ends in any other way.
pub(super) async fn wait_ready(
    router: &Router,
    index: IndexId,
    generation: Option<Generation>,
) -> Result<()> {
    let mut id = generation.map(|generation| LocalIndexId { index, generation });
    loop {
        let is_gone = |catalog: &Catalog| {
            id.map_or(index <= catalog.newest_index, |id| catalog.is_generation_dropped(id))
        };
        // The catalog may be older than the statement.
        let before =
            router.wait_catalog(|now| find(now, index, id).is_some() || is_gone(now)).await;
        let before = find(&before, index, id).cloned();
        let decided = |now: &Catalog| {
            find(now, index, id).map_or_else(|| is_gone(now), |info| info.state.is_readable())
        };
        let catalog = router.wait_catalog(decided).await;
        if find(&catalog, index, id).is_some() {
            return Ok(());
        }
        match before.as_deref().and_then(|before| successor(&catalog, before)) {
            Some(next) => id = Some(next),
            None => return Err(dropped_error(&catalog, index, before.as_deref())),
        }
    }
}

/// Returns the generation that has replaced the generation `gone`: it has an equal definition,
/// over the next version of the data set.
fn successor(catalog: &Catalog, gone: &IndexInfo) -> Option<LocalIndexId> {
    let shown = catalog.indexes.get(&gone.id).filter(|shown| shown.state.is_readable())?;
    let next = catalog.next_generation(gone.id).into_iter().chain([shown]);
    let is_same = |info: &&Arc<IndexInfo>| {
        info.generation > gone.generation && info.bucket != gone.bucket && info.spec == gone.spec
    };
    next.filter(is_same).map(|info| info.local_id()).next()
}

/// Waits until a version of a data set is current, or has been current before. Returns an error
/// if its loading ends in any other way.
pub(super) async fn wait_version(router: &Router, data_set: BucketId, number: u64) -> Result<()> {
    // A catalog that is older than the statement does not contain the version.
    let is_decided = |catalog: &Catalog| {
        let set = catalog.data_sets.get(&data_set);
        let loads = |(loading, _)| loading == number;
        set.is_none_or(|set| set.newest >= number && !set.loading().is_some_and(loads))
    };
    let before = router.catalog();
    let name = before.buckets.get(&data_set).map_or("", |bucket| &bucket.name);
    let catalog = router.wait_catalog(is_decided).await;
    version_result(&catalog, (data_set, name), number)
}

/// Returns the result of the wait for a version according to a catalog.
fn version_result(catalog: &Catalog, (id, bucket): (BucketId, &str), number: u64) -> Result<()> {
    let Some(set) = catalog.data_sets.get(&id) else {
        let message = format!("bucket \"{bucket}\" was dropped while a version of it was loaded");
        return Err(Error::new(ErrorCode::Unknown, message));
    };
    let current = set.current().map_or(0, |(current, _)| current);
    if set.versions.contains_key(&number) {
        return Ok(());
    }
    if let Some(failed) = set.failed.as_ref().filter(|failed| failed.number == number) {
        let message = format!(
            "version '{}' of bucket \"{bucket}\" could not be loaded: {}",
            failed.name, failed.why
        );
        return Err(Error::new(ErrorCode::InvalidText, message)
            .with_hint("what serves is as it was; mend the files and load the version again"));
    }
    // The version may have been current for a moment, and dropped again.
    if current > number {
        return Ok(());
    }
    let message =
        format!("version {number} of bucket \"{bucket}\" has ended before it was current");
    Err(Error::new(ErrorCode::BuildCancelled, message).with_hint(
        "another session has used CANCEL VERSION, or it has failed and another one was begun; what serves is as it was",
    ))
}

/// Finds an index in a catalog, by its id and optionally by the id of one generation.
fn find(catalog: &Catalog, index: IndexId, id: Option<LocalIndexId>) -> Option<&Arc<IndexInfo>> {
    match id {
        Some(id) => catalog.local_index(id),
        None => catalog.indexes.get(&index),
    }
}

/// Returns the error for a wait whose index was dropped.
fn dropped_error(catalog: &Catalog, index: IndexId, before: Option<&IndexInfo>) -> Error {
    if let Some(info) = before.filter(|info| !catalog.buckets.contains_key(&info.bucket)) {
        let (name, bucket) = (&info.spec.name, &info.spec.bucket);
        let message = format!("bucket \"{bucket}\" was dropped while index \"{name}\" was built");
        return Error::new(ErrorCode::Unknown, message);
    }
    // A build may have ended before this process received a catalog that contains it.
    if let Some(serving) = catalog.indexes.get(&index) {
        let name = &serving.spec.name;
        let message = format!("the build for index \"{name}\" was cancelled");
        return Error::new(ErrorCode::BuildCancelled, message)
            .with_hint("another session has used CANCEL BUILD; the index serves as it did before");
    }
    let Some(info) = before else {
        let message = format!("the build of index {index} was cancelled: the index was removed");
        return Error::new(ErrorCode::BuildCancelled, message);
    };
    let name = &info.spec.name;
    let message = format!("the build of index \"{name}\" was cancelled, and the index was removed");
    Error::new(ErrorCode::BuildCancelled, message).with_hint(
        "another session has used CANCEL BUILD or DROP INDEX; nothing of the index is left",
    )
}

#[cfg(test)]
mod tests {
    use proto::model::bucket::{BucketInfo, SourceKind};
    use proto::model::data_set::{DataSet, FailedVersion};
    use proto::model::ids::{BucketId, NodeId};
    use proto::model::index::{IndexSpec, IndexState};

    use super::*;

    #[test]
    fn a_missing_build_is_explained() {
        let (id, of) = (IndexId(3), BucketId(1));
        let info = IndexInfo::new(id, of, IndexSpec::new("i", "b"), vec![vec![NodeId(9)]]);
        let bucket = BucketInfo::new(of, "b", 4, SourceKind::Embedded, NodeId(1));
        let mut catalog = Catalog::default();
        let dropped = dropped_error(&catalog, id, Some(&info));
        assert_eq!(dropped.code, ErrorCode::Unknown, "{dropped}");
        catalog.buckets.insert(of, Arc::new(bucket));
        for (before, name) in [(Some(&info), "index \"i\""), (None, "index 3")] {
            let error = dropped_error(&catalog, id, before);
            assert_eq!(error.code.sqlstate(), "57014");
            assert!(error.message.contains("was cancelled"), "{error}");
            assert!(error.message.contains(name), "{error}");
        }
        catalog.indexes.insert(id, Arc::new(info.clone()));
        // A router may receive no catalog before the end of the build.
        for before in [Some(&info), None] {
            let hint = dropped_error(&catalog, id, before).hint.expect("what serves");
            assert!(hint.contains("the index serves as it did before"), "{hint}");
        }
    }

    #[test]
    fn a_wait_follows_a_restarted_build() {
        let (id, spec) = (IndexId(3), IndexSpec::new("i", "b"));
        let changed = IndexSpec { slices: 2, ..spec.clone() };
        let info = |bucket, generation, spec: &IndexSpec, state| {
            let generation = Generation(generation);
            let info = IndexInfo::new(id, BucketId(bucket), spec.clone(), vec![vec![NodeId(9)]]);
            IndexInfo { generation, state, ..info }
        };
        let gone = info(1, 5, &changed, IndexState::Backfill);
        let found = |shown: IndexInfo, next: Option<IndexInfo>| {
            let mut catalog = Catalog::default();
            catalog.indexes.insert(id, Arc::new(shown));
            catalog.generations.extend(next.map(|next| (next.local_id(), Arc::new(next))));
            successor(&catalog, &gone).map(|id| id.generation.0)
        };
        let serves = || info(1, 4, &spec, IndexState::Maintenance);
        let next = |bucket, spec| Some(info(bucket, 6, spec, IndexState::Backfill));
        assert_eq!(found(serves(), None), None, "it was cancelled");
        assert_eq!(found(serves(), next(2, &changed)), Some(6));
        assert_eq!(found(serves(), next(2, &spec)), None, "another definition");
        assert_eq!(found(serves(), next(1, &changed)), None, "another statement has begun it");
        assert_eq!(
            found(info(2, 6, &changed, IndexState::Maintenance), None),
            Some(6),
            "it serves"
        );
    }

    #[test]
    fn a_failed_load_has_its_reason() {
        let (id, named) = (BucketId(5), (BucketId(5), "b"));
        let mut catalog = Catalog::default();
        let dropped = version_result(&catalog, named, 1).unwrap_err();
        assert_eq!((dropped.code, dropped.message.contains("dropped")), (ErrorCode::Unknown, true));
        catalog.data_sets.insert(id, DataSet::new(4, 1, 1_000));
        let cancelled = version_result(&catalog, named, 1).unwrap_err();
        assert_eq!(cancelled.code, ErrorCode::BuildCancelled);
        let (name, why) = ("v1".to_owned(), "people/1.csv line 3: no id".to_owned());
        let failed = FailedVersion { number: 1, name, why };
        catalog.data_sets.get_mut(&id).unwrap().failed = Some(failed);
        let failed = version_result(&catalog, named, 1).unwrap_err();
        assert!(failed.message.contains("'v1' of bucket \"b\""), "{failed}");
        assert!(failed.message.contains("line 3: no id"), "{failed}");
        let other = version_result(&catalog, named, 2).unwrap_err();
        assert_eq!(other.code, ErrorCode::BuildCancelled, "another one has failed");
    }
}
