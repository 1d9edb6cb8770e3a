use proto::model::data_set::DataSet;
use proto::model::ids::{Generation, IndexId};
use proto::model::index::IndexInfo;
use proto::model::rollback::NewestNumbers;
use proto::model::users::Secret32;
use proto::rpc::command::{
    Command, CreateDataSet, DropBucket, DropIndex, Expected, IndexReady, LoadVersion, Outcome,
    Proposal, RenameIndex, SetReplicas, SkipEpochs, encoded_bytes,
};

use super::*;
use crate::state::capacity::limits::{GRANTS_IN_ALL_MAX, TOKENS_IN_ALL_MAX, USERS_MAX};
use crate::state::tests::{
    apply, create_bucket, create_index, create_index_on, done, done_decided, refused, spec,
    with_bucket,
};
use crate::state::{Decisions, Effect, StateContext};

const FRESH: [u8; 32] = [9; 32];

fn users(command: UserCommand) -> Command {
    Command::Users(Box::new(command))
}

fn verifier(iterations: u32) -> ScramVerifier {
    let (stored_key, server_key) = (Secret32::new([1; 32]), Secret32::new([2; 32]));
    ScramVerifier { salt: [3; 16], iterations, stored_key, server_key }
}

fn password() -> NewSecret {
    NewSecret::Password { verifier: verifier(4_096), until_unix_ms: None }
}

fn token(until_unix_ms: u64) -> NewSecret {
    NewSecret::Token { sha256: Secret32::new([4; 32]), until_unix_ms }
}

fn create_as(name: &str, secret: Option<NewSecret>, first: bool) -> Command {
    let (limits, fresh) = (UserLimits::default(), Secret32::new(FRESH));
    users(UserCommand::Create { name: name.into(), secret, limits, fresh, first })
}

fn create(name: &str, secret: Option<NewSecret>) -> Command {
    create_as(name, secret, false)
}

fn alter(name: &str, change: UserChange) -> Command {
    users(UserCommand::Alter { name: name.into(), change })
}

fn drop_user(name: &str) -> Command {
    users(UserCommand::Drop { name: name.into(), if_exists: false })
}

fn set(privileges: &[Privilege]) -> Privileges {
    privileges.iter().copied().collect()
}

fn bucket(id: u64) -> GrantOn {
    GrantOn::Bucket(BucketId(id))
}

fn grant(user: &str, privileges: &[Privilege], on: GrantOn) -> Command {
    users(UserCommand::Grant { user: user.into(), privileges: set(privileges), on })
}

fn revoke(user: &str, privileges: &[Privilege], on: GrantOn) -> Command {
    users(UserCommand::Revoke { user: user.into(), privileges: set(privileges), on })
}

fn user(state: &StateContext, name: &str) -> Arc<User> {
    Arc::clone(state.users().find_by_name(name).unwrap())
}

/// Returns a state with bucket "b" and the first user, "root", who has a password.
fn with_root() -> StateContext {
    let mut state = with_bucket();
    done(&mut state, create_as("root", Some(password()), true));
    state
}

#[test]
fn the_first_user_may_do_everything_and_there_is_only_one_first() {
    let mut state = with_root();
    assert_eq!(user(&state, "root").grants.all, set(&[Privilege::Admin]));
    assert!(state.users().mock_key.matches(&FRESH));
    assert_eq!(refused(&mut state, create_as("again", None, true)), ErrorCode::WrongState);
    assert_eq!(refused(&mut state, create("root", None)), ErrorCode::UserExists);
    let later = UserCommand::Create {
        name: "ada".into(),
        secret: None,
        limits: UserLimits { sessions_max: Some(3), statements_max: Some(0) },
        fresh: Secret32::new([8; 32]),
        first: false,
    };
    done(&mut state, users(later));
    assert!(state.users().mock_key.matches(&FRESH), "the salts of unknown users stay");
    let ada = user(&state, "ada");
    assert_eq!(ada.grants, Default::default(), "nothing is allowed by itself");
    assert_eq!(ada.limits, UserLimits { sessions_max: Some(3), statements_max: None });
}

#[test]
fn names_are_bounded_and_have_no_control_characters() {
    let mut state = with_bucket();
    for name in ["".into(), "x".repeat(64), "a\nb".into(), "a\0".into(), "\u{85}".into()] {
        assert_eq!(refused(&mut state, create(&name, None)), ErrorCode::InvalidParameter);
    }
    for name in ["x".repeat(63), "Ada Lovelace".into(), "ж".repeat(31)] {
        done(&mut state, create(&name, None));
    }
}

#[test]
fn a_change_of_the_password_gives_it_another_number_and_a_name_made_anew_is_another_user() {
    let mut state = with_root();
    done(&mut state, create("ada", Some(password())));
    let first = user(&state, "ada");
    assert_eq!(first.secret_no, state.cas(), "the number of the command");
    done(&mut state, alter("ada", UserChange::Secret(password())));
    let second = user(&state, "ada");
    assert!(second.secret_no > first.secret_no);
    done(&mut state, alter("ada", UserChange::DropPassword));
    let third = user(&state, "ada");
    assert!(third.verifier.is_none() && third.secret_no > second.secret_no);
    let cas = state.cas();
    done(&mut state, alter("ada", UserChange::DropPassword));
    assert_eq!(state.cas(), cas, "there was none");
    done(&mut state, drop_user("ada"));
    assert_eq!(refused(&mut state, drop_user("ada")), ErrorCode::UnknownUser);
    let absent = UserCommand::Drop { name: "ada".into(), if_exists: true };
    let outcome = done(&mut state, users(absent));
    let cas = state.users().cas;
    assert_eq!(outcome, Outcome::User { id: None, token: None, cas });
    done(&mut state, create("ada", Some(password())));
    assert!(user(&state, "ada").id > first.id);
}

#[test]
fn verifiers_have_neither_too_few_iterations_nor_too_many() {
    let mut state = with_bucket();
    for iterations in [0, 4_095, 100_001, u32::MAX] {
        let verifier = verifier(iterations);
        let secret = NewSecret::Password { verifier, until_unix_ms: None };
        let code = refused(&mut state, create("ada", Some(secret)));
        assert_eq!(code, ErrorCode::InvalidParameter);
    }
}

#[test]
fn tokens_have_numbers_that_are_never_used_twice() {
    let mut state = with_root();
    let outcome = done(&mut state, create("ada", Some(token(500))));
    let cas = state.users().cas;
    let (id, first) = (Some(UserId(2)), Some(TokenId(1)));
    assert_eq!(outcome, Outcome::User { id, token: first, cas });
    done(&mut state, alter("ada", UserChange::DropToken(TokenId(1))));
    let again = alter("ada", UserChange::DropToken(TokenId(1)));
    assert_eq!(refused(&mut state, again), ErrorCode::Unknown);
    let secret_no = user(&state, "ada").secret_no;
    (0..16).for_each(|_| drop(done(&mut state, alter("ada", UserChange::Secret(token(500))))));
    let more = alter("ada", UserChange::Secret(token(500)));
    assert_eq!(refused(&mut state, more), ErrorCode::OverLimit);
    let ada = user(&state, "ada");
    assert_eq!(ada.tokens[0].id, TokenId(2));
    assert_eq!(ada.secret_no, secret_no, "sessions with the password go on");
}

#[test]
fn privileges_are_added_and_taken_back_by_bucket_and_on_all() {
    use Privilege::{Define, Scan, Write};
    let mut state = with_root();
    done(&mut state, create_bucket("other"));
    done(&mut state, create("ada", None));
    done(&mut state, grant("ada", &[Scan, Write], bucket(1)));
    done(&mut state, grant("ada", &[Define], bucket(1)));
    done(&mut state, grant("ada", &[Scan], GrantOn::All));
    let b = BucketId(1);
    let grants = |state: &StateContext| user(state, "ada").grants.clone();
    assert_eq!(grants(&state).buckets[&b], set(&[Scan, Write, Define]));
    assert_eq!(grants(&state).on_bucket(BucketId(9)), set(&[Scan]));
    let cas = (state.cas(), state.users().cas);
    done(&mut state, grant("ada", &[Scan], GrantOn::All));
    done(&mut state, revoke("ada", &[Define], bucket(2)));
    assert_eq!((state.cas(), state.users().cas), cas, "nothing has changed");
    done(&mut state, revoke("ada", &[Define], bucket(1)));
    assert_eq!(grants(&state).buckets[&b], set(&[Scan, Write]));
    done(&mut state, revoke("ada", &[Scan], GrantOn::All));
    assert_eq!(grants(&state).all, Privileges::NONE);
    assert_eq!(grants(&state).buckets[&b], set(&[Write]), "on all means on each bucket as well");
    done(&mut state, revoke("ada", &[Write], bucket(1)));
    assert!(grants(&state).buckets.is_empty());
}

#[test]
fn privileges_on_what_is_no_bucket_or_that_mean_nothing_are_refused() {
    let mut state = with_root();
    done(&mut state, create_index(spec("i")));
    let (code, scan) = (ErrorCode::Changed, [Privilege::Scan]);
    assert_eq!(refused(&mut state, grant("root", &scan, bucket(9))), code);
    assert_eq!(refused(&mut state, revoke("root", &scan, bucket(9))), code);
    let nobody = grant("nobody", &[Privilege::Scan], GrantOn::All);
    assert_eq!(refused(&mut state, nobody), ErrorCode::UnknownUser);
    let from_elsewhere: Privileges = postcard::from_bytes(&[0x80]).unwrap();
    for privileges in [Privileges::NONE, from_elsewhere] {
        let (user, on) = ("root".to_owned(), GrantOn::All);
        let odd = users(UserCommand::Grant { user, privileges, on });
        assert_eq!(refused(&mut state, odd), ErrorCode::InvalidParameter);
    }
}

#[test]
fn privileges_end_with_their_bucket_and_a_new_bucket_of_the_name_has_none() {
    let mut state = with_root();
    done(&mut state, create("ada", None));
    done(&mut state, grant("ada", &[Privilege::Scan], bucket(1)));
    let cas = state.users().cas;
    let (_, effects) = apply(&mut state, DropBucket { bucket: BucketId(1), restrict: false });
    assert!(effects.contains(&Effect::UsersChanged) && state.users().cas > cas);
    done(&mut state, create_bucket("b"));
    assert!(user(&state, "ada").grants.buckets.is_empty());
    let cas = state.users().cas;
    done(&mut state, DropBucket { bucket: BucketId(2), restrict: false });
    assert_eq!(state.users().cas, cas, "nobody had any");
}

#[test]
fn a_data_set_has_privileges_and_its_versions_have_no_names() {
    let mut state = with_root();
    let set = DataSet::new(1, 1, 1_000);
    let (partitions, replication, idle_ms) = (set.partitions, set.replication, set.idle_ms);
    let (name, if_not_exists) = ("d".to_owned(), false);
    let create = Command::CreateDataSet(CreateDataSet {
        name,
        partitions,
        replication,
        idle_ms,
        if_not_exists,
    });
    done(&mut state, create);
    let (data_set, _) = state.data_sets().next().unwrap();
    done(&mut state, grant("root", &[Privilege::Scan], GrantOn::Bucket(data_set)));
    assert!(user(&state, "root").grants.buckets.contains_key(&data_set));
    let version = "v1".to_owned();
    let files = proto::model::data_set::Files { pattern: "*.jsonl".into(), id: "id".into() };
    done(&mut state, LoadVersion { bucket: data_set, version, files, allow_empty: false });
    let name = proto::model::data_set::version_bucket_name("d", "v1");
    let hidden = state.buckets.named(&name).expect("the bucket of the version");
    let hidden = grant("root", &[Privilege::Scan], GrantOn::Bucket(hidden));
    assert_eq!(refused(&mut state, hidden), ErrorCode::Changed);
    done(&mut state, DropBucket { bucket: data_set, restrict: false });
    assert!(user(&state, "root").grants.buckets.is_empty());
}

#[test]
fn the_last_user_who_may_do_everything_and_can_log_in_stays() {
    let mut state = with_root();
    let last = [
        drop_user("root"),
        revoke("root", &[Privilege::Admin], GrantOn::All),
        alter("root", UserChange::DropPassword),
    ];
    for command in &last {
        assert_eq!(refused(&mut state, command.clone()), ErrorCode::WrongState);
    }
    // Neither a user without a secret nor one whose token has ended counts as another administrator that can log in.
    for (name, secret) in [("certificate", None), ("ended", Some(token(50)))] {
        done(&mut state, create(name, secret));
        done(&mut state, grant(name, &[Privilege::Admin], GrantOn::All));
        let request = Proposal::from(last[0].clone());
        let (outcome, _) = state.apply(state.position() + 1, &Decisions::at(100), &request);
        assert!(matches!(&outcome, Outcome::Refused(_)), "{name}: {outcome:?}");
    }
    done(&mut state, create("ada", Some(token(500))));
    done(&mut state, grant("ada", &[Privilege::Admin], GrantOn::All));
    last.into_iter().rev().for_each(|command| drop(done(&mut state, command)));
    assert_eq!(refused(&mut state, drop_user("ada")), ErrorCode::WrongState);
}

#[test]
fn a_cluster_of_certificates_keeps_its_last_admin_as_well() {
    let mut state = with_bucket();
    done(&mut state, create_as("root", None, true));
    assert_eq!(refused(&mut state, drop_user("root")), ErrorCode::WrongState);
    done(&mut state, create("ada", None));
    done(&mut state, grant("ada", &[Privilege::Admin], GrantOn::All));
    done(&mut state, drop_user("root"));
}

#[test]
fn a_full_set_of_users_fits_in_its_part_of_the_snapshot() {
    let mut state = with_bucket();
    let long = |n: usize| format!("{n:063}");
    let mut full = User {
        id: UserId(u64::MAX),
        name: String::new(),
        verifier: Some(verifier(u32::MAX)),
        until_unix_ms: Some(u64::MAX),
        tokens: Vec::new(),
        grants: Default::default(),
        limits: UserLimits { sessions_max: Some(u32::MAX), statements_max: Some(u32::MAX) },
        secret_no: u64::MAX,
    };
    let sha256 = || Secret32::new([255; 32]);
    let token = || HashedToken { id: TokenId(u64::MAX), sha256: sha256(), until_unix_ms: u64::MAX };
    full.tokens = std::iter::repeat_with(token).take(TOKENS_IN_ALL_MAX / USERS_MAX).collect();
    let each = GRANTS_IN_ALL_MAX / USERS_MAX;
    let all = set(&Privilege::ALL);
    full.grants.buckets = (0..each as u64).map(|n| (BucketId(u64::MAX - n), all)).collect();
    let by_name: std::collections::BTreeMap<_, _> = (0..USERS_MAX)
        .map(|n| (long(n), Arc::new(User { name: long(n), ..full.clone() })))
        .collect();
    let bytes = encoded_bytes(&by_name);
    let most: usize = [USERS, TOKENS, GRANTS].iter().map(|of| of.limit * of.bytes).sum();
    assert!(bytes <= most, "{bytes} of {most}");
    // Each limit is kept.
    let users = state.users.edit();
    users.by_name = by_name;
    for user in users.by_name.values_mut() {
        let user = Arc::make_mut(user);
        (user.id, user.tokens, user.grants) = Default::default();
    }
    assert_eq!(refused(&mut state, create("more", None)), ErrorCode::OverLimit);
    let many = Arc::make_mut(state.users.edit().by_name.get_mut(&long(0)).unwrap());
    many.grants.buckets = (10..10 + GRANTS_IN_ALL_MAX as u64).map(|n| (BucketId(n), all)).collect();
    let more = grant(&long(1), &[Privilege::Scan], bucket(1));
    assert_eq!(refused(&mut state, more), ErrorCode::OverLimit);
    let many = Arc::make_mut(state.users.edit().by_name.get_mut(&long(0)).unwrap());
    many.grants = Default::default();
    many.tokens = std::iter::repeat_with(token).take(TOKENS_IN_ALL_MAX).collect();
    let more = alter(&long(1), UserChange::Secret(super::tests::token(5)));
    assert_eq!(refused(&mut state, more), ErrorCode::OverLimit);
}

#[test]
fn skipped_epochs_skip_the_numbers_of_users_as_well() {
    let mut state = with_root();
    done(&mut state, create("ada", Some(token(500))));
    let before = Arc::clone(state.users());
    let newest = NewestNumbers { catalog_cas: 3_000, ..Default::default() };
    done_decided(&mut state, Decisions { newest, ..Decisions::default() }, SkipEpochs);
    let after = Arc::clone(state.users());
    assert!(after.cas > 3_000, "routers believe it: {}", after.cas);
    assert_eq!(after.by_name, before.by_name);
    done(&mut state, create("eve", Some(token(500))));
    done(&mut state, alter("ada", UserChange::Secret(password())));
    let eve = user(&state, "eve");
    assert!(eve.id > UserId(3_000) && eve.tokens[0].id > TokenId(3_000));
    assert!(user(&state, "ada").secret_no > 3_000);
}

#[test]
fn users_are_in_snapshots_and_neither_in_catalogs_nor_in_dumps_by_their_secrets() {
    let mut state = with_root();
    let secret = NewSecret::Token { sha256: Secret32::new([0xA7; 32]), until_unix_ms: 5 };
    done(&mut state, create("ada", Some(secret)));
    let bytes = state.to_bytes().unwrap();
    assert_eq!(StateContext::from_bytes(&bytes).unwrap(), state);
    let planted = |bytes: &[u8]| bytes.windows(8).any(|eight| eight == [0xA7; 8]);
    assert!(planted(&bytes), "snapshots have the hashes");
    assert!(!planted(&postcard::to_stdvec(&state.catalog()).unwrap()));
    let dump = format!("{state:?} {state:#?}").to_lowercase();
    assert!(dump.contains("ada"));
    for bytes in ["167, 167", "a7, a7", "a7a7", "1, 1, 1", "3, 3, 3"] {
        assert!(!dump.contains(bytes), "{bytes}");
    }
}

#[test]
fn a_user_changes_itself_and_no_other_one_that_has_its_name() {
    let mut state = with_bucket();
    done(&mut state, create("ada", None));
    let old = state.users().find_by_name("ada").expect("a user").id;
    let own = |user| Proposal {
        sender: Some(user),
        expected: Expected::Sender,
        ..Proposal::from(alter("ada", UserChange::Secret(password())))
    };
    done(&mut state, own(old));
    done(&mut state, drop_user("ada"));
    assert_eq!(refused(&mut state, own(old)), ErrorCode::UnknownUser);
    done(&mut state, create("ada", None));
    assert_eq!(refused(&mut state, own(old)), ErrorCode::UnknownUser);
    let new = state.users().find_by_name("ada").expect("a user");
    assert!(new.verifier.is_none() && new.id != old);
    let id = new.id;
    done(&mut state, own(id));
}

#[test]
fn a_command_about_a_dropped_bucket_does_not_reach_the_next_of_its_name() {
    let mut state = with_bucket();
    done(&mut state, create("ada", None));
    let index = |bucket| create_index_on(BucketId(bucket), spec("i"));
    let drop_bucket =
        |bucket| Command::DropBucket(DropBucket { bucket: BucketId(bucket), restrict: false });
    let drop_index = |index| Command::DropIndex(DropIndex { index: IndexId(index) });
    let grant = |on| grant("ada", &[Privilege::Scan], bucket(on));
    done(&mut state, index(1));
    done(&mut state, grant(1));
    done(&mut state, drop_bucket(1));
    assert_eq!(done(&mut state, create_bucket("b")), Outcome::Bucket(BucketId(2)));
    done(&mut state, index(2));
    for command in [grant(1), drop_index(1), drop_bucket(1), index(1)] {
        let before = state.clone();
        let (outcome, effects) = apply(&mut state, command.clone());
        let Outcome::Refused(error) = outcome else { panic!("{command:?}: {outcome:?}") };
        assert_eq!((error.code, effects.len()), (ErrorCode::Changed, 0), "{command:?}");
        assert_eq!(state.users(), before.users());
        assert_eq!(state.buckets().count(), before.buckets().count());
        assert_eq!(state.indexes().count(), before.indexes().count());
    }
    for command in [grant(2), drop_index(2), drop_bucket(2)] {
        done(&mut state, command);
    }
}

/// Only the definition is compared, not the placement of slices or the generations.
#[test]
fn a_command_that_was_made_from_an_earlier_definition_of_an_index_is_refused() {
    let mut state = with_bucket();
    done(&mut state, create_index(spec("i")));
    let info = |state: &StateContext| Arc::clone(&state.indexes.named()[&IndexId(1)].info);
    let drop_of =
        |seen: &IndexInfo| Proposal::from(DropIndex { index: seen.id }).expecting_unchanged([seen]);
    let built = info(&state);
    let replicas = |replicas| SetReplicas { index: IndexId(1), replicas };
    done(&mut state, IndexReady { index: IndexId(1), generation: Generation(1) });
    assert_eq!(
        (info(&state).defined, info(&state).revision > built.revision),
        (built.defined, true)
    );
    done(&mut state, Proposal::from(replicas(0)).expecting_unchanged([&*built]));
    assert_eq!(refused(&mut state, drop_of(&built)), ErrorCode::Changed);
    let (to, sql) = ("j".to_owned(), "CREATE INDEX …".to_owned());
    let before = info(&state);
    done(&mut state, RenameIndex { index: IndexId(1), to, sql });
    done(&mut state, create_index(spec("i")));
    assert_eq!(refused(&mut state, drop_of(&before)), ErrorCode::Changed, "its name is another");
    let now = info(&state);
    done(&mut state, drop_of(&now));
    assert_eq!(refused(&mut state, drop_of(&now)), ErrorCode::Changed);
    assert_eq!(state.catalog().index("i").map(|index| index.id), Some(IndexId(2)));
}
