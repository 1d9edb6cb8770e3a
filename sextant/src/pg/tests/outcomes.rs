//! Tests of the answers about interrupted statements, and about prepared statements whose index has
//! changed.

use std::time::Duration;

use tokio_postgres::NoTls;

use super::{Cluster, cities, simple, state};

/// Runs a statement and cancels it; returns its result.
async fn cancelled(
    cluster: &Cluster,
    client: &tokio_postgres::Client,
    sql: &str,
) -> Result<(), tokio_postgres::Error> {
    let cancel = client.cancel_token();
    let (done, ()) = tokio::join!(client.batch_execute(sql), async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        cancel.cancel_query_raw(cluster.dial(), NoTls).await.unwrap();
    });
    done
}

#[tokio::test]
async fn a_write_that_is_cancelled_when_it_is_queued_tells_its_outcome() {
    let cluster = Cluster::new();
    let (client, _task) = cities(&cluster).await;
    cancelled(&cluster, &client, "INSERT INTO b (id, doc) VALUES ('slow', '{}')").await.unwrap();
    assert_eq!(simple(&client, "SELECT id FROM b WHERE id = 'slow'").await, ["slow"]);
    let again = "INSERT INTO b (id, doc) VALUES ('slow', '{}')";
    let error = cancelled(&cluster, &client, again).await.unwrap_err();
    assert_eq!(state(&error), "23505", "the error of the statement, not of its cancellation");
    client.batch_execute("SET statement_timeout = '20ms'").await.unwrap();
    client.batch_execute("DELETE FROM b WHERE id = 'slow'").await.unwrap();
    assert!(simple(&client, "SELECT id FROM b WHERE id = 'slow'").await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_write_without_an_outcome_says_that_it_may_have_been_done() {
    let cluster = Cluster::new();
    let (client, _task) = cities(&cluster).await;
    let sql = "INSERT INTO b (id, doc) VALUES ('never', '{}')";
    let error = cancelled(&cluster, &client, sql).await.unwrap_err();
    assert_eq!(state(&error), "57014");
    let error = error.as_db_error().unwrap();
    assert!(error.message().contains("may have been carried out"), "{error:?}");
    assert_eq!(simple(&client, "SELECT 1").await, ["1"], "the session goes on");
}

#[tokio::test]
async fn a_prepared_select_whose_index_has_other_columns_now_is_refused() {
    let cluster = Cluster::new();
    let (client, _task) = cities(&cluster).await;
    let all = client.prepare("SELECT * FROM cities").await.unwrap();
    let name = client.prepare("SELECT name FROM cities WHERE country = $1").await.unwrap();
    assert_eq!(client.query(&all, &[]).await.unwrap().len(), 5);
    client
        .batch_execute(
            "DROP INDEX cities; CREATE INDEX cities ON b (country, name) INCLUDE (population)",
        )
        .await
        .unwrap();
    let error = client.query(&all, &[]).await.unwrap_err();
    assert_eq!(state(&error), "0A000");
    assert_eq!(error.as_db_error().unwrap().message(), "cached plan must not change result type");
    assert_eq!(client.query(&name, &[&"DE"]).await.unwrap().len(), 2, "its columns are the same");
}

#[tokio::test]
async fn the_texts_of_a_sessions_prepared_statements_are_bounded() {
    let cluster = Cluster::new();
    let (client, _task) = cities(&cluster).await;
    let long = |n: usize| format!("SELECT '{}', {n}", "x".repeat(1 << 20));
    let mut kept = Vec::new();
    let refused = loop {
        match client.prepare(&long(kept.len())).await {
            Ok(statement) => kept.push(statement),
            Err(error) => break error,
        }
        assert!(kept.len() < 20, "20 MiB of statements are kept");
    };
    assert_eq!(state(&refused), "54000");
    kept.clear();
    simple(&client, "SELECT 1").await;
    client.prepare(&long(99)).await.unwrap();
}

#[tokio::test]
async fn the_values_of_a_sessions_portals_are_bounded() {
    let cluster = Cluster::new();
    let (mut client, _task) = cities(&cluster).await;
    let transaction = client.transaction().await.unwrap();
    let select = transaction.prepare("SELECT name FROM cities WHERE country = $1").await.unwrap();
    let long = "x".repeat(10 << 20);
    let mut portals = Vec::new();
    let refused = loop {
        match transaction.bind(&select, &[&long]).await {
            Ok(portal) => portals.push(portal),
            Err(error) => break error,
        }
        assert!(portals.len() < 10, "100 MiB of values are kept");
    };
    assert_eq!(state(&refused), "54000");
}

/// Runs statements; returns the result and the notices.
async fn noticed(cluster: &Cluster, sql: &str) -> (Result<(), tokio_postgres::Error>, Vec<String>) {
    let mut config = tokio_postgres::Config::new();
    let (client, mut connection) =
        config.user("me").connect_raw(cluster.dial(), NoTls).await.unwrap();
    let (told, mut notices) = tokio::sync::mpsc::unbounded_channel();
    let reading = async move {
        let mut next = futures::stream::poll_fn(move |context| connection.poll_message(context));
        while let Some(Ok(message)) = futures::StreamExt::next(&mut next).await {
            if let tokio_postgres::AsyncMessage::Notice(notice) = message {
                let _ = told.send(notice.message().to_owned());
            }
        }
    };
    let running = async move { client.batch_execute(sql).await };
    let (done, ()) = tokio::join!(running, reading);
    let mut texts = Vec::new();
    while let Ok(text) = notices.try_recv() {
        texts.push(text);
    }
    (done, texts)
}

#[tokio::test]
async fn create_index_says_which_path_no_sampled_document_has() {
    let cluster = Cluster::new();
    let (_client, _task) = cities(&cluster).await;
    let (done, notices) = noticed(&cluster, "CREATE INDEX i ON b (country, naem)").await;
    done.unwrap();
    assert_eq!(notices.len(), 1, "{notices:?}");
    assert!(notices[0].contains("naem") && !notices[0].contains("country"), "{notices:?}");
    let (done, notices) = noticed(&cluster, "CREATE INDEX j ON b (country, name)").await;
    done.unwrap();
    assert!(notices.is_empty(), "{notices:?}");
}

#[tokio::test(start_paused = true)]
async fn a_long_build_tells_its_progress_and_an_obstacle_at_once() {
    let cluster = Cluster::new();
    let (client, _task) = cities(&cluster).await;
    client.batch_execute("CREATE BUCKET silent").await.unwrap();
    let sql = "SET statement_timeout = '14s'; CREATE INDEX unfinished ON silent (name)";
    let (done, notices) = noticed(&cluster, sql).await;
    assert_eq!(state(&done.unwrap_err()), "57014");
    assert!(notices[0].contains("waits") && notices[0].contains("no projector"), "{notices:?}");
    let told = notices[1..].iter().filter(|notice| notice.contains("built to 40 %, 7 entries"));
    assert_eq!((told.count(), notices.len()), (2, 3), "one in five seconds: {notices:?}");
}
