//! Tests of statements about users, in both protocols, and of SHOW.

use tokio_postgres::SimpleQueryMessage;

use super::{Cluster, cities, simple, state};
use crate::auth::tokens::user_of;
use crate::auth::verifier;

/// Returns the number of command tags of a text's statements, without those of rows.
async fn tags(client: &tokio_postgres::Client, sql: &str) -> usize {
    let messages = client.simple_query(sql).await.unwrap_or_else(|e| panic!("{sql}: {e:?}"));
    messages.iter().filter(|one| matches!(one, SimpleQueryMessage::CommandComplete(_))).count()
}

#[tokio::test]
async fn users_are_made_changed_shown_and_dropped() {
    let cluster = Cluster::new();
    let (client, _task) = cities(&cluster).await;
    let made = "CREATE USER ada PASSWORD 'pencil' VALID UNTIL '2027-01-31' WITH (sessions_max = 4);
                CREATE USER bob;
                GRANT scan, write ON b TO ada;
                GRANT monitor ON ALL TO ada;
                GRANT ALL TO bob";
    assert_eq!(tags(&client, made).await, 5);
    assert_eq!(
        simple(&client, "SHOW USERS").await,
        ["ada|scram-sha-256 until 2027-01-31 00:00:00+00|~|4|~|monitor", "bob|~|~|~|~|admin"]
    );
    let grants = ["ada|ALL|monitor", "ada|b|scan, write", "bob|ALL|admin"];
    assert_eq!(simple(&client, "SHOW GRANTS").await, grants);
    assert_eq!(simple(&client, "SHOW GRANTS FOR bob").await, grants[2..]);
    let error = client.simple_query("SHOW GRANTS FOR eve").await.unwrap_err();
    assert_eq!(state(&error), "42704");
    simple(&client, "REVOKE write ON b FROM ada; DROP USER bob; DROP USER IF EXISTS bob").await;
    assert_eq!(simple(&client, "SHOW GRANTS").await, ["ada|ALL|monitor", "ada|b|scan"]);
    for (sql, code) in [
        ("CREATE USER ada", "42710"),
        ("DROP USER bob", "42704"),
        ("GRANT scan ON b TO bob", "42704"),
        ("GRANT scan ON nothing TO ada", "42P01"),
        ("CREATE ROLE r", "0A000"),
        ("CREATE USER eve PASSWORD 'md50123456789abcdef0123456789abcdef'", "0A000"),
        ("CREATE USER eve TOKEN VALID UNTIL '2001-01-01'", "22023"),
    ] {
        let error = client.simple_query(sql).await.unwrap_err();
        assert_eq!(state(&error), code, "{sql}");
    }
}

#[tokio::test]
async fn a_password_is_kept_as_its_verifier_or_is_one_already() {
    let cluster = Cluster::new();
    let (client, _task) = cities(&cluster).await;
    simple(&client, "CREATE USER ada PASSWORD 'pencil'").await;
    let kept = || cluster.users().find_by_name("ada").unwrap().verifier.clone().unwrap();
    let first = kept();
    assert_eq!(first, verifier::derive("pencil", first.salt, 4096));
    let own = verifier::derive("of a client", [9; 16], 5000);
    simple(&client, &format!("ALTER USER ada PASSWORD '{}'", verifier::text(&own))).await;
    assert_eq!(kept(), own);
    simple(&client, "ALTER USER ada PASSWORD 'pencil'").await;
    assert_ne!(kept().salt, first.salt, "each verifier has a salt of its own");
}

#[tokio::test]
async fn a_token_is_told_once_by_both_protocols() {
    let cluster = Cluster::new();
    let (client, _task) = cities(&cluster).await;
    let now = proto::env::Env::real().clock.unix_ms();
    let made = simple(&client, "CREATE USER ada TOKEN VALID UNTIL 'infinity'").await;
    let statement = client.prepare("ALTER USER ada TOKEN").await.unwrap();
    assert_eq!(statement.columns()[0].name(), "token");
    let row = client.query_one(&statement, &[]).await.unwrap();
    let users = cluster.users();
    for (n, text) in [(1, made[0].clone()), (2, row.get(0))] {
        let (user, id) = user_of(&users, &text, now).unwrap();
        assert_eq!((&*user.name, id.0), ("ada", n));
    }
    let shown = simple(&client, "SHOW USERS").await;
    let tokens = shown[0].split('|').nth(2).unwrap();
    assert!(tokens.starts_with("1 until infinity, 2 until 20"), "{tokens}");
    simple(&client, "ALTER USER ada DROP TOKEN 1").await;
    assert!(user_of(&cluster.users(), &made[0], now).is_err());
    // Without a row for it a statement is described as one without rows.
    assert!(client.prepare("ALTER USER ada PASSWORD 'x'").await.unwrap().columns().is_empty());
}

#[tokio::test]
async fn users_are_definitions() {
    let cluster = Cluster::new();
    let (client, _task) = cities(&cluster).await;
    client.batch_execute("BEGIN; CREATE USER ada; DELETE FROM b WHERE id = '1'").await.unwrap();
    let error = client.batch_execute("DROP USER ada").await.unwrap_err();
    assert_eq!(state(&error), "25001");
    client.batch_execute("ROLLBACK; SET default_transaction_read_only = on").await.unwrap();
    let error = client.batch_execute("DROP USER ada").await.unwrap_err();
    assert_eq!(state(&error), "25006");
}
