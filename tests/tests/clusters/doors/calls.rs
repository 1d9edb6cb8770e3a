//! Tests the calls of the gRPC services.

use std::collections::BTreeSet;

use proto::grpc::admin_client::AdminClient;
use proto::grpc::ingest_client::IngestClient;
use proto::grpc::query_client::QueryClient;
use proto::grpc::*;
use proto::model::users::Privilege::{Scan, Write};
use tests::harness::grpc::channel;
use tonic::{Code, Status};

use super::{Doors, Need, Role};

const SCAN: Need = Need::On(&[Scan]);
const WRITE: Need = Need::On(&[Write]);

/// The calls with their needs.
const CALLS: &[(&str, Need)] = &[
    ("Admin.Execute", Need::On(&[proto::model::users::Privilege::Define])),
    ("Admin.ListBuckets", Need::Own),
    ("Admin.ListIndexes", Need::Own),
    ("Ingest.Write", WRITE),
    ("Ingest.Push", WRITE),
    ("Ingest.CommitPush", WRITE),
    ("Ingest.AbortPush", WRITE),
    ("Ingest.Positions", WRITE),
    ("Ingest.Begin", WRITE),
    // They are for the user that began the transaction; a separate test covers them.
    ("Ingest.Mutations", Need::Own),
    ("Ingest.Commit", Need::Own),
    ("Ingest.Abort", Need::Own),
    ("Query.Scan", SCAN),
];

#[test]
fn the_table_names_every_call() {
    let text = include_str!("../../../../proto/sextant/v1/sextant.proto");
    let (mut service, mut expected) = ("", BTreeSet::new());
    for line in text.lines() {
        let word = |prefix: &str| {
            let rest = line.trim_start().strip_prefix(prefix)?;
            rest.split(|c: char| !c.is_alphanumeric()).next()
        };
        if let Some(name) = word("service ") {
            service = name;
        }
        if let Some(name) = word("rpc ") {
            expected.insert(format!("{service}.{name}"));
        }
    }
    let found: BTreeSet<String> = CALLS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(found, expected);
}

/// Makes a call with bucket `b` as its argument.
async fn call(name: &str, channel: tonic::transport::Channel) -> Result<(), Status> {
    let mut admin = AdminClient::new(channel.clone());
    let mut ingest = IngestClient::new(channel.clone());
    let bucket = || "b".to_owned();
    match name {
        "Admin.Execute" => {
            let sql = "DROP BUCKET b RESTRICT".to_owned();
            admin.execute(ExecuteRequest { sql }).await.map(|_| ())
        }
        "Admin.ListBuckets" => admin.list_buckets(ListBucketsRequest {}).await.map(|_| ()),
        "Admin.ListIndexes" => admin.list_indexes(ListIndexesRequest {}).await.map(|_| ()),
        "Ingest.Write" => {
            let request = WriteRequest { bucket: bucket(), ..WriteRequest::default() };
            let replies = ingest.write(futures::stream::iter([request])).await?;
            replies.into_inner().message().await.map(|_| ())
        }
        "Ingest.Push" => {
            let request = PushRequest { bucket: bucket(), ..PushRequest::default() };
            let replies = ingest.push(futures::stream::iter([request])).await?;
            replies.into_inner().message().await.map(|_| ())
        }
        "Ingest.CommitPush" => {
            let request = CommitPushRequest {
                bucket: bucket(),
                transaction: 1,
                parts: vec![PushedPart { vbucket: 0, vbuuid: 1, seqno: 1, mutations: 1 }],
            };
            ingest.commit_push(request).await.map(|_| ())
        }
        "Ingest.AbortPush" => {
            let request = AbortPushRequest { bucket: bucket(), transaction: 1 };
            ingest.abort_push(request).await.map(|_| ())
        }
        "Ingest.Positions" => {
            ingest.positions(PositionsRequest { bucket: bucket() }).await.map(|_| ())
        }
        "Ingest.Begin" => {
            let request = BeginRequest { bucket: bucket(), ..BeginRequest::default() };
            ingest.begin(request).await.map(|_| ())
        }
        "Ingest.Mutations" => {
            let request = MutationsRequest { transaction: 7, ..MutationsRequest::default() };
            let replies = ingest.mutations(futures::stream::iter([request])).await?;
            replies.into_inner().message().await.map(|_| ())
        }
        "Ingest.Commit" => ingest.commit(CommitRequest { transaction: 7 }).await.map(|_| ()),
        "Ingest.Abort" => ingest.abort(AbortRequest { transaction: 7 }).await.map(|_| ()),
        "Query.Scan" => {
            let request = ScanRequest { index: "i".into(), ..ScanRequest::default() };
            let mut replies = QueryClient::new(channel).scan(request).await?.into_inner();
            while replies.message().await?.is_some() {}
            Ok(())
        }
        other => panic!("{other} is not called"),
    }
}

fn state(status: &Status) -> String {
    let told = status.metadata().get("sqlstate").and_then(|value| value.to_str().ok());
    told.unwrap_or_default().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_call_is_for_those_who_have_its_privilege() {
    let doors = Doors::start().await;
    let mut wrong = Vec::new();
    for (role, principal) in doors.roles() {
        let channel = channel(doors.grpc(&principal).await).await;
        for (name, need) in CALLS {
            let answer = call(name, channel.clone()).await;
            let told = answer.as_ref().err().map(state).unwrap_or_default();
            if !role.agrees(*need, &told) || !is_coded(&role, *need, &answer) {
                wrong.push(format!("{}: {name}: {answer:?}, needs {need:?}", role.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of the table are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// Returns false if a refusal has a status code that belongs to another reason.
fn is_coded(role: &Role, need: Need, answer: &Result<(), Status>) -> bool {
    let code = answer.as_ref().err().map(Status::code);
    match role.refusal(need) {
        Some("42501") => code == Some(Code::PermissionDenied),
        Some(_) => code == Some(Code::NotFound),
        None => code != Some(Code::PermissionDenied),
    }
}

/// A user without the privilege is refused for that reason, whatever its documents, mutations and parts are.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_right_to_write_comes_before_the_contents() {
    let doors = Doors::start().await;
    let mut states = Vec::new();
    for privilege in [Scan, Write] {
        let user = doors.user("ada", doors.on(privilege, "b"));
        let mut ingest = IngestClient::new(channel(doors.grpc(&user).await).await);
        let kind = Some(document_write::Kind::Upsert(b"no JSON".to_vec().into()));
        let writes = vec![DocumentWrite { id: "9".into(), kind }];
        let write = WriteRequest { bucket: "b".into(), writes };
        let replies = ingest.write(futures::stream::iter([write])).await.expect("a stream");
        let written = replies.into_inner().message().await.expect_err("no document");
        let mutations = vec![PushMutation { vbucket: u32::MAX, ..PushMutation::default() }];
        let push = PushRequest { bucket: "b".into(), mutations, ..PushRequest::default() };
        let replies = ingest.push(futures::stream::iter([push])).await.expect("a stream");
        let pushed = replies.into_inner().message().await.expect_err("no mutation");
        let parts = vec![PushedPart { vbucket: u32::MAX, vbuuid: 1, seqno: 1, mutations: 1 }];
        let commit = CommitPushRequest { bucket: "b".into(), transaction: 1, parts };
        let committed = ingest.commit_push(commit).await.expect_err("no part");
        states.push([written, pushed, committed].map(|status| state(&status)));
    }
    assert_eq!(states[0], ["42501"; 3]);
    assert!(states[1].iter().all(|state| state != "42501"), "{states:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_is_for_the_user_who_began_it() {
    let doors = Doors::start().await;
    // One port knows both users by what they send; these ports share the transactions of none, so that one user has two ports here.
    let ada = doors.user("ada", doors.on(Write, "b"));
    let address = doors.grpc(&ada).await;
    let mut ingest = IngestClient::new(channel(address).await);
    let request = BeginRequest { bucket: "b".into(), ..BeginRequest::default() };
    let begun = ingest.begin(request).await.expect("begun").into_inner();
    doors.user("ada", doors.on(Scan, "b"));
    let commit = CommitRequest { transaction: begun.transaction };
    let kind = Some(document_write::Kind::Upsert(b"{}".to_vec().into()));
    let one = DocumentWrite { id: "9".into(), kind };
    let write = MutationsRequest {
        transaction: begun.transaction,
        writes: vec![one],
        ..MutationsRequest::default()
    };
    let replies = ingest.mutations(futures::stream::iter([write])).await.expect("a stream");
    let refused = replies.into_inner().message().await.expect_err("refused");
    assert_eq!(state(&refused), "42501", "{refused:?}");
    let committed = ingest.commit(commit).await;
    assert!(committed.is_err() || committed.is_ok_and(|reply| reply.into_inner().affected == 0));
}
