//! Tests the privileges of SQL statements.

use std::collections::BTreeSet;
use std::pin::pin;

use bytes::Bytes;
use futures::{SinkExt, TryStreamExt};
use proto::model::users::Privilege::{self, Define, Monitor, Rebalance, Scan, Write};
use sextant::sql::ast::Statement;
use sextant::sql::parse::parse;
use tests::harness::sql;
use tokio_postgres::Client;

use super::{Doors, Need, Principal};

const SCAN: Need = Need::On(&[Scan]);
const WRITE: Need = Need::On(&[Write]);
const DEFINE: Need = Need::On(&[Define]);
const MOVE: Need = Need::On(&[Rebalance]);
const MOVE_ALL: Need = Need::All(Rebalance);
const ADMIN: Need = Need::All(Privilege::Admin);
/// The need of statements that look up an index by name before they check a privilege.
const LISTED: Need = Need::Own;

/// The statements with the privileges that they need. A successful statement changes nothing, or
/// `RESTORE` undoes its change.
const STATEMENTS: &[(&str, Need)] = &[
    ("CREATE BUCKET IF NOT EXISTS b WITH (vbuckets = 4)", Need::All(Define)),
    ("CREATE BUCKET IF NOT EXISTS b FROM FILES", Need::All(Define)),
    ("DROP BUCKET b RESTRICT", DEFINE),
    (
        "INSERT INTO b (id, doc) VALUES ('1', '{\"name\":\"Ulm\"}') ON CONFLICT (id) DO UPDATE SET doc = excluded.doc",
        WRITE,
    ),
    ("DELETE FROM b WHERE id = 'nothing'", WRITE),
    ("SELECT * FROM i", SCAN),
    ("SELECT count(*) FROM i", SCAN),
    ("SELECT doc FROM b WHERE id = '1'", SCAN),
    ("SELECT 1", Need::Own),
    ("SELECT relname FROM pg_catalog.pg_class", Need::Own),
    ("EXPLAIN SELECT * FROM i", SCAN),
    ("COPY b FROM STDIN", WRITE),
    ("COPY (SELECT * FROM i) TO STDOUT", SCAN),
    ("CREATE INDEX made ON b (name) WITH (defer_build = true)", DEFINE),
    ("BUILD INDEX ON b (i)", DEFINE),
    ("DROP INDEX made", DEFINE),
    ("CANCEL BUILD i", DEFINE),
    ("ALTER INDEX made SET KEYS (name, id)", DEFINE),
    ("REINDEX INDEX made", DEFINE),
    ("ALTER INDEX i RENAME TO i", DEFINE),
    ("ALTER BUCKET b LOAD VERSION 'v' FROM 'x/*.csv'", DEFINE),
    ("REBALANCE INDEX i", MOVE),
    ("REBALANCE", MOVE_ALL),
    ("CANCEL REBALANCE INDEX i", MOVE),
    ("CANCEL REBALANCE", MOVE_ALL),
    ("EXPLAIN REBALANCE INDEX i", MOVE),
    ("EXPLAIN REBALANCE", MOVE_ALL),
    ("DRAIN NODE 'INDEXER'", MOVE_ALL),
    ("CANCEL DRAIN NODE 'INDEXER'", MOVE_ALL),
    ("REMOVE NODE 'INDEXER'", ADMIN),
    ("REMOVE NODE 'INDEXER' FORCE", ADMIN),
    ("ADD COORDINATOR '1' AT '127.0.0.1:1'", ADMIN),
    ("ALTER INDEX i MOVE SLICE 0 TO 'INDEXER'", MOVE),
    ("ALTER BUCKET b MOVE VBUCKET 1 TO 'PROJECTOR'", MOVE),
    ("ALTER BUCKET b MOVE TO 'PROJECTOR'", MOVE),
    ("ALTER BUCKET b CANCEL MOVES", MOVE),
    ("ALTER BUCKET b SET (copies = 1)", DEFINE),
    ("ALTER BUCKET b SET (version_idle = '1 min')", DEFINE),
    ("ALTER BUCKET b CANCEL VERSION 'v'", DEFINE),
    ("ALTER INDEX i SET (separate_included_columns = false)", DEFINE),
    ("ALTER INDEX i SET (slice_bytes_max = '1GB')", DEFINE),
    ("ALTER INDEX i SET (replicas = 0)", DEFINE),
    ("SHOW BUCKETS", LISTED),
    ("SHOW COPIES", LISTED),
    ("SHOW INDEXES", LISTED),
    ("SHOW NODES", Need::All(Monitor)),
    ("SHOW SLICES", LISTED),
    ("SHOW MOVES", LISTED),
    ("SHOW ROLLBACKS", LISTED),
    ("SHOW HOLDS", LISTED),
    ("SHOW VERSIONS", LISTED),
    ("SHOW TRANSACTIONS", LISTED),
    ("SHOW TRANSACTION 1", LISTED),
    ("SHOW USERS", LISTED),
    ("SHOW GRANTS", LISTED),
    ("CREATE USER made_user", ADMIN),
    ("ALTER USER made_user PASSWORD 'x'", ADMIN),
    ("ALTER USER made_user TOKEN", ADMIN),
    ("ALTER USER made_user PASSWORD NULL", ADMIN),
    ("ALTER USER made_user WITH (sessions_max = 7)", ADMIN),
    ("GRANT scan ON b TO made_user", Need::On(&[Privilege::Admin])),
    ("REVOKE scan ON b FROM made_user", Need::On(&[Privilege::Admin])),
    ("GRANT scan ON ALL TO made_user", ADMIN),
    ("REVOKE scan ON ALL FROM made_user", ADMIN),
    ("DROP USER made_user", ADMIN),
    ("SHOW server_version", Need::Own),
    ("SHOW ALL", Need::Own),
    ("SET application_name = 'x'", Need::Own),
    ("RESET ALL", Need::Own),
    ("BEGIN", Need::Own),
    ("SET TRANSACTION READ ONLY", Need::Own),
    ("SAVEPOINT s", Need::Own),
    ("ROLLBACK TO s", Need::Own),
    ("RELEASE s", Need::Own),
    ("ROLLBACK", Need::Own),
    ("COMMIT", Need::Own),
    ("SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE", Need::Own),
    ("UNLISTEN *", Need::Own),
    ("DISCARD ALL", Need::Own),
    ("DEALLOCATE ALL", Need::Own),
];

/// Kinds of statements whose answer for an unknown number does not depend on privileges; other tests cover them.
const ELSEWHERE: [&str; 1] = ["Admin::CancelTransaction"];

/// The statements that undo the changes of tested statements.
const RESTORE: &str = "CANCEL DRAIN NODE 'INDEXER'; CREATE INDEX IF NOT EXISTS made ON b (name) WITH (defer_build = true); \
                       ALTER BUCKET b SET (copies = 1)";

/// Returns the kinds of a statement: its variant, and the variant of the value in it.
fn kinds(statement: &Statement) -> Vec<String> {
    let printed = format!("{statement:?}");
    let words: Vec<&str> = printed.split(|c: char| !c.is_alphanumeric()).collect();
    match words[0] {
        outer @ ("Admin" | "Show" | "User") => vec![format!("{outer}::{}", words[1])],
        other => vec![other.to_owned()],
    }
}

/// Returns the variants of an enumeration in the source text of the parser's output.
fn variants(text: &str, name: &str) -> Vec<String> {
    let begin = text.find(&format!("pub enum {name} {{")).expect("the enumeration");
    let body = &text[begin..begin + text[begin..].find("\n}\n").expect("its end")];
    let lines = body.lines().skip(1).filter_map(|line| line.strip_prefix("    "));
    let named = lines.filter(|line| line.starts_with(|c: char| c.is_ascii_uppercase()));
    named
        .map(|line| line.split(|c: char| !c.is_alphanumeric()).next().unwrap_or("").to_owned())
        .collect()
}

#[test]
fn the_table_names_every_statement() {
    let text = concat!(
        include_str!("../../../../sextant/src/sql/ast/mod.rs"),
        include_str!("../../../../sextant/src/sql/ast/admin.rs"),
        include_str!("../../../../sextant/src/sql/ast/users.rs"),
    );
    let mut expected = BTreeSet::new();
    for variant in variants(text, "Statement") {
        match &variant[..] {
            outer @ ("Admin" | "Show" | "User") => {
                let name = if outer == "User" { "UserStatement" } else { outer };
                let inner = variants(text, name).into_iter();
                expected.extend(inner.map(|inner| format!("{outer}::{inner}")));
            }
            _ => {
                expected.insert(variant);
            }
        }
    }
    let mut found: BTreeSet<String> = ELSEWHERE.map(str::to_owned).into();
    for (sql, _) in STATEMENTS {
        let parsed = parse(sql).unwrap_or_else(|error| panic!("{sql}: {:?}", error.error));
        found.extend(parsed.iter().flat_map(|one| kinds(&one.statement)));
    }
    assert_eq!(found, expected);
}

/// Runs a statement; returns its SQLSTATE, empty after success.
async fn run(client: &Client, sql: &str) -> String {
    let ran = match sql {
        _ if sql.ends_with("FROM STDIN") => copy_in(client, sql).await,
        _ if sql.ends_with("TO STDOUT") => copy_out(client, sql).await,
        _ => client.simple_query(sql).await.map(|_| ()),
    };
    ran.err().map(|error| sql::state_of(&error)).unwrap_or_default()
}

async fn copy_in(client: &Client, sql: &str) -> Result<(), tokio_postgres::Error> {
    let mut sink = pin!(client.copy_in::<_, Bytes>(sql).await?);
    sink.send(Bytes::from_static(b"{\"id\":\"3\",\"name\":\"Jena\"}\n")).await?;
    sink.finish().await.map(|_| ())
}

async fn copy_out(client: &Client, sql: &str) -> Result<(), tokio_postgres::Error> {
    client.copy_out(sql).await?.try_collect::<Vec<_>>().await.map(|_| ())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_statement_is_for_those_who_have_its_privilege() {
    let doors = Doors::start().await;
    let operator = doors.client(&Principal::Trusted).await;
    let node = |role: &str| {
        let catalog = doors.cluster.cluster().router().catalog();
        let node = catalog.nodes.values().find(|node| node.role.name() == role);
        node.expect("the cluster has each role").id.to_string()
    };
    let (indexer, projector) = (node("indexer"), node("projector"));
    let named = |sql: &str| sql.replace("INDEXER", &indexer).replace("PROJECTOR", &projector);
    let mut wrong = Vec::new();
    for (role, principal) in doors.roles() {
        let client = doors.client(&principal).await;
        operator.simple_query(&named(RESTORE)).await.expect("as before");
        for (sql, need) in STATEMENTS {
            let state = run(&client, &named(sql)).await;
            if !role.agrees(*need, &state) {
                wrong.push(format!("{}: {sql}: {state:?}, needs {need:?}", role.name));
            }
            if state.is_empty() && sql.starts_with("DRAIN") || sql.starts_with("DROP INDEX") {
                operator.simple_query(&named(RESTORE)).await.expect("as before");
            }
        }
    }
    assert!(wrong.is_empty(), "{} of the table are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// Statements about a node, with the privileges that they need.
const OF_A_NODE: [(&str, Need); 6] = [
    ("DRAIN NODE 'NODE'", MOVE_ALL),
    ("CANCEL DRAIN NODE 'NODE'", MOVE_ALL),
    ("REMOVE NODE 'NODE' WAIT", ADMIN),
    ("ALTER INDEX i MOVE SLICE 0 TO 'NODE'", MOVE),
    ("ALTER BUCKET b MOVE VBUCKET 1 TO 'NODE'", MOVE),
    ("ALTER BUCKET b MOVE TO 'NODE'", MOVE),
];

/// The error is the same for a node of any role, and for an unknown node.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_without_the_privilege_does_not_learn_which_nodes_there_are() {
    let doors = Doors::start().await;
    let nodes: Vec<String> = {
        let catalog = doors.cluster.cluster().router().catalog();
        catalog.nodes.keys().map(ToString::to_string).chain(["999".to_owned()]).collect()
    };
    let mut refused = 0;
    for (role, principal) in doors.roles() {
        let client = doors.client(&principal).await;
        for (sql, need) in OF_A_NODE {
            // A user with the privilege would really run the statement.
            if role.agrees(need, "") {
                continue;
            }
            let mut states = BTreeSet::new();
            for node in &nodes {
                let named = sql.replace("'NODE'", &format!("'{node}'"));
                states.insert(run(&client, &named).await);
            }
            assert_eq!(states.len(), 1, "{}: {sql}: {states:?}", role.name);
            refused += usize::from(states.contains("42501"));
        }
    }
    assert!(refused > OF_A_NODE.len(), "most of them may not do it");
}
