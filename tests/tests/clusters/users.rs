//! Tests users in a whole cluster: the router shows what the coordinators store, and no secret
//! appears outside of its proper place.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a test is a client of the product, and reads its files"
)]

use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex};

use proto::grpc::ExecuteRequest;
use proto::grpc::admin_client::AdminClient;
use sextant::auth::tokens::user_of;
use tests::harness::{TestCluster, grpc, http_get, sql};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_granted_is_shown_and_ends_with_its_bucket() {
    let cluster = TestCluster::start(3, 1).await;
    let client = cluster.sql().await;
    sql::run(&client, "CREATE BUCKET b; CREATE BUCKET other").await;
    sql::run(&client, "CREATE USER root PASSWORD 'x'; GRANT ALL TO root; CREATE USER ada").await;
    sql::run(&client, "GRANT scan, write ON b TO ada; GRANT scan ON other TO ada").await;
    let grants = async |of: &str| {
        let rows = sql::simple(&client, &format!("SHOW GRANTS FOR {of}")).await.unwrap();
        let text =
            |row: Vec<Option<String>>| row.into_iter().flatten().collect::<Vec<_>>().join("|");
        rows.into_iter().map(text).collect::<Vec<_>>()
    };
    assert_eq!(grants("ada").await, ["ada|b|scan, write", "ada|other|scan"]);
    sql::run(&client, "DROP BUCKET b; CREATE BUCKET b").await;
    assert_eq!(grants("ada").await, ["ada|other|scan"]);
    sql::run(&client, "REVOKE scan ON ALL FROM ada").await;
    assert!(grants("ada").await.is_empty());
    for (statement, code) in [
        ("DROP USER root", "55000"),
        ("REVOKE admin ON ALL FROM root", "55000"),
        ("ALTER USER root PASSWORD NULL", "55000"),
        ("CREATE USER ada", "42710"),
        ("ALTER USER eve TOKEN", "42704"),
        ("ALTER USER ada DROP TOKEN 5", "42P01"),
        ("GRANT scan ON no_bucket TO ada", "42P01"),
        (
            "ALTER USER ada PASSWORD 'SCRAM-SHA-256$1:AQEBAQEBAQEBAQEBAQEBAQ==$AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=:AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE='",
            "22023",
        ),
    ] {
        assert_eq!(sql::sqlstate(&client, statement).await, code, "{statement}");
    }
    // The answer of gRPC has no place for a token.
    let mut admin = AdminClient::new(grpc::channel(cluster.grpc_address()).await);
    let mut execute = async |sql: &str| admin.execute(ExecuteRequest { sql: sql.into() }).await;
    let done = execute("CREATE USER bob PASSWORD 'y'").await.unwrap().into_inner();
    assert_eq!(done.tag, "CREATE ROLE");
    assert_eq!(execute("GRANT monitor ON ALL TO bob").await.unwrap().into_inner().tag, "GRANT");
    let refused = execute("ALTER USER bob TOKEN").await.unwrap_err();
    assert_eq!(refused.code(), tonic::Code::Unimplemented, "{refused:?}");
    assert_eq!(grants("bob").await, ["bob|ALL|monitor"]);
}

/// The recorded lines of a log.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Returns the forms in which bytes may be printed.
fn forms(bytes: &[u8]) -> Vec<Vec<u8>> {
    let list = |text: &dyn Fn(&u8) -> String, between: &str| {
        bytes.iter().map(text).collect::<Vec<_>>().join(between).into_bytes()
    };
    vec![
        bytes.to_vec(),
        list(&|byte| byte.to_string(), ", "),
        list(&|byte| format!("{byte:02x}"), ""),
        list(&|byte| format!("{byte:x}"), ", "),
    ]
}

fn contains(text: &[u8], needle: &[u8]) -> bool {
    text.windows(needle.len()).any(|window| window == needle)
}

fn files_below(dir: &Path, found: &mut Vec<std::path::PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files_below(&path, found) } else { found.push(path) }
    }
}

/// All tasks run on the thread of the test, whose log is recorded at the finest level.
#[tokio::test]
async fn planted_secrets_are_in_no_log_no_status_and_no_file_but_the_coordinators() {
    let lines = Lines::default();
    let kept = lines.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(move || kept.clone())
        .finish();
    // While there is only one, the library asks the thread of a line's first use whether the line is enabled: another test's thread.
    let _second = tracing::Dispatch::new(tracing_subscriber::registry());
    let logging = tracing::subscriber::set_default(subscriber);
    let cluster = TestCluster::start(1, 1).await;
    let client = cluster.sql().await;
    let password = "planted-Tr0ub4dor";
    sql::run(&client, &format!("CREATE USER ada PASSWORD '{password}'")).await;
    let token = sql::value(&client, "ALTER USER ada TOKEN").await;
    let told = [
        format!("CREATE USER ada PASSWORD '{password}'"),
        format!("CREATE USER eve PASSWORD '{password}' '{password}'"),
        format!("CREATE USER eve PASSWORD {password}"),
        format!("ALTER USER nobody PASSWORD '{password}'"),
    ];
    let mut seen = Vec::new();
    for statement in &told {
        let error = client.simple_query(statement).await.unwrap_err();
        seen.extend_from_slice(format!("{error:?} {:?}", error.as_db_error()).as_bytes());
    }
    for show in ["SHOW USERS", "SHOW GRANTS", "SHOW ALL", "SHOW NODES"] {
        let rows = sql::simple(&client, show).await.unwrap();
        seen.extend_from_slice(format!("{rows:?}").as_bytes());
    }
    for path in ["/status", "/metrics"] {
        seen.extend_from_slice(http_get(cluster.http_address(), path).await.as_bytes());
    }
    drop(logging);
    let users = cluster.cluster().users().current();
    seen.extend_from_slice(format!("{users:?} {users:#?}").as_bytes());
    let log = lines.0.lock().unwrap().clone();
    assert!(contains(&log, b"running a command") && contains(&log, b"ada"), "the log has commands");
    seen.extend_from_slice(&log);

    let (ada, id) = user_of(&users, &token, 0).unwrap();
    let verifier = ada.verifier.clone().unwrap();
    let hash = ada.token(id).unwrap().sha256.clone();
    // The random part may have the character that divides the parts.
    let random = token.splitn(3, '_').nth(2).unwrap();
    assert_eq!(random.len(), 43, "32 bytes in base64");
    let mut secrets = vec![password.as_bytes().to_vec(), random.as_bytes().to_vec()];
    let hashes = [&verifier.salt[..], verifier.stored_key.bytes(), verifier.server_key.bytes()];
    for bytes in hashes.into_iter().chain([&hash.bytes()[..]]) {
        secrets.extend(forms(bytes));
    }
    for secret in &secrets {
        assert!(!contains(&seen, secret), "{}", String::from_utf8_lossy(secret));
    }

    // The coordinators' log has the hashes, and no file has the secrets.
    let mut files = Vec::new();
    files_below(cluster.data(), &mut files);
    let mut has_hash = false;
    for file in files {
        let bytes = std::fs::read(&file).unwrap();
        has_hash |= contains(&bytes, verifier.stored_key.bytes());
        for secret in &secrets[..2] {
            assert!(!contains(&bytes, secret), "{}", file.display());
        }
        let is_coordinators = file.to_string_lossy().contains("coordinator");
        let has_any = secrets[2..].iter().any(|secret| contains(&bytes, secret));
        assert!(is_coordinators || !has_any, "{}", file.display());
    }
    assert!(has_hash, "the search finds what is there");
}
