use std::sync::Arc;
use std::time::Duration;

use proto::model::bucket::{BucketInfo, SourceKind};
use proto::model::catalog::Catalog;
use proto::model::copies::Copies;
use proto::model::data_set::{DataSet, Files, Version, VersionStage};
use proto::model::identity::UniqueId;
use proto::model::ids::{
    BucketId, Epoch, Generation, IndexId, LocalIndexId, MoveId, NodeId, SliceNo, UserId,
};
use proto::model::index::{IndexInfo, IndexSpec};
use proto::model::moves::{EndedMove, MoveStage, SliceMove};
use proto::model::users::{Grants, Privilege, User, UserLimits, Users};

use tokio::time::Instant;

use super::view::{View, ViewCell, Views};
use crate::auth::newest_users::still_valid;
use crate::principal::{Principal, Proof};

fn user(grants: Grants) -> Arc<User> {
    Arc::new(User {
        id: UserId(1),
        name: "ada".into(),
        verifier: None,
        until_unix_ms: None,
        tokens: Vec::new(),
        grants,
        limits: UserLimits::default(),
        secret_no: 0,
    })
}

fn on(buckets: &[(u64, Privilege)]) -> Grants {
    let each =
        |(id, privilege): &(u64, Privilege)| (BucketId(*id), [*privilege].into_iter().collect());
    Grants { all: Default::default(), buckets: buckets.iter().map(each).collect() }
}

/// Returns a catalog of the buckets 1 and 2 with the indexes 1 and 2, and the data set 3 with the
/// version 4 and the index 4.
fn catalog() -> Arc<Catalog> {
    let bucket = |id: u64| {
        let info =
            BucketInfo::new(BucketId(id), format!("b{id}"), 4, SourceKind::Embedded, NodeId(1));
        (info.id, Arc::new(info))
    };
    let version = Version {
        name: "v".into(),
        bucket: BucketId(4),
        files: Files { pattern: "x.csv".into(), id: "id".into() },
        nodes: Vec::new(),
        stage: VersionStage::Current,
        partitions: Vec::new(),
    };
    let mut set = DataSet::new(1, 1, 0);
    set.versions.insert(1, version);
    let older = |id: u64| LocalIndexId { index: IndexId(id), generation: Generation(0) };
    let ended = |id: u64| EndedMove {
        index: IndexId(id),
        was: SliceMove {
            id: MoveId(id),
            slice: SliceNo(0),
            from: None,
            to: None,
            stage: MoveStage::Done,
            epoch: Epoch(1),
        },
        undone: Some(format!("of i{id}")),
    };
    Arc::new(Catalog {
        buckets: (1..=4).map(bucket).collect(),
        indexes: [1, 2, 4].map(index).into(),
        data_sets: [(BucketId(3), set)].into(),
        slice_bytes_max: [1, 2].map(|id| (IndexId(id), 1)).into(),
        newest_generations: [1, 2].map(|id| (IndexId(id), Generation(1))).into(),
        bucket_ids: (1..=4).map(|id| (BucketId(id), UniqueId::of([id, 0]))).collect(),
        dropped_buckets: vec![(BucketId(9), UniqueId::of([9, 0]))],
        copies: (1..=4).map(|id| (BucketId(id), Copies::single(NodeId(1)))).collect(),
        generations: [1, 2].map(|id| (older(id), index(id).1)).into(),
        ended_moves: [1, 2].map(ended).into(),
        ..Catalog::default()
    })
}

/// Returns an index on the bucket with this id.
fn index(id: u64) -> (IndexId, Arc<IndexInfo>) {
    let spec = IndexSpec::new(format!("i{id}"), format!("b{id}"));
    let info = IndexInfo::new(IndexId(id), BucketId(id), spec, vec![vec![NodeId(9)]]);
    (info.id, Arc::new(info))
}

fn view(grants: Grants) -> Arc<View> {
    let users = Arc::new(Users::default());
    ViewCell::default().get(&catalog(), &users, &user(grants))
}

fn names(catalog: &Catalog) -> (Vec<u64>, Vec<u64>) {
    let buckets = catalog.buckets.keys().map(|id| id.0).collect();
    (buckets, catalog.indexes.keys().map(|id| id.0).collect())
}

#[test]
fn a_user_knows_the_buckets_on_which_it_has_a_privilege_with_their_indexes_and_versions() {
    assert_eq!(names(view(on(&[])).visible_catalog()), (vec![], vec![]));
    assert_eq!(names(view(on(&[(1, Privilege::Scan)])).visible_catalog()), (vec![1], vec![1]));
    assert_eq!(names(view(on(&[(3, Privilege::Write)])).visible_catalog()), (vec![3, 4], vec![4]));
    let all = Grants { all: [Privilege::Monitor].into_iter().collect(), ..Grants::default() };
    assert_eq!(names(view(all).visible_catalog()), (vec![1, 2, 3, 4], vec![1, 2, 4]));
}

#[test]
fn nothing_in_a_filtered_catalog_tells_of_another_bucket() {
    let view = view(on(&[(1, Privilege::Scan)]));
    let printed = format!("{:?}", view.visible_catalog());
    for other in ["b2", "i2", "b3", "b4", "BucketId(2)", "BucketId(9)", "IndexId(2)"] {
        assert!(!printed.contains(other), "{other}: {printed}");
    }
    let shown = view.visible_catalog();
    assert_eq!(shown.copies.len() + shown.generations.len() + shown.ended_moves.len(), 3);
}

#[test]
fn figures_are_of_buckets_that_the_user_may_monitor() {
    let view = view(on(&[(1, Privilege::Scan), (2, Privilege::Monitor), (3, Privilege::Admin)]));
    assert_eq!(names(view.monitored_catalog()), (vec![2, 3, 4], vec![2, 4]));
}

#[test]
fn a_version_has_the_privileges_of_its_data_set() {
    let view = view(on(&[(3, Privilege::Scan)]));
    assert!(view.privileges_on(BucketId(4)).allow(Privilege::Scan));
    assert!(!view.privileges_on(BucketId(4)).allow(Privilege::Write));
    assert!(view.privileges_on(BucketId(1)).is_empty());
}

#[test]
fn a_view_is_kept_while_neither_the_catalog_nor_the_users_are_others() {
    let (cell, user) = (ViewCell::default(), user(on(&[(1, Privilege::Scan)])));
    let (catalog_then, users_then) = (catalog(), Arc::new(Users::default()));
    let first = cell.get(&catalog_then, &users_then, &user);
    assert!(Arc::ptr_eq(&first, &cell.get(&catalog_then, &users_then, &user)));
    assert!(!Arc::ptr_eq(&first, &cell.get(&catalog(), &users_then, &user)));
    let other = cell.get(&catalog_then, &Arc::new(Users::default()), &user);
    assert!(!Arc::ptr_eq(&first, &other));
    // A plan is kept by the identity of its objects.
    let id = IndexId(1);
    assert!(Arc::ptr_eq(&first.visible_catalog().indexes[&id], &catalog_then.indexes[&id]));
}

#[test]
fn the_views_of_users_without_sessions_are_forgotten() {
    let views = Views::default();
    let held = views.of(UserId(0));
    for id in 1..5_000 {
        drop(views.of(UserId(id)));
    }
    assert!(views.len() <= 1_025, "{}", views.len());
    assert!(Arc::ptr_eq(&held, &views.of(UserId(0))));
}

/// `SHOW USERS` of a user that is not an administrator has one row.
#[test]
fn a_user_knows_itself_and_an_administrator_knows_all() {
    let own = user(on(&[(1, Privilege::Admin)]));
    let admin = user(Grants { all: [Privilege::Admin].into_iter().collect(), ..Grants::default() });
    let other = Arc::new(User { name: "eve".into(), ..User::clone(&own) });
    let by_name = [&own, &other].map(|user| (user.name.clone(), Arc::clone(user))).into();
    let known = Arc::new(Users { cas: 7, by_name, ..Users::default() });
    let shown = super::reports::users(&known, &own);
    assert_eq!(shown.by_name.keys().collect::<Vec<_>>(), ["ada"]);
    assert!(Arc::ptr_eq(&super::reports::users(&known, &admin), &known));
}

/// A check consists of three parts: the user still exists, the view is the newest, and the
/// privileges suffice. The best of many short rounds counts, because other work of the machine
/// slows down the rest.
#[test]
fn a_check_of_a_prepared_statement_takes_less_than_a_microsecond() {
    let catalog = catalog();
    for grants in [on(&[(1, Privilege::Scan)]), on(&all_of(8_192))] {
        let user = user(grants);
        let mut users = Users::default();
        for n in 0..1_000 {
            let name = format!("user {n}");
            users.by_name.insert(name.clone(), Arc::new(User { name, ..User::clone(&user) }));
        }
        users.by_name.insert(user.name.clone(), Arc::clone(&user));
        let (users, cell) = (Arc::new(users), ViewCell::default());
        let Principal::User(who) = Principal::user(&user, Proof::Password(0), None) else {
            panic!("a user is one")
        };
        let check = || {
            let found = still_valid(&users, &who, 0).expect("the user is there");
            cell.get(&catalog, &users, found).privileges_on(BucketId(1)).allow(Privilege::Scan)
        };
        // A machine that is slow is so for the look-up of a name too.
        let look_up = || users.by_name.contains_key(std::hint::black_box(&user.name));
        let [best, name] = best_of([&check, &look_up]);
        println!("{} grants: {best:?}, a name {name:?}", user.grants.buckets.len());
        assert!(best < Duration::from_micros(1).max(5 * name), "{best:?}, a name {name:?}");
    }
}

#[test]
fn a_password_is_valid_until_its_time_and_not_after_it() {
    let mut users = Users::default();
    let until = User { until_unix_ms: Some(1_000), ..User::clone(&user(Grants::default())) };
    let Principal::User(who) = Principal::user(&until, Proof::Password(0), None) else {
        panic!("a user is one")
    };
    users.by_name.insert(until.name.clone(), Arc::new(until));
    assert!(still_valid(&users, &who, 999).is_some());
    assert!(still_valid(&users, &who, 1_000).is_none());
}

/// Returns the durations of two checks, each in its best round. Their rounds alternate, since the
/// speed of a machine varies.
fn best_of(checks: [&dyn Fn() -> bool; 2]) -> [Duration; 2] {
    const CHECKS: u32 = 100;
    let round = |check: &dyn Fn() -> bool| {
        let began = Instant::now();
        (0..CHECKS).for_each(|_| assert!(std::hint::black_box(check())));
        began.elapsed() / CHECKS
    };
    let rounds = (0..4_000).map(|_| checks.map(round));
    rounds.reduce(|[a, b], [c, d]| [a.min(c), b.min(d)]).expect("some rounds")
}

fn all_of(count: u64) -> Vec<(u64, Privilege)> {
    (1..=count).map(|id| (id, Privilege::Scan)).collect()
}
