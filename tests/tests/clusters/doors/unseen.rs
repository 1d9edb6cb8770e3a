//! Tests that a bucket on which a user has no privilege does not exist for that user.

use proto::model::users::Privilege;
use tests::harness::sql;
use tokio_postgres::Client;

use super::{Doors, Grants, Principal};

/// Returns the answer to a statement as text: its rows, or its error with all fields.
async fn answer(client: &Client, sql: &str) -> String {
    match client.simple_query(sql).await {
        Ok(messages) => format!("{messages:?}"),
        Err(error) => match error.as_db_error() {
            Some(error) => format!(
                "{} {} {:?} {:?}",
                error.code().code(),
                error.message(),
                error.hint(),
                error.detail()
            ),
            None => format!("{error:?}"),
        },
    }
}

/// Statements that name a bucket or an index.
const NAMING: &[&str] = &[
    "SELECT * FROM NAME",
    "SELECT doc FROM NAME WHERE id = '1'",
    "EXPLAIN SELECT * FROM NAME_i",
    "INSERT INTO NAME (id, doc) VALUES ('1', '{}')",
    "DELETE FROM NAME WHERE id = '1'",
    "CREATE INDEX mine ON NAME (name)",
    "CREATE INDEX IF NOT EXISTS mine ON NAME (name)",
    "BUILD INDEX ON NAME (x)",
    "DROP INDEX NAME_i",
    "DROP INDEX IF EXISTS NAME_i",
    "DROP BUCKET NAME",
    "DROP BUCKET IF EXISTS NAME",
    "DROP BUCKET NAME RESTRICT",
    "CANCEL BUILD NAME_i",
    "REINDEX INDEX NAME_i",
    "ALTER INDEX NAME_i RENAME TO mine",
    "ALTER INDEX NAME_i SET (replicas = 1)",
    "ALTER INDEX NAME_i MOVE SLICE 0 TO '1'",
    "ALTER BUCKET NAME SET (copies = 2)",
    "ALTER BUCKET NAME MOVE TO '1'",
    "ALTER BUCKET NAME LOAD VERSION 'v' FROM 'x.csv'",
    "ALTER BUCKET NAME CANCEL VERSION 'v'",
    "REBALANCE INDEX NAME_i",
    "EXPLAIN REBALANCE INDEX NAME_i",
    "CANCEL REBALANCE INDEX NAME_i",
    "COPY NAME FROM STDIN",
    "COPY (SELECT * FROM NAME_i) TO STDOUT",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_that_a_user_may_not_know_is_answered_like_one_that_nobody_has() {
    let doors = Doors::start().await;
    let ada = doors.user("ada", doors.on(Privilege::Admin, "b"));
    let client = doors.client(&ada).await;
    for sql in NAMING {
        let unseen = answer(&client, &sql.replace("NAME", "hidden")).await;
        let absent = answer(&client, &sql.replace("NAME", "nobody")).await;
        assert_eq!(unseen.replace("hidden", "nobody"), absent, "{sql}");
    }
    let operator = doors.client(&Principal::Trusted).await;
    assert_eq!(
        sql::value(&operator, "SELECT count(*) FROM hidden_i").await,
        "1",
        "nothing was done"
    );
}

/// The names of BUILD INDEX are looked up only for a user that may build indexes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_absent_index_is_named_only_to_a_user_that_may_build_it() {
    let doors = Doors::start().await;
    for (privilege, state) in [(Privilege::Scan, "42501"), (Privilege::Define, "42P01")] {
        let client = doors.client(&doors.user("ada", doors.on(privilege, "b"))).await;
        assert_eq!(sql::sqlstate(&client, "BUILD INDEX ON b (nobody)").await, state);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_listing_tells_of_a_bucket_that_a_user_may_not_know() {
    let doors = Doors::start().await;
    let operator = doors.client(&Principal::Trusted).await;
    sql::run(&operator, "BEGIN; INSERT INTO hidden (id, doc) VALUES ('2', '{}')").await;
    let listings = [
        "SHOW BUCKETS",
        "SHOW COPIES",
        "SHOW INDEXES",
        "SHOW SLICES",
        "SHOW MOVES",
        "SHOW ROLLBACKS",
        "SHOW HOLDS",
        "SHOW VERSIONS",
        "SHOW TRANSACTIONS",
    ];
    let hidden = doors.bucket("hidden").to_string();
    for privilege in Privilege::ALL {
        let name = format!("{privilege} of b");
        let user = doors.user(&name, doors.on(privilege, "b"));
        let client = doors.client(&user).await;
        for listing in listings {
            for row in sql::simple(&client, listing).await.expect("rows") {
                let tells = row.iter().flatten().any(|cell| cell.contains("hidden"));
                assert!(!tells, "{name}: {listing}: {row:?}");
                let number = listing == "SHOW TRANSACTIONS" && row[1].as_ref() == Some(&hidden);
                assert!(!number, "{name}: {listing}: {row:?}");
            }
        }
        let all = Grants { all: [Privilege::Scan].into_iter().collect(), ..Grants::default() };
        let client = doors.client(&doors.user("all", all)).await;
        let buckets = sql::simple(&client, "SHOW BUCKETS").await.expect("rows");
        assert_eq!(buckets.len(), 2, "{buckets:?}");
    }
    sql::run(&operator, "ROLLBACK").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn figures_are_for_those_who_may_monitor() {
    let doors = Doors::start().await;
    let count = async |privilege, listing| {
        let user = doors.user("ada", doors.on(privilege, "b"));
        let client = doors.client(&user).await;
        sql::simple(&client, listing).await.expect("rows").len()
    };
    assert_eq!(count(Privilege::Scan, "SHOW SLICES").await, 0);
    assert_eq!(count(Privilege::Monitor, "SHOW SLICES").await, 2);
    assert_eq!(count(Privilege::Admin, "SHOW SLICES").await, 2);
    assert_eq!(count(Privilege::Scan, "SHOW INDEXES").await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_is_cancelled_by_its_user_or_an_administrator_of_its_bucket() {
    let doors = Doors::start().await;
    let ada = doors.client(&doors.user("ada", doors.on(Privilege::Write, "b"))).await;
    sql::run(&ada, "BEGIN; INSERT INTO b (id, doc) VALUES ('9', '{}')").await;
    let number = sql::value(&ada, "SHOW transaction_id").await;
    let cancel = format!("CANCEL TRANSACTION {number}");
    let bob = doors.client(&doors.user("bob", doors.on(Privilege::Write, "b"))).await;
    assert_eq!(sql::sqlstate(&bob, &cancel).await, "42501");
    assert!(sql::simple(&bob, "SHOW TRANSACTIONS").await.expect("rows").is_empty());
    let carl = doors.client(&doors.user("carl", doors.on(Privilege::Admin, "hidden"))).await;
    assert_eq!(sql::sqlstate(&carl, &cancel).await, "42P01", "it is not open for him");
    assert!(
        sql::simple(&carl, &format!("SHOW TRANSACTION {number}")).await.expect("rows").is_empty()
    );
    let other = doors.client(&doors.user("ada", doors.on(Privilege::Write, "b"))).await;
    assert_eq!(sql::simple(&other, "SHOW TRANSACTIONS").await.expect("rows").len(), 1);
    assert_eq!(sql::sqlstate(&other, &cancel).await, "");
}
