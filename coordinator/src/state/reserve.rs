//! The part of the state's room that is kept for administrators: an eighth. Whoever may define fills the rest, and an administrator can
//! still drop and define.
//!
//! The router checks the reserve before it sends the command of a user who is no administrator. The state itself does not know the sender.

use proto::model::catalog::Catalog;
use proto::model::index::IndexSpec;
use proto::rpc::command::Command;
use proto::{Error, ErrorCode, Result};

use super::limits::{
    DATA_SETS_MAX, DEFINITION_BYTES_IN_ALL_MAX, INDEXES_MAX, PLACES_IN_ALL_MAX, RECORD_BYTES_MAX,
    VBUCKETS_IN_ALL_MAX, encoded_bytes,
};
use super::room::{places, places_of};

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
        Command::CreateCopied { command, .. } => check_reserve(catalog, command),
        Command::CreateBucket { name, vbuckets: more, .. } => {
            let all: usize = vbuckets();
            check("vbuckets", all + usize::from(*more), VBUCKETS_IN_ALL_MAX)?;
            definitions(name.len() + RECORD_BYTES_MAX)
        }
        Command::CreateDataSet { name, .. } => {
            check("data sets", catalog.data_sets.len() + 1, DATA_SETS_MAX)?;
            definitions(name.len() + RECORD_BYTES_MAX)
        }
        Command::LoadVersion { bucket, .. } => {
            let set = catalog.bucket(bucket).and_then(|set| catalog.data_sets.get(&set.id));
            let (all, more): (usize, _) = (vbuckets(), set.map_or(0, |set| set.partitions));
            check("vbuckets", all + usize::from(more), VBUCKETS_IN_ALL_MAX)
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
        let index = std::sync::Arc::clone(index);
        let mut next = id;
        while catalog.indexes.len() < INDEXES_MAX / 8 * 7 - 1 {
            next.0 += 1;
            catalog.indexes.insert(next, std::sync::Arc::clone(&index));
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
    fn buckets_leave_vbuckets_for_administrators() {
        let mut catalog = with_bucket().catalog();
        let create = |vbuckets| match create_bucket_of("more", SourceKind::Push) {
            Command::CreateBucket { name, source, projectors, if_not_exists, .. } => {
                Command::CreateBucket { name, vbuckets, source, projectors, if_not_exists }
            }
            other => other,
        };
        let bucket = catalog.buckets.values_mut().next().expect("a bucket");
        std::sync::Arc::make_mut(bucket).vbuckets = (VBUCKETS_IN_ALL_MAX / 8 * 7 - 2) as u16;
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
