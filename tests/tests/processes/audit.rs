//! Tests the audit of a process: changes with their authors, and refused log-ins.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the test runs the product as a process and reads its files"
)]

use std::os::unix::fs::PermissionsExt;

use proto::grpc::ExecuteRequest;
use proto::grpc::admin_client::AdminClient;
use serde_json::Value;
use tests::harness::process::{self, Dev};
use tests::harness::sql;
use tokio_postgres::{Client, NoTls};
use tonic::Request;
use tonic::transport::Endpoint;

async fn log_in(dev: &Dev, user: &str, password: &str) -> Result<Client, tokio_postgres::Error> {
    let address = dev.sql_address();
    let mut config = tokio_postgres::Config::new();
    config.host(address.ip().to_string()).port(address.port()).user(user).password(password);
    let (client, connection) = config.connect(NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

fn lines(text: &str) -> impl Iterator<Item = Value> {
    text.lines().map(|line| serde_json::from_str(line).expect(line))
}

/// Returns the lines of an audit as `what outcome user door statement`, without those about the
/// process, nodes and places. The second line of a change has no statement.
fn told(text: &str) -> Vec<String> {
    lines(text)
        .filter(|line| line["what"] != "process" && line.get("cas").is_none())
        .map(|line| {
            let fields = ["what", "outcome", "user", "door", "statement"];
            let words = fields.iter().filter_map(|field| line[field].as_str());
            words.collect::<Vec<_>>().join(" ")
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_audit_has_each_change_and_each_failed_log_in() {
    let dir = tempfile::tempdir().expect("a directory");
    let data = dir.path().join("data");
    let flags = ["--nodes", "1", "--auth", "scram"];
    let dev = Dev::start_by(process::dev(&data).args(flags));
    let admin = dev.word("admin").and_then(|admin| admin.strip_prefix("admin:"));
    let password = admin.expect("the first start prints a password").to_owned();
    let admin = log_in(&dev, "admin", &password).await.expect("a log-in");
    let begun = |text: &str| told(text).iter().filter(|line| line.contains(" began ")).count();
    let (file, refused_file) = (data.join("audit.jsonl"), data.join("refused.jsonl"));
    let text = || std::fs::read_to_string(&file).expect("the audit");
    let refused = || std::fs::read_to_string(&refused_file).unwrap_or_default();

    sql::run(&admin, "CREATE BUCKET b").await;
    sql::run(&admin, "CREATE USER ada PASSWORD 'planted-secret'; GRANT scan ON b TO ada").await;
    sql::run(&admin, "CREATE INDEX i ON b (a) WHERE s = 'planted-literal' -- planted-remark").await;
    sql::run(&admin, "INSERT INTO b (id, doc) VALUES ('1', '{\"s\": \"planted-document\"}')").await;
    assert_eq!(sql::sqlstate(&admin, "DROP INDEX j").await, "42P01");
    admin.execute("DROP INDEX i", &[]).await.expect("the extended protocol");
    let ada = log_in(&dev, "ada", "planted-secret").await.expect("a log-in");
    assert_eq!(sql::sqlstate(&ada, "DROP BUCKET b").await, "42501");
    assert_eq!(sql::sqlstate(&ada, "DRAIN NODE '200'").await, "42501");
    assert!(log_in(&dev, "ada", "planted-guess").await.is_err());
    let token = sql::value(&admin, "ALTER USER admin TOKEN VALID UNTIL '2100-01-01'").await;
    let endpoint = Endpoint::from_shared(format!("http://{}", dev.grpc_address()));
    let mut grpc = AdminClient::new(endpoint.expect("an address").connect_lazy());
    let mut execute = async |token: &str, sql: &str| {
        let mut request = Request::new(ExecuteRequest { sql: sql.to_owned() });
        let value = format!("Bearer {token}").parse().expect("a header");
        request.metadata_mut().insert("authorization", value);
        grpc.execute(request).await
    };
    execute(&token, "DROP BUCKET b").await.expect("it is dropped");
    execute("planted-token", "DROP BUCKET b").await.expect_err("no user");

    let change = |what: &str, who: &str, statement: &str| {
        [format!("{what} began {who} {statement}"), format!("{what} done {who}")]
    };
    let changes = [
        change("ddl", "admin sql", "CREATE BUCKET b"),
        change("users", "admin sql", "CREATE USER ada PASSWORD …"),
        change("users", "admin sql", "GRANT scan ON b TO ada"),
        change("ddl", "admin sql", "CREATE INDEX i ON b (a) WHERE s = …"),
        change("ddl", "admin sql", "DROP INDEX i"),
        change("users", "admin sql", "ALTER USER admin TOKEN VALID UNTIL …"),
        change("ddl", "admin grpc", "DROP BUCKET b"),
    ]
    .concat();
    let refusals = [
        "ddl 42P01 admin sql DROP INDEX j",
        "ddl 42501 ada sql DROP BUCKET b",
        "node 42501 ada sql DRAIN NODE '200'",
        "login 28P01 ada sql",
        "login 28P01 grpc",
    ];
    // No caller waits for the line of a refusal.
    let enough = async {
        while told(&refused()).len() < refusals.len() {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(20), enough).await.expect("all lines");
    assert_eq!(told(&text()), changes);
    assert_eq!(told(&refused()), refusals);
    // No statement waits for the lines about nodes and places.
    let waits_for = async |of: &str| {
        let told = async {
            while !lines(&text()).any(|line| line["of"] == of) {
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(std::time::Duration::from_secs(20), told).await.expect(of);
    };
    waits_for("node 200").await;
    let all = text() + &refused();
    assert!(!all.contains("planted"), "{all}");
    assert!(!all.contains(&password) && !all.contains(&token));
    for file in [&file, &refused_file] {
        let mode = std::fs::metadata(file).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    // If the file cannot be written, definitions are refused, and everything else continues.
    let before = begun(&text());
    std::fs::rename(&file, data.join("moved.jsonl")).expect("it is moved");
    std::fs::create_dir(&file).expect("a directory in its place");
    assert_eq!(sql::sqlstate(&admin, "CREATE BUCKET c").await, "58030");
    assert_eq!(sql::sqlstate(&admin, "SELECT count(*) FROM c").await, "42P01");
    sql::run(&admin, "SHOW BUCKETS").await;
    std::fs::remove_dir(&file).expect("it is gone");
    sql::run(&admin, "CREATE BUCKET c").await;
    assert_eq!(begun(&text()), 1, "a file that was moved away begins anew");
    assert_eq!(before, 7);
    waits_for("copies of bucket \"c\"").await;
}
