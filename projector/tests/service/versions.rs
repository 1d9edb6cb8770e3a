//! Projectors load the partitions of a version from files, and tell what they have.
#![allow(clippy::disallowed_methods, reason = "a test writes the files that are read")]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::common::*;
use projector::testing::DocumentStore;
use proto::ErrorCode;
use proto::model::assignment::VbucketAssignment;
use proto::model::bucket::{BucketInfo, SourceKind};
use proto::model::catalog::Catalog;
use proto::model::data_set::{
    DataSet, Files, Partition, PartitionContent, Version, VersionStage, branch_of_partition,
    holders_of,
};
use proto::model::ids::{BucketId, NodeId, VbucketId};
use proto::rpc::api::{ProjectorApi, WatchMessage, WriteRequest};
use proto::rpc::command::Command;
use tokio::time::{sleep, timeout};

const SET: BucketId = BucketId(7);
const VERSION: BucketId = BucketId(8);
const OTHER: NodeId = NodeId(2);
const PARTITIONS: u16 = 4;
/// Documents in the files; the first hundred ids come twice.
const DOCUMENTS: usize = 3_000;

/// Two projectors that load each partition, and the directory of their files.
struct Pair {
    files: tempfile::TempDir,
    first: World,
    other: World,
    cas: u64,
}

impl Pair {
    async fn new() -> Self {
        let files = tempfile::tempdir().unwrap();
        write_files(files.path());
        let dir = files.path().to_path_buf();
        let set = |config: &mut projector::Config| config.files_dir = Some(dir.clone());
        let first = World::new(set).await;
        let other = World::beside_with(&first, OTHER, set).await;
        Self { files, first, other, cas: 0 }
    }

    /// Shows a catalog with the version in a stage, of which each partition has these holders.
    fn show(&mut self, stage: VersionStage, holders: &[NodeId]) {
        self.cas += 1;
        let nodes = vec![PROJECTOR, OTHER];
        let partition = Partition { holders: holders.to_vec(), content: None };
        let version = Version {
            name: "v1".into(),
            bucket: VERSION,
            files: Files { pattern: "set/*".into(), id: "id".into() },
            nodes: nodes.clone(),
            stage,
            partitions: vec![partition; usize::from(PARTITIONS)],
        };
        let owners = holders_of(PARTITIONS, 2, &nodes).iter().map(|holders| holders[0]).collect();
        let bucket = |id, name: &str, partitions, owners| {
            let info = BucketInfo::new(id, name, partitions, SourceKind::Files, PROJECTOR);
            (id, Arc::new(info.with_assignment(VbucketAssignment::of_owners(owners))))
        };
        let set = DataSet {
            newest: 1,
            versions: [(1, version)].into(),
            ..DataSet::new(PARTITIONS, 2, 1)
        };
        let node = |id| (id, Arc::new(projector_info(id)));
        let catalog = Catalog {
            cas: self.cas,
            buckets: [
                bucket(SET, "b", 1, vec![PROJECTOR]),
                bucket(VERSION, "b@v1", PARTITIONS, owners),
            ]
            .into(),
            nodes: [PROJECTOR, OTHER].map(node).into(),
            data_sets: [(SET, set)].into(),
            ..Catalog::default()
        };
        self.first.script.say(WatchMessage::Catalog(catalog.into()));
    }

    /// The projectors' proposals about the version, once there are `count`.
    async fn proposed(&self, count: usize) -> Vec<Command> {
        let found = async {
            loop {
                let all = self.first.script.proposed.lock().unwrap().clone();
                let is_ours = |command: &Command| {
                    matches!(
                        command,
                        Command::PartitionsLoaded { .. }
                            | Command::PartitionsLost { .. }
                            | Command::VersionFailed { .. }
                    )
                };
                let ours: Vec<_> = all.into_iter().filter(is_ours).collect();
                if ours.len() >= count {
                    return ours;
                }
                sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(Duration::from_secs(30), found).await.expect("the projectors tell in time")
    }
}

fn write_files(dir: &Path) {
    let dir = dir.join("set");
    std::fs::create_dir_all(&dir).unwrap();
    let half = DOCUMENTS / 2;
    let lines: String = (0..half).map(|n| format!("{{\"id\":\"d{n}\",\"n\":{n}}}\n")).collect();
    std::fs::write(dir.join("1.jsonl"), lines).unwrap();
    let records = (half..DOCUMENTS).map(|n| format!("d{n},{n}\n"));
    let again = (0..100).map(|n| format!("d{n},-{n}\n"));
    let text: String = std::iter::once("id,n\n".to_owned()).chain(records).chain(again).collect();
    std::fs::write(dir.join("2.csv"), text).unwrap();
}

/// The contents that a projector has advertised, by partition.
fn loaded(commands: &[Command], by: NodeId) -> Vec<(VbucketId, PartitionContent)> {
    let of = |command: &Command| match command {
        Command::PartitionsLoaded { bucket: VERSION, node, partitions } if *node == by => {
            Some(partitions.clone())
        }
        _ => None,
    };
    commands.iter().find_map(of).unwrap_or_else(|| panic!("{by} tells nothing: {commands:?}"))
}

async fn read(world: &World, id: &str) -> Option<String> {
    let found = world.projector().get(VERSION, vec![id.into()]).await;
    let found = found.expect("a partition that is whole");
    found[0].as_ref().map(|document| String::from_utf8(document.to_vec()).unwrap())
}

#[tokio::test]
async fn all_holders_of_a_partition_have_the_same_documents_and_tell_so() {
    let mut pair = Pair::new().await;
    pair.show(VersionStage::Loading, &[]);
    let commands = pair.proposed(2).await;
    let contents = loaded(&commands, PROJECTOR);
    assert_eq!(contents, loaded(&commands, OTHER));
    assert_eq!(contents.len(), usize::from(PARTITIONS));
    let sum = |of: fn(&PartitionContent) -> u64| contents.iter().map(|(_, c)| of(c)).sum::<u64>();
    assert_eq!(sum(|c| c.documents), DOCUMENTS as u64);
    assert_eq!(sum(|c| c.rows), DOCUMENTS as u64 + 100, "the last row of an id counts");
    for world in [&pair.first, &pair.other] {
        assert_eq!(read(world, "d7").await.as_deref(), Some("{\"id\":\"d7\",\"n\":-7}"));
        assert_eq!(read(world, "d2999").await.as_deref(), Some("{\"id\":\"d2999\",\"n\":2999}"));
        assert_eq!(read(world, "d3000").await, None);
    }
    let records = pair.first.store.buckets().unwrap();
    let (record, ends) = records.iter().find(|(record, _)| record.info.id == VERSION).unwrap();
    for (partition, content) in &contents {
        let at = usize::from(partition.0);
        assert_eq!(record.branches[at], [(branch_of_partition(VERSION, *partition), 0)]);
        assert_eq!(ends[at].0, content.rows);
    }
}

#[tokio::test]
async fn a_projector_that_starts_again_advertises_what_it_has_and_loads_what_it_lacks() {
    let mut pair = Pair::new().await;
    pair.show(VersionStage::Loading, &[]);
    let before = loaded(&pair.proposed(2).await, PROJECTOR);
    pair.first.script.proposed.lock().unwrap().clear();
    pair.first.start().await;
    let commands = pair.proposed(1).await;
    assert_eq!(loaded(&commands, PROJECTOR), before, "from what is stored");
    assert_eq!(read(&pair.first, "d11").await.as_deref(), Some("{\"id\":\"d11\",\"n\":-11}"));
    // The files are not needed any more.
    std::fs::remove_dir_all(pair.files.path().join("set")).unwrap();
    pair.first.script.proposed.lock().unwrap().clear();
    pair.first.start().await;
    assert_eq!(loaded(&pair.proposed(1).await, PROJECTOR), before);
}

#[tokio::test]
async fn a_projector_that_has_lost_its_partitions_says_so() {
    let mut pair = Pair::new().await;
    std::fs::remove_dir_all(pair.files.path().join("set")).unwrap();
    pair.show(VersionStage::Current, &[PROJECTOR]);
    let all: Vec<_> = (0..PARTITIONS).map(VbucketId).collect();
    let lost = Command::PartitionsLost { bucket: VERSION, node: PROJECTOR, partitions: all };
    assert_eq!(pair.proposed(1).await, [lost]);
    let refused = pair.first.projector().get(VERSION, vec!["d1".into()]).await;
    let refused = refused.expect_err("nothing is here");
    assert!(refused.is_retry(), "another holder may have it: {refused}");
}

#[tokio::test]
async fn a_bad_row_fails_the_version_with_its_place() {
    let mut pair = Pair::new().await;
    std::fs::write(pair.files.path().join("set/1.jsonl"), "{\"id\":\"a\"}\n{\"n\":1}\n").unwrap();
    pair.show(VersionStage::Loading, &[]);
    for command in pair.proposed(2).await {
        let Command::VersionFailed { bucket: VERSION, error, .. } = command else {
            panic!("{command:?}")
        };
        assert!(error.message.starts_with("set/1.jsonl: line 2"), "{error}");
        assert_eq!(error.code, ErrorCode::InvalidText);
    }
}

#[tokio::test]
async fn a_bucket_from_files_takes_no_writes() {
    let mut pair = Pair::new().await;
    pair.show(VersionStage::Loading, &[]);
    pair.proposed(2).await;
    for bucket in [SET, VERSION] {
        let writes = vec![upsert("x", "{}")];
        let refused = pair.first.projector().write(WriteRequest { bucket, writes }).await;
        assert_eq!(refused.expect_err("no writes").code, ErrorCode::Unsupported);
    }
}
