//! Tests the outcome of a transaction, queried by another session, and by COMMIT itself after its
//! projector was down.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a test is a client of the product: real clocks, sockets and tasks"
)]

use std::time::Duration;

use tests::harness::{TestCluster, sql};
use tokio_postgres::Client;

async fn rows(client: &Client, query: &str) -> Vec<Vec<Option<String>>> {
    let rows = sql::simple(client, query).await;
    rows.unwrap_or_else(|error| panic!("{query}: {error:?}"))
}

async fn number_of(client: &Client) -> String {
    rows(client, "SHOW transaction_id").await.remove(0).remove(0).expect("a text")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_session_learns_what_became_of_a_transaction() {
    let cluster = TestCluster::start(1, 1).await;
    let (client, other) = (cluster.sql().await, cluster.sql().await);
    sql::run(&client, "CREATE BUCKET b").await;
    assert_eq!(number_of(&client).await, "", "it has written in no transaction");
    let insert = |id: &str| format!("INSERT INTO b (id, doc) VALUES ('{id}', '1')");
    sql::run(&client, "BEGIN").await;
    sql::run(&client, &insert("one")).await;
    sql::run(&client, &insert("two")).await;
    let number = number_of(&client).await;
    let shown = rows(&other, &format!("SHOW TRANSACTION {number}")).await;
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(shown, [vec![text(&number), text("b"), text("open"), None, None]]);
    sql::run(&client, "COMMIT").await;
    let position = rows(&client, "SHOW write_position").await.remove(0).remove(0);
    assert_eq!(number_of(&client).await, number, "the last one");
    let shown = rows(&other, &format!("SHOW TRANSACTION {number}")).await;
    assert_eq!(shown, [vec![text(&number), text("b"), text("committed"), text("2"), position]]);

    sql::run(&client, "BEGIN").await;
    sql::run(&client, &insert("three")).await;
    let number = number_of(&client).await;
    sql::run(&client, "ROLLBACK").await;
    // The projector is informed after the answer.
    let show = format!("SHOW TRANSACTION {number}");
    let gone = async {
        while !rows(&other, &show).await.is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(5), gone).await.expect("it is rolled back");
    let refused = sql::simple(&client, "SET transaction_id = 7").await.expect_err("shown only");
    assert_eq!(sql::state_of(&refused), "22023", "{refused:?}");
}
