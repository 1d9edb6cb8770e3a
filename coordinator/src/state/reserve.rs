//! The part of the state's room that is kept for administrators: an eighth. Whoever may define fills the rest, and an administrator can
//! still drop and define.
//!
//! The router checks the reserve before it sends the command of a user who is no administrator. The state itself does not know the sender.
//! The leader checks it before an index gets more slices by itself.

use std::sync::Arc;

use proto::model::catalog::Catalog;
use proto::model::index::{IndexInfo, IndexSpec, IndexState};
use proto::rpc::command::Command;
use proto::{Error, ErrorCode, Result};

use super::context::StateContext;
use super::limits::{
    DATA_SETS_MAX, DEFINITION_BYTES_IN_ALL_MAX, INDEXES_MAX, PLACES_IN_ALL_MAX, RECORD_BYTES_MAX,
    VBUCKETS_IN_ALL_MAX, encoded_bytes,
};
use super::room::{definition_bytes, places, places_of};

/// The part of a limit that is for everybody.
const fn for_all(limit: usize) -> usize {
    limit / 8 * 7
}

/// Refuses a definition that would take what is kept for administrators.
pub fn check_reserve(catalog: &Catalog, command: &Command) -> Result<()> {
    let vbuckets = || catalog.buckets.values().map(|bucket| usize::from(bucket.vbuckets)).sum();
    let indexes = || catalog.indexes.values().chain(catalog.generations.values());
    let definitions = |more: usize| {
        let specs: usize = indexes().map(|index| encoded_bytes(&*index.spec)).sum();
        let names = catalog.buckets.values().map(|bucket| bucket.name.len() + RECORD_BYTES_MAX);
        let bytes = specs + names.sum::<usize>() + more;
        check("bytes of definitions", bytes, DEFINITION_BYTES_IN_ALL_MAX)
    };
    let check_places = |more: usize| {
        let all: usize = indexes().map(|index| places_of(index)).sum();
        check("copies of slices", all + more, PLACES_IN_ALL_MAX)
    };
    let index = |spec: &IndexSpec| {
        check("indexes", indexes().count() + 1, INDEXES_MAX)?;
        check_places(places(spec))?;
        definitions(encoded_bytes(spec))
    };
    match command {
        // With IF NOT EXISTS, an object that is there takes no room.
        Command::CreateBucket { name, if_not_exists: true, .. }
        | Command::CreateDataSet { name, if_not_exists: true, .. }
            if catalog.bucket(name).is_some() =>
        {
            Ok(())
        }
        Command::CreateIndex { spec, if_not_exists: true, .. }
            if catalog.index(&spec.name).is_some() =>
        {
            Ok(())
        }
        Command::CreateCopied { command, .. } | Command::AllowEmpty { command } => {
            check_reserve(catalog, command)
        }
        Command::CreateBucket { name, vbuckets: more, .. } => {
            let all: usize = vbuckets();
            check("vbuckets", all + usize::from(*more), VBUCKETS_IN_ALL_MAX)?;
            definitions(name.len() + RECORD_BYTES_MAX)
        }
        Command::CreateDataSet { name, .. } => {
            check("data sets", catalog.data_sets.len() + 1, DATA_SETS_MAX)?;
            definitions(name.len() + RECORD_BYTES_MAX)
        }
        Command::LoadVersion { bucket, version, .. } => {
            let set = catalog.bucket(bucket).and_then(|set| catalog.data_sets.get(&set.id));
            let (all, more): (usize, _) = (vbuckets(), set.map_or(0, |set| set.partitions));
            check("vbuckets", all + usize::from(more), VBUCKETS_IN_ALL_MAX)?;
            // The version has a bucket of its own, and a generation of each index that is not deferred.
            let current = catalog.read_bucket(bucket).map(|current| current.id);
            let own = || {
                let built = |index: &&Arc<IndexInfo>| index.state != IndexState::Pending;
                catalog.indexes.values().filter(built).filter(|index| Some(index.bucket) == current)
            };
            check("indexes", indexes().count() + own().count(), INDEXES_MAX)?;
            check_places(own().map(|index| places(&index.spec)).sum())?;
            let specs: usize = own().map(|index| encoded_bytes(&*index.spec)).sum();
            definitions(specs + bucket.len() + version.len() + RECORD_BYTES_MAX)
        }
        Command::SetReplicas { index, replicas } => {
            let Some(index) = catalog.index(index) else { return Ok(()) };
            let more = usize::from(*replicas).saturating_sub(usize::from(index.spec.replicas));
            if more == 0 {
                return Ok(());
            }
            check_places(more * usize::from(index.spec.slices))
        }
        Command::CreateIndex { spec, .. } => index(spec),
        Command::BuildGeneration { spec, .. } => index(spec),
        // The others drop, or change what is there.
        _ => Ok(()),
    }
}

impl StateContext {
    /// True if a generation with this definition leaves the administrators their part.
    pub(crate) fn has_room_for_all(&self, spec: &IndexSpec) -> bool {
        let own: usize = self.indexes().map(|record| places_of(&record.info)).sum();
        self.indexes().count() < for_all(INDEXES_MAX)
            && own + places(spec) <= for_all(PLACES_IN_ALL_MAX)
            && self.definition_bytes() + definition_bytes(spec)
                <= for_all(DEFINITION_BYTES_IN_ALL_MAX)
    }
}

fn check(what: &str, count: usize, limit: usize) -> Result<()> {
    let most = for_all(limit);
    if count <= most {
        return Ok(());
    }
    let text = format!(
        "the cluster has no room for more {what}: {most} are for all users, the rest up to {limit} for administrators"
    );
    Err(Error::new(ErrorCode::OverLimit, text).with_hint(
        "drop what is no longer needed: SHOW INDEXES and SHOW BUCKETS list it; or ask an administrator",
    ))
}

#[cfg(test)]
mod tests {
    use proto::model::bucket::SourceKind;

    use super::super::data_sets::tests::{load, switched, with_data_set};
    use super::super::tests::{create_bucket_of, done, spec, with_bucket};
    use super::*;

    fn create_index() -> Command {
        Command::CreateIndex { spec: spec("more"), defer_build: true, if_not_exists: false }
    }

    #[test]
    fn an_eighth_of_the_room_is_for_administrators() {
        let mut state = with_bucket();
        let index =
            Command::CreateIndex { spec: spec("i"), defer_build: true, if_not_exists: false };
        done(&mut state, index);
        let mut catalog = state.catalog();
        let (&id, index) = catalog.indexes.first_key_value().expect("an index");
        let index = Arc::clone(index);
        let mut next = id;
        while catalog.indexes.len() < INDEXES_MAX / 8 * 7 - 1 {
            next.0 += 1;
            catalog.indexes.insert(next, Arc::clone(&index));
        }
        check_reserve(&catalog, &create_index()).expect("the last one for all");
        next.0 += 1;
        catalog.indexes.insert(next, index);
        let error = check_reserve(&catalog, &create_index()).expect_err("the reserve");
        assert_eq!(error.code, ErrorCode::OverLimit);
        assert!(error.message.contains("1792 are for all"), "{error}");
        let drop = Command::DropIndex { name: "i".into(), if_exists: false };
        check_reserve(&catalog, &drop).expect("a drop");
        let again =
            Command::CreateIndex { spec: spec("i"), defer_build: true, if_not_exists: true };
        check_reserve(&catalog, &again).expect("it is there");
    }

    #[test]
    fn slices_leave_places_for_administrators() {
        let mut state = with_bucket();
        done(&mut state, create_index());
        let catalog = state.catalog();
        let most = PLACES_IN_ALL_MAX / 8 * 7;
        let own: usize = catalog.indexes.values().map(|index| places_of(index)).sum();
        let of = |slices: usize, replicas| {
            let spec = IndexSpec { slices: slices as u16, replicas, ..spec("other") };
            Command::CreateIndex { spec, defer_build: true, if_not_exists: false }
        };
        let slices = (most - own) / 8;
        check_reserve(&catalog, &of(slices, 7)).expect("the last ones for all");
        let refused = check_reserve(&catalog, &of(slices + 1, 7)).expect_err("the reserve");
        assert!(refused.message.contains("copies of slices"), "{refused}");
        let set = |replicas| Command::SetReplicas { index: "more".into(), replicas };
        check_reserve(&catalog, &set(0)).expect("it takes nothing");
        check_reserve(&catalog, &set(2)).expect("there is room");
    }

    #[test]
    fn an_index_that_grows_by_itself_leaves_places_for_administrators() {
        let mut state = with_bucket();
        done(&mut state, create_index());
        let own: usize = state.indexes().map(|record| places_of(&record.info)).sum();
        let free = PLACES_IN_ALL_MAX / 8 * 7 - own;
        let of = |slices: usize| IndexSpec { slices: slices as u16, replicas: 7, ..spec("more") };
        assert!(state.has_room_for_all(&of(free / 8)));
        assert!(!state.has_room_for_all(&of(free / 8 + 1)));
    }

    #[test]
    fn a_version_leaves_places_for_administrators() {
        let mut state = with_data_set();
        switched(&mut state, "v1");
        let mut catalog = state.catalog();
        let next = load("v2");
        check_reserve(&catalog, &next).expect("there is room");
        // Its generation of the index that serves has as many copies of slices as that.
        let index = catalog.indexes.values_mut().next().expect("the index that serves");
        let index = Arc::make_mut(index);
        let slices = (PLACES_IN_ALL_MAX / 16 * 7) as u16;
        index.spec = Arc::new(IndexSpec { slices, replicas: 0, ..(*index.spec).clone() });
        let refused = check_reserve(&catalog, &next).expect_err("the reserve");
        assert!(refused.message.contains("copies of slices"), "{refused}");
    }

    #[test]
    fn buckets_leave_vbuckets_for_administrators() {
        let mut catalog = with_bucket().catalog();
        let create = |vbuckets| match create_bucket_of("more", SourceKind::Push) {
            Command::CreateBucket { name, source, projectors, if_not_exists, .. } => {
                Command::CreateBucket { name, vbuckets, source, projectors, if_not_exists }
            }
            other => other,
        };
        let bucket = catalog.buckets.values_mut().next().expect("a bucket");
        Arc::make_mut(bucket).vbuckets = (VBUCKETS_IN_ALL_MAX / 8 * 7 - 2) as u16;
        check_reserve(&catalog, &create(2)).expect("the last ones for all");
        let copied = Command::CreateCopied { copies: 2, command: Box::new(create(3)) };
        for command in [create(3), copied] {
            assert_eq!(
                check_reserve(&catalog, &command).expect_err("the reserve").code,
                ErrorCode::OverLimit
            );
        }
    }
}
