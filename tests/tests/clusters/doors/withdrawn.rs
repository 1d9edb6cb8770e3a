//! Tests that the withdrawal of a privilege takes effect from the next call on.

use futures::TryStreamExt;
use proto::model::users::Privilege;
use sextant::principal::LoggedInUser;
use tests::harness::sql;

use super::{Doors, Grants, Principal, Proof};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_prepared_statement_ends_with_its_privilege_and_comes_back_with_it() {
    let doors = Doors::start().await;
    let ada = doors.user("ada", doors.on(Privilege::Scan, "b"));
    let client = doors.client(&ada).await;
    let statement = client.prepare("SELECT name FROM i ORDER BY name").await.expect("prepared");
    assert_eq!(client.query(&statement, &[]).await.expect("rows").len(), 2);
    doors.user("ada", doors.on(Privilege::Monitor, "b"));
    let refused = client.query(&statement, &[]).await.expect_err("refused");
    assert_eq!(sql::state_of(&refused), "42501");
    doors.user("ada", Grants::default());
    let refused = client.query(&statement, &[]).await.expect_err("refused");
    assert_eq!(sql::state_of(&refused), "42P01");
    doors.user("ada", doors.on(Privilege::Scan, "b"));
    assert_eq!(client.query(&statement, &[]).await.expect("rows").len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_open_transaction_commits_nothing_without_the_privilege() {
    let doors = Doors::start().await;
    let ada = doors.user("ada", doors.on(Privilege::Write, "b"));
    let client = doors.client(&ada).await;
    sql::run(&client, "BEGIN; INSERT INTO b (id, doc) VALUES ('9', '{}')").await;
    doors.user("ada", doors.on(Privilege::Scan, "b"));
    assert_eq!(sql::sqlstate(&client, "COMMIT").await, "42501");
    assert!(
        sql::simple(&client, "SELECT doc FROM b WHERE id = '9'").await.expect("rows").is_empty()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scan_in_progress_ends_with_its_privilege() {
    let doors = Doors::start().await;
    let operator = doors.client(&Principal::Trusted).await;
    let long = "x".repeat(2_000);
    for begin in 0..10 {
        let rows: Vec<_> =
            (0..400).map(|n| format!("('{begin}-{n}', '{{\"name\":\"{long}\"}}')")).collect();
        sql::run(&operator, &format!("INSERT INTO b (id, doc) VALUES {}", rows.join(","))).await;
    }
    let ada = doors.user("ada", doors.on(Privilege::Scan, "b"));
    let client = doors.client(&ada).await;
    let rows = client.query_raw("SELECT name FROM i", Vec::<String>::new()).await.expect("a scan");
    let mut rows = std::pin::pin!(rows);
    rows.try_next().await.expect("no error").expect("a row");
    doors.user("ada", Grants::default());
    let ended = async {
        let mut count = 1;
        while rows.try_next().await?.is_some() {
            count += 1;
        }
        Ok::<i32, tokio_postgres::Error>(count)
    };
    let error = ended.await.expect_err("8 MB do not fit what is under way");
    assert_eq!(sql::state_of(&error), "42P01");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_that_is_dropped_does_nothing_any_more_and_a_new_one_of_its_name_is_another() {
    let doors = Doors::start().await;
    let ada = doors.user("ada", doors.on(Privilege::Scan, "b"));
    let client = doors.client(&ada).await;
    assert_eq!(sql::value(&client, "SELECT count(*) FROM i").await, "2");
    doors.drop_user("ada");
    assert_eq!(sql::sqlstate(&client, "SELECT count(*) FROM i").await, "57P05");
    let again = doors.user("ada", doors.on(Privilege::Scan, "b"));
    assert!(!ada.is_same(&again));
    let client = doors.client(&ada).await;
    assert_eq!(sql::sqlstate(&client, "SELECT count(*) FROM i").await, "57P05");
    let client = doors.client(&again).await;
    assert_eq!(sql::value(&client, "SELECT count(*) FROM i").await, "2");
}

/// The users of these tests are not in the replicated state. The state is checked last, so the
/// error 42704 means that the command is allowed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_password_is_changed_by_who_knows_it_and_not_by_who_has_a_token_or_a_certificate() {
    let doors = Doors::start().await;
    let by_certificate = doors.user("ada", Grants::default());
    let Principal::User(who) = &by_certificate else { panic!("a user") };
    let by_password = LoggedInUser::new(who.id, who.name.clone(), Proof::Password(0), None);
    let by_password = Principal::User(std::sync::Arc::new(by_password));
    let change = "ALTER USER ada PASSWORD 'new'";
    for (principal, state) in [(&by_certificate, "42501"), (&by_password, "42704")] {
        let client = doors.client(principal).await;
        assert_eq!(sql::sqlstate(&client, change).await, state, "{principal:?}");
        assert_eq!(sql::sqlstate(&client, "ALTER USER bob PASSWORD 'new'").await, "42501");
        assert_eq!(sql::sqlstate(&client, "ALTER USER ada TOKEN").await, "42501");
    }
}
