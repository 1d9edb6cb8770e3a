//! Tests the comparison of versions of data sets: the projectors' reports of the files that they
//! have read, and files for which a version ends.

use std::time::Duration;

use proto::model::data_set::{FilesRead, PartitionContent};
use proto::model::ids::{NodeId, VbucketId};
use proto::rpc::api::ProjectorApi;
use proto::rpc::command::{Command, VersionFailed};
use proto::{Error, ErrorCode};

use crate::common::*;
use crate::versions::*;

#[tokio::test]
async fn whole_partitions_are_told_again_from_what_is_stored() {
    let mut versions = Versions::new(2).await;
    put_people(&versions);
    versions.say();
    let told = versions.told_by(PROJECTOR, 4).await;
    versions.first.stop();
    versions.other.stop();
    versions.first.script.proposed.lock().unwrap().clear();
    // Another projector has reported their contents, so the files are not needed.
    for (partition, content) in &told {
        versions.version().partitions[usize::from(partition.0)].content = Some(*content);
    }
    versions.first.script.forget();
    versions.say();
    versions.put("people/b.jsonl", "gone");
    versions.first.start().await;
    assert_eq!(versions.told_by(PROJECTOR, 4).await, told);
    assert_eq!(versions.read_by(PROJECTOR), [None]);
}

#[tokio::test]
async fn projectors_tell_what_they_have_read_of_partitions_that_others_load() {
    let mut versions = Versions::new(1).await;
    put_people(&versions);
    versions.say();
    versions.told_by(PROJECTOR, 2).await;
    versions.told_by(OTHER, 2).await;
    let read = versions.read_by(PROJECTOR);
    let [Some(FilesRead { files: 2, rows: 300, .. })] = read[..] else { panic!("{read:?}") };
    assert_eq!(versions.read_by(OTHER), read);
}

#[tokio::test]
async fn unreported_partitions_are_compared_with_the_files() {
    let mut versions = Versions::new(1).await;
    put_people(&versions);
    versions.say();
    let told = versions.told_by(PROJECTOR, 2).await;
    let read = versions.read_by(PROJECTOR);
    versions.other.stop();
    for _ in 0..2 {
        versions.first.stop();
        versions.first.script.proposed.lock().unwrap().clear();
        versions.first.start().await;
        assert_eq!(versions.told_by(PROJECTOR, 2).await, told);
        assert_eq!(versions.read_by(PROJECTOR), read);
    }
    versions.first.stop();
    versions.put("people/b.jsonl", &lines(0..10, 0));
    versions.first.start().await;
    let error = versions.failure().await;
    assert!(error.message.contains("the files have changed"), "{error}");
}

#[tokio::test]
async fn a_bad_row_ends_the_version_once_with_its_file_and_line() {
    let mut versions = Versions::new(2).await;
    let mut text = lines(0..20_000, 0);
    text.push_str("{\"n\":1}\n");
    versions.put("people/a.jsonl", &text);
    versions.say();
    let error = versions.failure().await;
    assert!(error.message.starts_with("people/a.jsonl line 20001: "), "{error}");
    let failures = |node: NodeId| {
        let is_by = |command: &Command| matches!(command, Command::VersionFailed(VersionFailed { node: by, .. }) if *by == node);
        versions.proposed().iter().filter(|command| is_by(command)).count()
    };
    until("both say so", async || (failures(PROJECTOR) + failures(OTHER) == 2).then_some(())).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!((failures(PROJECTOR), failures(OTHER)), (1, 1));
    let is_loaded = |command: &Command| matches!(command, Command::PartitionsLoaded(_));
    assert!(!versions.proposed().iter().any(is_loaded));
}

#[tokio::test]
async fn a_projector_without_a_directory_of_files_says_which_setting_it_needs() {
    let mut versions = Versions::new(2).await;
    put_people(&versions);
    versions.other.stop();
    versions.first.config.files_dir = None;
    versions.first.start().await;
    versions.say();
    let error = versions.failure().await;
    assert!(error.hint.is_some_and(|hint| hint.contains("files_dir")), "{}", error.message);
}

#[tokio::test]
async fn files_that_differ_between_projectors_end_the_version() {
    let mut versions = Versions::new(2).await;
    put_people(&versions);
    let content = PartitionContent { rows: 9, documents: 9, bytes: 9, digest: 9 };
    versions.version().partitions[2].content = Some(content);
    versions.say();
    // The coordinators compare, and fail the version.
    let told = versions.told_by(PROJECTOR, 4).await;
    assert_ne!(told[&VbucketId(2)], content);
    assert!(versions.first.projector().get(VERSION, vec!["p1".into()]).await.is_err(), "not whole");
}

#[tokio::test]
async fn a_refusal_is_not_repeated() {
    let mut versions = Versions::new(2).await;
    put_people(&versions);
    let refused = Error::new(ErrorCode::WrongState, "the version has failed");
    *versions.first.script.refuses_versions.lock().unwrap() = Some(refused);
    versions.say();
    versions.told_by(PROJECTOR, 4).await;
    versions.told_by(OTHER, 4).await;
    let count = versions.proposed().len();
    versions.say();
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(versions.proposed().len(), count);
}
