//! Tests of names that mean another object when the command is applied.

use proto::model::ids::NodeId;
use proto::{Error, ErrorCode};

use super::*;
use crate::audit::Audit;
use crate::flow::ClientLimits;
use crate::sql::named::{Tries, find_bucket, find_index};

fn changed() -> Error {
    Error::new(ErrorCode::Changed, "the index was changed meanwhile")
}

#[tokio::test]
async fn a_refused_statement_about_an_index_begins_again_twice() {
    let cluster = Cluster::new();
    let (client, _task) = cluster.client().await;
    client.batch_execute("CREATE BUCKET b; CREATE INDEX i ON b (a)").await.expect("made");
    let access = &cluster.access();
    let mut tries = Tries::default();
    for is_last in [false, false, true] {
        let seen = tries.find(access, "i").await.expect("an index");
        client.batch_execute("DROP INDEX i; CREATE INDEX i ON b (a)").await.expect("another");
        let ended = tries.count_refusal(access, &[seen], changed()).map_err(|error| error.code);
        assert_eq!(ended, if is_last { Err(ErrorCode::Changed) } else { Ok(()) });
    }
    let seen = find_index(access, "i").await.expect("an index");
    let unseen =
        Tries::default().count_refusal(access, &[seen], changed()).expect_err("a router that lags");
    assert_eq!(unseen.code, ErrorCode::Unavailable, "{unseen}");
}

#[tokio::test]
async fn a_statement_does_not_begin_again_with_an_index_of_another_bucket() {
    let cluster = Cluster::new();
    let (client, _task) = cluster.client().await;
    let made = "CREATE BUCKET b; CREATE BUCKET c; CREATE INDEX i ON b (a)";
    client.batch_execute(made).await.expect("made");
    let access = &cluster.access();
    let mut tries = Tries::default();
    let seen = tries.find(access, "i").await.expect("an index");
    client.batch_execute("DROP INDEX i; CREATE INDEX i ON c (a)").await.expect("another");
    tries.count_refusal(access, &[seen], changed()).expect("another try");
    let other = tries.find(access, "i").await.expect_err("of another bucket");
    assert_eq!(
        (other.code, other.message.contains("\"i\"")),
        (ErrorCode::Unknown, true),
        "{other}"
    );
}

#[tokio::test]
async fn a_name_of_the_other_kind_is_named_as_what_it_is() {
    let cluster = Cluster::new();
    let (client, _task) = cluster.client().await;
    client.batch_execute("CREATE BUCKET b; CREATE INDEX i ON b (a)").await.expect("made");
    let access = &cluster.access();
    let of_bucket = find_index(access, "b").await.expect_err("a bucket");
    let of_index = find_bucket(access, "i").await.expect_err("an index");
    assert!(of_bucket.message.contains("is a bucket"), "{of_bucket}");
    assert!(of_index.message.contains("is an index"), "{of_index}");
    assert_eq!([of_bucket.code, of_index.code], [ErrorCode::Unknown; 2]);
}

/// A definition that fails when its names are looked up sends nothing. It has its line among the refusals all the same, whether its client
/// is a user or is trusted.
#[tokio::test]
async fn a_definition_of_an_absent_object_is_in_the_audit_of_a_trusted_client() {
    let mut cluster = Cluster::new();
    let (env, dir) = (cluster.env.clone(), tempfile::tempdir().expect("a directory"));
    let audit = Audit::open(&env, dir.path(), 1 << 20, NodeId(1)).await.expect("an audit");
    let doors = LoginPolicy::trust_within(ClientLimits::default(), audit, &env);
    let provider = Arc::new(MemoryAccess::default());
    cluster.server = PgServer::new(provider, doors, env, PgConfig::default());
    let (client, _task) = cluster.client().await;
    let statements = ["DROP INDEX i", "BUILD INDEX ON b (i)", "GRANT scan ON b TO ada"];
    for statement in statements {
        let error = client.batch_execute(statement).await.expect_err("there is none");
        assert_eq!(state(&error), "42P01", "{statement}");
    }
    // No caller waits for the line of a refusal.
    let written = async {
        loop {
            let text =
                std::fs::read_to_string(dir.path().join("refused.jsonl")).unwrap_or_default();
            if text.lines().count() == statements.len() {
                return text;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let text = tokio::time::timeout(Duration::from_secs(20), written).await.expect("all lines");
    for (line, statement) in text.lines().zip(statements) {
        let told = ["42P01", "\"by\":\"trust\"", statement];
        assert!(told.iter().all(|part| line.contains(part)), "{line}");
    }
}
