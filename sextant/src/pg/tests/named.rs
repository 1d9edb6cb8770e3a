//! Names that mean another object by the time of the command.

use proto::{Error, ErrorCode};

use super::*;
use crate::sql::named::{Tries, find_bucket, find_index};

fn changed() -> Error {
    Error::new(ErrorCode::Changed, "the index was changed meanwhile")
}

#[tokio::test]
async fn a_refused_statement_about_an_index_begins_again_twice() {
    let cluster = Cluster::new();
    let (client, _task) = cluster.client().await;
    client.batch_execute("CREATE BUCKET b; CREATE INDEX i ON b (a)").await.expect("made");
    let memory = &*cluster.memory;
    let mut tries = Tries::default();
    for is_last in [false, false, true] {
        let seen = tries.find(memory, "i").await.expect("an index");
        client.batch_execute("DROP INDEX i; CREATE INDEX i ON b (a)").await.expect("another");
        let ended = tries.note(memory, &[seen], changed()).map_err(|error| error.code);
        assert_eq!(ended, if is_last { Err(ErrorCode::Changed) } else { Ok(()) });
    }
    let seen = find_index(memory, "i").await.expect("an index");
    let unseen = Tries::default().note(memory, &[seen], changed()).expect_err("a router that lags");
    assert_eq!(unseen.code, ErrorCode::Unavailable, "{unseen}");
}

#[tokio::test]
async fn a_statement_does_not_begin_again_with_an_index_of_another_bucket() {
    let cluster = Cluster::new();
    let (client, _task) = cluster.client().await;
    let made = "CREATE BUCKET b; CREATE BUCKET c; CREATE INDEX i ON b (a)";
    client.batch_execute(made).await.expect("made");
    let memory = &*cluster.memory;
    let mut tries = Tries::default();
    let seen = tries.find(memory, "i").await.expect("an index");
    client.batch_execute("DROP INDEX i; CREATE INDEX i ON c (a)").await.expect("another");
    tries.note(memory, &[seen], changed()).expect("another try");
    let other = tries.find(memory, "i").await.expect_err("of another bucket");
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
    let memory = &*cluster.memory;
    let of_bucket = find_index(memory, "b").await.expect_err("a bucket");
    let of_index = find_bucket(memory, "i").await.expect_err("an index");
    assert!(of_bucket.message.contains("is a bucket"), "{of_bucket}");
    assert!(of_index.message.contains("is an index"), "{of_index}");
    assert_eq!([of_bucket.code, of_index.code], [ErrorCode::Unknown; 2]);
}
