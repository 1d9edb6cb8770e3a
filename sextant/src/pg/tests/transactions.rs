//! Tests of settings and modes inside and outside of transactions.

use tokio_postgres::SimpleQueryMessage;
use tokio_postgres::error::ErrorPosition;

use super::*;

async fn shown(client: &Client, name: &str) -> String {
    simple(client, &format!("SHOW {name}")).await.remove(0)
}

#[tokio::test]
async fn a_setting_ends_with_the_transaction_that_changed_it() {
    let cluster = Cluster::new();
    let (client, _task) = cities(&cluster).await;
    client.batch_execute("BEGIN; SET LOCAL statement_timeout = 7; SET jit = 'on'").await.unwrap();
    assert_eq!(shown(&client, "statement_timeout").await, "7");
    client.batch_execute("COMMIT").await.unwrap();
    assert_eq!(shown(&client, "statement_timeout").await, "0", "SET LOCAL ends with COMMIT");
    assert_eq!(shown(&client, "jit").await, "on", "SET does not");
    client.batch_execute("BEGIN; SET consistency = 'request_plus'; ROLLBACK").await.unwrap();
    assert_eq!(shown(&client, "consistency").await, "any", "ROLLBACK undoes SET");
    client.batch_execute("BEGIN; SET jit = 'off'").await.unwrap();
    client.batch_execute("SELECT nothing FROM nowhere").await.unwrap_err();
    client.batch_execute("COMMIT").await.unwrap();
    assert_eq!(shown(&client, "jit").await, "on", "COMMIT of a failed transaction is ROLLBACK");
    let local = "BEGIN; SELECT set_config('jit', 'off', true); COMMIT";
    client.batch_execute(local).await.unwrap();
    assert_eq!(shown(&client, "jit").await, "on", "set_config(…, true) is local");
    client.batch_execute("SET LOCAL jit = 'off'").await.unwrap();
    assert_eq!(shown(&client, "jit").await, "on", "there is no transaction");
}

#[tokio::test]
async fn a_read_only_transaction_that_has_read_stays_one() {
    let cluster = Cluster::new();
    let (client, _task) = cities(&cluster).await;
    let refused = async |sql: &str| state(&client.batch_execute(sql).await.unwrap_err());
    for reset in ["RESET transaction_read_only", "SET transaction_read_only TO DEFAULT"] {
        for read in ["", "; SELECT count(*) FROM cities"] {
            client.batch_execute(&format!("BEGIN READ ONLY{read}")).await.unwrap();
            assert_eq!(refused(reset).await, "0A000", "{reset}{read}");
            client.batch_execute("ROLLBACK").await.unwrap();
        }
    }
    let delete = "DELETE FROM b WHERE id = '1'";
    for write in
        ["SET TRANSACTION READ WRITE", "SET transaction_read_only = off", "BEGIN READ WRITE"]
    {
        client
            .batch_execute(&format!("BEGIN READ ONLY; {write}; {delete}; ROLLBACK"))
            .await
            .unwrap();
        client.batch_execute("BEGIN READ ONLY; SELECT count(*) FROM cities").await.unwrap();
        assert_eq!(refused(write).await, "25001", "{write}");
        client.batch_execute("ROLLBACK").await.unwrap();
    }
}

#[tokio::test]
async fn modes_are_set_together_or_not_at_all() {
    let cluster = Cluster::new();
    let (client, _task) = cities(&cluster).await;
    for modes in [
        "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY, ISOLATION LEVEL SERIALIZABLE",
        "BEGIN TRANSACTION READ ONLY, ISOLATION LEVEL SERIALIZABLE",
    ] {
        assert_eq!(state(&client.batch_execute(modes).await.unwrap_err()), "0A000", "{modes}");
        client.batch_execute("DELETE FROM b WHERE id = '1'").await.expect(modes);
    }
}

#[tokio::test]
async fn discard_all_leaves_a_session_as_it_has_begun() {
    let cluster = Cluster::new();
    let (_cities, _other_task) = cities(&cluster).await;
    let (client, _task) = cluster.client_with("-c default_transaction_read_only=on").await;
    let delete = "DELETE FROM b WHERE id = '1'";
    for discard in ["DISCARD ALL", "RESET ALL", "SET default_transaction_read_only TO DEFAULT"] {
        client.batch_execute("SET default_transaction_read_only = off").await.unwrap();
        client.batch_execute(delete).await.unwrap();
        client.batch_execute(discard).await.unwrap();
        let refused = client.batch_execute(delete).await.unwrap_err();
        assert_eq!(state(&refused), "25006", "after {discard}");
    }
}

#[tokio::test]
async fn a_read_only_session_refuses_writes_until_it_is_told_otherwise() {
    let cluster = Cluster::new();
    let (client, _task) = cities(&cluster).await;
    let refused = async |sql: &str| state(&client.batch_execute(sql).await.unwrap_err());
    let delete = "DELETE FROM b WHERE id = '1'";
    for (on, off) in [
        ("SET default_transaction_read_only = on", "RESET default_transaction_read_only"),
        (
            "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",
            "SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE",
        ),
    ] {
        client.batch_execute(on).await.unwrap();
        assert_eq!(shown(&client, "transaction_read_only").await, "on");
        for write in [delete, "CREATE BUCKET c", "DROP INDEX cities", "COPY b FROM STDIN"] {
            assert_eq!(refused(write).await, "25006", "{write} after {on}");
        }
        client.batch_execute(off).await.unwrap();
        client.batch_execute(delete).await.unwrap();
    }
    client.batch_execute("BEGIN READ ONLY").await.unwrap();
    assert_eq!(refused(delete).await, "25006");
    client.batch_execute("ROLLBACK; BEGIN; SET TRANSACTION READ ONLY").await.unwrap();
    assert_eq!(refused(delete).await, "25006");
    client.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(shown(&client, "transaction_read_only").await, "off");
    client.batch_execute("BEGIN ISOLATION LEVEL READ COMMITTED").await.unwrap();
    assert_eq!(shown(&client, "transaction_isolation").await, "read committed");
    client.batch_execute("COMMIT").await.unwrap();
    assert_eq!(shown(&client, "transaction_isolation").await, "repeatable read");
    for (sql, expected) in [
        ("SET default_transaction_isolation = 'snapshot'", "22023"),
        ("SET default_transaction_isolation = 'serializable'", "0A000"),
        ("BEGIN ISOLATION LEVEL SERIALIZABLE", "0A000"),
        ("SET standard_conforming_strings = off", "0A000"),
        ("SET TRANSACTION", "42601"),
    ] {
        assert_eq!(refused(sql).await, expected, "{sql}");
    }
}

#[tokio::test]
async fn a_transaction_sees_its_own_changes_and_nobody_else_does_before_its_commit() {
    let cluster = Cluster::new();
    let (client, _task) = cities(&cluster).await;
    let (other, _other_task) = cluster.client().await;
    let count = "SELECT count(*) FROM cities";
    client.batch_execute("BEGIN").await.unwrap();
    client.batch_execute("DELETE FROM b WHERE id = '1'").await.unwrap();
    assert_eq!(simple(&client, count).await, ["4"]);
    assert_eq!(simple(&client, "SELECT id FROM b WHERE id IN ('1', '2')").await, ["2"]);
    assert_eq!(simple(&other, count).await, ["5"]);
    let mut sink = std::pin::pin!(client.copy_in::<_, Bytes>("COPY b FROM STDIN").await.unwrap());
    let line = "{\"id\":\"9\",\"country\":\"FR\",\"population\":1}\n";
    sink.send(Bytes::from(line)).await.unwrap();
    assert_eq!(sink.as_mut().finish().await.unwrap(), 1);
    assert_eq!(simple(&client, count).await, ["5"]);
    assert_eq!(cluster.memory.uncommitted(), 2);
    client.batch_execute("COMMIT").await.unwrap();
    assert_eq!(cluster.memory.uncommitted(), 0);
    assert_eq!(simple(&other, "SELECT id FROM b WHERE id IN ('1', '9')").await, ["9"]);

    client.batch_execute("BEGIN; DELETE FROM b WHERE id = '9'; ROLLBACK").await.unwrap();
    assert_eq!(cluster.memory.uncommitted(), 0);
    assert_eq!(simple(&other, "SELECT id FROM b WHERE id = '9'").await, ["9"]);
}

#[tokio::test]
async fn the_first_committer_wins_and_the_second_is_told_to_begin_again() {
    let cluster = Cluster::new();
    let (client, _task) = cities(&cluster).await;
    let (other, _other_task) = cluster.client().await;
    let replace = "INSERT INTO b (id, doc) VALUES ('1', '{\"v\":2}')
                   ON CONFLICT (id) DO UPDATE SET doc = excluded.doc";
    client.batch_execute("BEGIN").await.unwrap();
    assert_eq!(simple(&client, "SELECT id FROM b WHERE id = '1'").await, ["1"]);
    other.batch_execute("DELETE FROM b WHERE id = '1'").await.unwrap();
    assert_eq!(simple(&client, "SELECT id FROM b WHERE id = '1'").await, ["1"], "its snapshot");
    client.batch_execute(replace).await.unwrap();
    let error = client.batch_execute("COMMIT").await.unwrap_err();
    assert_eq!(state(&error), "40001");
    assert_eq!(simple(&client, "SELECT id FROM b WHERE id = '1'").await, [""; 0], "it is over");
    // A transaction that has only written replaces what is there.
    client.batch_execute(&format!("BEGIN; {replace}")).await.unwrap();
    other.batch_execute("DELETE FROM b WHERE id = '1'").await.unwrap();
    client.batch_execute("COMMIT").await.unwrap();
    assert_eq!(simple(&other, "SELECT id FROM b WHERE id = '1'").await, ["1"]);
}

#[tokio::test]
async fn a_savepoint_brings_back_changes_settings_and_a_failed_transaction() {
    let cluster = Cluster::new();
    let (client, _task) = cities(&cluster).await;
    let count = "SELECT count(*) FROM cities";
    let refused = async |sql: &str| state(&client.batch_execute(sql).await.unwrap_err());
    client.batch_execute("BEGIN; DELETE FROM b WHERE id = '1'; SAVEPOINT a").await.unwrap();
    client.batch_execute("DELETE FROM b WHERE id = '2'; SET jit = 'on'").await.unwrap();
    client.batch_execute("SAVEPOINT b; DELETE FROM b WHERE id = '3'").await.unwrap();
    assert_eq!(simple(&client, count).await, ["2"]);
    assert_eq!(refused("SELECT nothing FROM nowhere").await, "42P01");
    assert_eq!(refused(count).await, "25P02");
    assert_eq!(refused("SAVEPOINT c").await, "25P02");
    client.batch_execute("ROLLBACK TO SAVEPOINT b").await.unwrap();
    assert_eq!(simple(&client, count).await, ["3"]);
    client.batch_execute("ROLLBACK TO a").await.unwrap();
    assert_eq!(simple(&client, count).await, ["4"]);
    assert_eq!(shown(&client, "jit").await, "off");
    assert_eq!(refused("ROLLBACK TO b").await, "3B001", "it was behind a");
    client.batch_execute("ROLLBACK TO a; RELEASE a").await.unwrap();
    assert_eq!(refused("RELEASE SAVEPOINT a").await, "3B001");
    client.batch_execute("COMMIT").await.unwrap();
    assert_eq!(simple(&client, count).await, ["5"], "COMMIT of a failed transaction is ROLLBACK");
    for sql in ["SAVEPOINT a", "RELEASE a", "ROLLBACK TO a"] {
        assert_eq!(refused(sql).await, "25P01", "{sql}");
    }
    for definition in ["CREATE BUCKET c", "DROP INDEX cities"] {
        client.batch_execute("BEGIN; DELETE FROM b WHERE id = '2'").await.unwrap();
        assert_eq!(refused(definition).await, "25001", "{definition}");
        assert_eq!(refused("SELECT 1").await, "25P02");
        client.batch_execute("COMMIT").await.unwrap();
        assert_eq!(simple(&client, count).await, ["5"]);
    }
}

/// After a rollback to the first change, further changes must have a new transaction number: the
/// cluster in memory refuses the old one.
#[tokio::test]
async fn changes_after_a_rollback_to_their_begin_have_a_new_number() {
    let cluster = Cluster::new();
    let (client, _task) = cities(&cluster).await;
    client.batch_execute("CREATE BUCKET c WITH (vbuckets = 4)").await.unwrap();
    for before in ["", "INSERT INTO c (id, doc) VALUES ('0', '{}');"] {
        client.batch_execute(&format!("BEGIN; {before} SAVEPOINT a")).await.unwrap();
        client.batch_execute("DELETE FROM b WHERE id = '1'; ROLLBACK TO a").await.unwrap();
        client.batch_execute("DELETE FROM b WHERE id = '2'; ROLLBACK TO a").await.unwrap();
        client.batch_execute("DELETE FROM b WHERE id = '3'; ROLLBACK").await.unwrap();
        assert_eq!(simple(&client, "SELECT count(*) FROM cities").await, ["5"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_transaction_that_waits_too_long_for_its_client_is_rolled_back() {
    let cluster = Cluster::new();
    let (client, _task) = cities(&cluster).await;
    client.batch_execute("SET idle_in_transaction_session_timeout = '1min'").await.unwrap();
    tokio::time::sleep(std::time::Duration::from_secs(90)).await;
    client.batch_execute("BEGIN; DELETE FROM b WHERE id = '1'").await.unwrap();
    tokio::time::sleep(std::time::Duration::from_secs(50)).await;
    client.batch_execute("DELETE FROM b WHERE id = '2'").await.unwrap();
    tokio::time::sleep(std::time::Duration::from_secs(61)).await;
    assert!(client.is_closed());
    assert_eq!(cluster.memory.uncommitted(), 0);
    let (other, _other_task) = cluster.client().await;
    assert_eq!(simple(&other, "SELECT count(*) FROM cities").await, ["5"]);
}

#[tokio::test]
async fn an_unknown_column_has_its_place_over_both_protocols() {
    let cluster = Cluster::new();
    let (client, _task) = cities(&cluster).await;
    let sql = "SELECT id FROM cities WHERE colour = 'red'";
    for error in [client.simple_query(sql).await.err(), client.prepare(sql).await.err()] {
        let error = error.expect("there is no such column");
        assert_eq!(state(&error), "42703");
        let place = error.as_db_error().and_then(|error| error.position().cloned());
        assert_eq!(place, Some(ErrorPosition::Original(29)));
    }
}

#[tokio::test]
async fn names_may_be_quoted_and_a_file_may_begin_with_a_byte_order_mark() {
    let cluster = Cluster::new();
    let (client, _task) = cities(&cluster).await;
    let replace = "INSERT INTO b (id, doc) VALUES ('1', '{\"a\": \"x\\u0000y\"}')
                   ON CONFLICT (\"id\") DO UPDATE SET \"doc\" = \"excluded\".doc";
    client.batch_execute(replace).await.unwrap();
    let mut sink = std::pin::pin!(client.copy_in::<_, Bytes>("COPY b FROM STDIN").await.unwrap());
    sink.send(Bytes::from("\u{feff}{\"id\":\"bom\"}\n")).await.unwrap();
    assert_eq!(sink.as_mut().finish().await.unwrap(), 1);
    assert_eq!(simple(&client, "SELECT id FROM b WHERE id = 'bom'").await, ["bom"]);
}

#[tokio::test]
async fn a_session_over_the_limit_is_refused_as_too_many_connections() {
    let mut cluster = Cluster::new();
    let config = PgConfig { sessions_max: 1, ..PgConfig::default() };
    cluster.server = PgServer::new(
        Arc::new(MemoryAccess::default()),
        LoginPolicy::trust(&cluster.env),
        cluster.env.clone(),
        config,
    );
    let (client, _task) = cluster.client().await;
    let mut second = tokio_postgres::Config::new();
    second.user("me");
    let Err(error) = second.connect_raw(cluster.dial(), NoTls).await else {
        panic!("one session more than the limit");
    };
    assert_eq!(state(&error), "53300");
    assert!(matches!(
        client.simple_query("SELECT 1").await.unwrap().last(),
        Some(SimpleQueryMessage::CommandComplete(1))
    ));
}

#[tokio::test]
async fn a_query_of_the_catalogue_has_no_rows_and_leaves_its_transaction_open() {
    let cluster = Cluster::new();
    let (client, _task) = cities(&cluster).await;
    client.batch_execute("BEGIN").await.unwrap();
    let query = "SELECT c.oid, c.relname AS name FROM pg_catalog.pg_class c
                 LEFT JOIN pg_catalog.pg_am am ON am.oid = c.relam WHERE c.relname ~ $1";
    let statement = client.prepare(query).await.unwrap();
    let names: Vec<_> = statement.columns().iter().map(|column| column.name()).collect();
    assert_eq!(names, ["oid", "name"]);
    assert!(client.query(&statement, &[&"x"]).await.unwrap().is_empty());
    assert_eq!(simple(&client, "SELECT typname FROM pg_type LIMIT 1000").await, [""; 0]);
    assert_eq!(simple(&client, "SELECT count(*) FROM cities").await, ["5"]);
    client.batch_execute("COMMIT").await.unwrap();
}

#[tokio::test]
async fn an_interrupted_create_index_says_that_its_build_goes_on() {
    let cluster = Cluster::new();
    let (client, _task) = cities(&cluster).await;
    client.batch_execute("SET statement_timeout = '50ms'").await.unwrap();
    let error = client.batch_execute("CREATE INDEX unfinished ON b (name)").await.unwrap_err();
    assert_eq!(state(&error), "57014");
    let error = error.as_db_error().unwrap();
    assert!(
        error.message().contains("build of index \"unfinished\" goes on in the background"),
        "{}",
        error.message()
    );
    let hint = error.hint().unwrap();
    assert!(hint.contains("SHOW INDEXES") && hint.contains("CANCEL BUILD unfinished"), "{hint}");
    // Once more: the name is taken by that build.
    let error = client.batch_execute("CREATE INDEX unfinished ON b (name)").await.unwrap_err();
    assert_eq!(state(&error), "42P07");
    let hint = error.as_db_error().unwrap().hint().unwrap();
    assert!(hint.contains("goes on") && hint.contains("CANCEL BUILD unfinished"), "{hint}");
    client.batch_execute("CREATE INDEX IF NOT EXISTS unfinished ON b (name)").await.unwrap();
    client.batch_execute("CANCEL BUILD unfinished").await.unwrap();
    let error = client.batch_execute("CANCEL BUILD cities").await.unwrap_err();
    assert_eq!(state(&error), "55000", "it serves");
}

#[tokio::test]
async fn all_reads_of_a_transaction_see_one_version_although_a_switch_meets_the_first_one() {
    let cluster = Cluster::new();
    let (client, _task) = cluster.client().await;
    let create = "CREATE BUCKET people; CREATE BUCKET one; CREATE BUCKET two; \
                  INSERT INTO one (id, doc) VALUES ('1', '{\"v\":1}'); \
                  INSERT INTO two (id, doc) VALUES ('1', '{\"v\":2}')";
    client.batch_execute(create).await.unwrap();
    cluster.memory.make_versions("people", ["one", "two"]);
    client.batch_execute("BEGIN").await.unwrap();
    for _ in 0..2 {
        let read = simple(&client, "SELECT doc FROM people WHERE id = '1'").await;
        assert_eq!(read, ["{\"v\":2}"]);
    }
    client.batch_execute("COMMIT").await.unwrap();
    assert_eq!(cluster.memory.pins(), 0);
}
