//! Tests the real psql against a whole cluster: its start-up queries, scripts, COPY and cancel
//! requests. `./test` installs psql; without it these tests fail.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the tests run psql as a process"
)]

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tests::harness::TestCluster;
use tokio::runtime::Runtime;

/// A cluster on its own runtime, so that the tests can block on psql.
struct Fixture {
    cluster: TestCluster,
    _runtime: Runtime,
}

impl Fixture {
    fn start() -> Self {
        let runtime = Runtime::new().expect("a runtime");
        let cluster = runtime.block_on(TestCluster::start(1, 2));
        Self { cluster, _runtime: runtime }
    }

    fn psql(&self, arguments: &[&str]) -> Command {
        psql(self.cluster.sql_address(), arguments)
    }

    /// Runs a script to its end, even after errors.
    fn script(&self, arguments: &[&str], script: &str) -> Ran {
        let mut child = self.psql(arguments).spawn().expect("psql starts");
        let mut stdin = child.stdin.take().expect("piped");
        stdin.write_all(script.as_bytes()).expect("psql reads its script");
        drop(stdin);
        Ran::of(child)
    }
}

fn psql(address: SocketAddr, arguments: &[&str]) -> Command {
    let mut command = Command::new("psql");
    let (host, port) = (address.ip().to_string(), address.port().to_string());
    command.args(["-X", "-h", &host, "-p", &port, "-U", "tester", "-d", "sextant"]);
    command.args(arguments);
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.env("LC_ALL", "C.UTF-8").env("PGCLIENTENCODING", "UTF8").env("PGCONNECT_TIMEOUT", "10");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The output of a run of psql.
#[derive(Debug)]
struct Ran {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Ran {
    fn of(mut child: Child) -> Self {
        let (mut out, mut err) = (String::new(), String::new());
        let mut stderr = child.stderr.take().expect("piped");
        let reader = std::thread::spawn(move || {
            let read = stderr.read_to_string(&mut err);
            read.map(|_| err).expect("psql's errors are text")
        });
        child.stdout.take().expect("piped").read_to_string(&mut out).expect("psql's text");
        let err = reader.join().expect("the reader");
        Self { code: child.wait().expect("a child").code(), out, err }
    }
}

#[test]
fn psql_connects_and_quits() {
    let fixture = Fixture::start();
    let ran = fixture.script(&[], "\\conninfo\nSELECT 1 AS one;\n\\q\nSELECT 'not reached';\n");
    assert_eq!((ran.code, &*ran.err), (Some(0), ""), "{ran:?}");
    assert!(ran.out.contains("tester"), "{ran:?}");
    assert!(ran.out.contains(" one \n-----\n   1\n(1 row)\n"), "{ran:?}");
    assert!(!ran.out.contains("not reached"), "{ran:?}");
    // One statement, without a terminal or a script.
    let ran = fixture.script(&["-Atc", "SELECT 'a', NULL, 2"], "");
    assert_eq!((ran.code, &*ran.out), (Some(0), "a||2\n"), "{ran:?}");
}

#[test]
fn a_script_defines_writes_copies_and_reads() {
    let fixture = Fixture::start();
    let script = r#"
CREATE BUCKET people WITH (vbuckets = 8);
CREATE INDEX by_city ON people (address.city, age::int8 DESC) INCLUDE (name) WITH (slices = 3);
SET consistency = 'request_plus';
INSERT INTO people (id, doc) VALUES
  ('1', '{"name": "Ann", "age": 30, "address": {"city": "Ulm"}}'),
  ('2', '{"name": "Bob''s", "age": 40, "address": {"city": "Ulm"}}');
COPY people FROM STDIN (FORMAT jsonl);
{"id": "3", "name": "tab\tand\\", "age": "x", "address": {"city": "Bonn"}}
{"id": 4, "age": 7, "address": {"city": "Bonn"}}
\.
SELECT * FROM by_city ORDER BY city, age DESC;
COPY (SELECT id, name FROM by_city ORDER BY city DESC, age) TO STDOUT;
BEGIN READ ONLY;
SELECT count(*) FROM by_city;
COMMIT;
DELETE FROM people WHERE id IN ('1', '9');
SELECT id, doc FROM people WHERE id = '4';
\pset null '(none)'
SELECT id, name FROM by_city WHERE age::int8 < 10;
SHOW BUCKETS;
"#;
    let ran = fixture.script(&["-At"], script);
    assert_eq!((ran.code, &*ran.err), (Some(0), ""), "{ran:?}");
    let expected = "CREATE BUCKET\nCREATE INDEX\nSET\nINSERT 0 2\nCOPY 2\n\
        4|Bonn|7|\n3|Bonn||tab\tand\\\n2|Ulm|40|Bob's\n1|Ulm|30|Ann\n\
        1\tAnn\n2\tBob's\n3\ttab\\tand\\\\\n4\t\\N\n\
        BEGIN\n4\nCOMMIT\nDELETE 1\n\
        4|{\"id\": 4, \"age\": 7, \"address\": {\"city\": \"Bonn\"}}\n\
        Null display is \"(none)\".\n4|(none)\n";
    assert!(ran.out.starts_with(expected), "{}\nmust begin with\n{expected}", ran.out);
    assert!(ran.out[expected.len()..].contains("people|8|"), "{ran:?}");
}

#[test]
fn errors_have_an_sqlstate_and_a_hint_and_the_session_survives() {
    let fixture = Fixture::start();
    let script = r#"
\set VERBOSITY verbose
SELEC 1;
SELECT * FROM nowhere;
CREATE BUCKET b;
CREATE BUCKET b;
CREATE INDEX i ON b (a);
INSERT INTO b (id, doc) VALUES ('1', '{"a": 1}');
INSERT INTO b (id, doc) VALUES ('2', '{}'), ('1', '{}');
INSERT INTO b (id, doc) VALUES ('3', '{"a": ');
SELECT a, count(*) FROM i GROUP BY a;
BEGIN; INSERT INTO b (id, doc) VALUES ('4', '{}'); COMMIT;
COPY b FROM STDIN (FORMAT jsonl);
{"id": "5"}
{"id": "6"
{"id": "7"}
\.
SET consistency = 'request_plus';
CREATE PRIMARY INDEX p ON b;
SELECT id FROM p ORDER BY id;
"#;
    let ran = fixture.script(&["-At"], script);
    for (at, state) in
        ["42601", "42P01", "42P07", "23505", "22P02", "0A000", "22P02"].into_iter().enumerate()
    {
        let found = ran.err.matches("ERROR:  ").nth(at).is_some();
        let nth = ran.err.split("ERROR:  ").nth(at + 1).unwrap_or_default();
        assert!(found && nth.starts_with(state), "error {at} must be {state}: {}", ran.err);
    }
    assert_eq!(ran.err.matches("ERROR:  ").count(), 7, "{}", ran.err);
    assert!(ran.err.contains("HINT:  "), "{}", ran.err);
    assert!(ran.err.contains("LINE 1: SELEC 1;\n        ^"), "a place in the text: {}", ran.err);
    assert!(ran.err.contains("line 2"), "the bad line of the COPY: {}", ran.err);
    assert!(ran.err.contains("nothing is stored"), "{}", ran.err);
    assert!(
        ran.out.ends_with("CREATE INDEX\n1\n4\n"),
        "all or nothing, and the session goes on: {ran:?}"
    );
}

#[test]
fn queries_of_the_absent_catalogue_have_no_rows_and_leave_a_transaction_open() {
    let fixture = Fixture::start();
    for command in ["\\d", "\\d i", "\\dt", "\\di", "\\l", "\\du", "\\df", "\\dn"] {
        let script = format!("BEGIN;\n{command}\nSELECT 'still here';\nCOMMIT;\n");
        let ran = fixture.script(&["-At"], &script);
        assert!(!ran.err.contains("ERROR") && !ran.err.contains("FATAL"), "{command}: {ran:?}");
        assert!(ran.err.contains("SHOW INDEXES"), "{command} is told what there is: {ran:?}");
        assert!(ran.out.ends_with("still here\nCOMMIT\n"), "{command}: {ran:?}");
    }
}

#[test]
fn control_c_ends_a_running_statement() {
    let fixture = Fixture::start();
    let setup = "CREATE BUCKET b; CREATE PRIMARY INDEX p ON b;
        INSERT INTO b (id, doc) VALUES ('1', '{}'); SHOW write_position;";
    let ran = fixture.script(&["-Atq"], setup);
    // No write reaches this position, so that the scan waits for it.
    let position = ran.out.trim().lines().last().expect("a position");
    let future = format!("{}99", position);
    let mut child = fixture.psql(&["-At"]).spawn().expect("psql starts");
    let mut stdin = child.stdin.take().expect("piped");
    let script = format!(
        "\\set VERBOSITY verbose\nSET at_plus = '{future}';\n\\echo waiting\nSELECT count(*) FROM p;\n\
         RESET at_plus;\nSELECT 'still here';\n"
    );
    stdin.write_all(script.as_bytes()).expect("psql reads its script");
    std::thread::sleep(Duration::from_millis(700));
    let began = Instant::now();
    let id = child.id().to_string();
    let sent = Command::new("sh").args(["-c", "kill -INT \"$0\"", &id]).status().expect("sh");
    assert!(sent.success());
    drop(stdin);
    let ran = Ran::of(child);
    assert!(ran.err.contains("ERROR:  57014"), "{ran:?}");
    assert!(began.elapsed() < Duration::from_secs(5), "it waited for {:?}", began.elapsed());
}
