//! Tests versions of data sets: projectors load their partitions from files, report them to the
//! coordinators, and serve the complete ones.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use projector::testing::{DocumentStore, StoredDocument};
use proto::env::{Env, OpenMode};
use proto::model::assignment::{VbucketAssignment, VbucketSet};
use proto::model::bucket::*;
use proto::model::catalog::*;
use proto::model::cut::{Cut, EpochMark, Position};
use proto::model::data_set::*;
use proto::model::identity::UniqueId;
use proto::model::ids::*;
use proto::model::index::*;
use proto::rpc::api::*;
use proto::rpc::command::{Command, PartitionsLoaded, PartitionsLost, VersionFailed};
use proto::rpc::mutation::*;
use proto::value::Value;
use proto::{Error, ErrorCode};

use crate::common::*;

pub const SET: BucketId = BucketId(20);
pub const VERSION: BucketId = BucketId(21);
pub const OTHER: NodeId = NodeId(2);
pub const PARTITIONS: u16 = 4;

/// Two projectors, and a data set with a version of which each partition has `replication` holders.
pub struct Versions {
    pub first: World,
    pub other: World,
    pub dir: tempfile::TempDir,
    pub cas: u64,
    pub set: DataSet,
    pub owners: VbucketAssignment,
    pub indexes: Vec<Arc<IndexInfo>>,
}

impl Versions {
    pub async fn new(replication: u16) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let files_dir = Some(dir.path().to_path_buf());
        let first = World::new(|config| config.files_dir = files_dir.clone()).await;
        let other = World::beside_with(&first, OTHER, |c| c.files_dir = files_dir.clone()).await;
        let nodes = vec![PROJECTOR, OTHER];
        let holders = holders_of(PARTITIONS, replication, &nodes);
        let owners = holders.iter().map(|holders| holders[0]).collect();
        let version = Version {
            name: "v1".into(),
            bucket: VERSION,
            files: Files { pattern: "people/*.jsonl".into(), id: "id".into() },
            nodes,
            stage: VersionStage::Loading,
            partitions: vec![Partition::default(); usize::from(PARTITIONS)],
        };
        let mut set = DataSet::new(PARTITIONS, replication, 0);
        set.versions.insert(1, version);
        let owners = VbucketAssignment::of_owners(owners);
        Self { first, other, dir, cas: 0, set, owners, indexes: Vec::new() }
    }

    pub fn version(&mut self) -> &mut Version {
        self.set.versions.get_mut(&1).expect("the version")
    }

    pub fn catalog(&self) -> Catalog {
        let base = BucketInfo::new(SET, "people", 1, SourceKind::Files, PROJECTOR);
        let mut buckets: BTreeMap<_, _> = [(SET, Arc::new(base))].into();
        if self.set.versions.contains_key(&1) {
            let name = version_bucket_name("people", "v1");
            let bucket = BucketInfo::new(VERSION, name, PARTITIONS, SourceKind::Files, PROJECTOR);
            let bucket = bucket.with_assignment(self.owners.clone());
            buckets.insert(VERSION, Arc::new(bucket));
        }
        let node = |id| (id, Arc::new(projector_info(id)));
        Catalog {
            cas: self.cas,
            nodes: [PROJECTOR, OTHER].map(node).into(),
            indexes: self.indexes.iter().map(|index| (index.id, Arc::clone(index))).collect(),
            bucket_ids: buckets.keys().map(|id| (*id, UniqueId(u128::from(id.0)))).collect(),
            buckets,
            data_sets: [(SET, self.set.clone())].into(),
            ..Catalog::default()
        }
    }

    /// Sends the present catalog.
    pub fn say(&mut self) {
        self.cas += 1;
        self.first.script.say(WatchMessage::Catalog(Arc::new(self.catalog())));
    }

    pub fn put(&self, name: &str, text: &str) {
        let (path, fs) = (self.dir.path().join(name), Env::real().fs);
        fs.create_dir_all(path.parent().expect("a parent")).expect("made");
        let file = fs.open(&path, OpenMode::Create).expect("created");
        file.set_len(0).expect("emptied");
        file.write_all_at(text.as_bytes(), 0).expect("written");
    }

    pub fn proposed(&self) -> Vec<Command> {
        self.first.script.proposed.lock().unwrap().clone()
    }

    /// Waits until a projector has reported this many partitions; returns the reports.
    pub async fn told_by(
        &self,
        node: NodeId,
        count: usize,
    ) -> BTreeMap<VbucketId, PartitionContent> {
        until("partitions are told", async || {
            let mut told = BTreeMap::new();
            for command in self.proposed() {
                if let Command::PartitionsLoaded(PartitionsLoaded {
                    bucket,
                    node: by,
                    partitions,
                    ..
                }) = command
                    && by == node
                {
                    assert_eq!(bucket, VERSION);
                    told.extend(partitions);
                }
            }
            (told.len() >= count).then_some(told)
        })
        .await
    }

    /// Waits for the projectors' reports, and adds them to the catalog.
    pub async fn loaded(&mut self) {
        for node in [PROJECTOR, OTHER] {
            let mine = self.set.versions[&1].partitions_of(node, self.set.replication);
            for (partition, content) in self.told_by(node, mine.len()).await {
                let of = &mut self.version().partitions[usize::from(partition.0)];
                of.content = Some(content);
                of.holders.push(node);
            }
        }
        self.say();
    }

    /// Returns the summaries of files in a projector's reports, in their order.
    pub fn read_by(&self, node: NodeId) -> Vec<Option<FilesRead>> {
        let read = |command| match command {
            Command::PartitionsLoaded(PartitionsLoaded { node: by, read, .. }) if by == node => {
                Some(read)
            }
            _ => None,
        };
        self.proposed().into_iter().filter_map(read).collect()
    }

    /// Waits for the error that ended the version, and returns it.
    pub async fn failure(&self) -> Error {
        until("the version fails", async || {
            self.proposed().into_iter().find_map(|command| match command {
                Command::VersionFailed(VersionFailed { bucket: VERSION, error, .. }) => Some(error),
                _ => None,
            })
        })
        .await
    }

    pub async fn lost_by(&self, node: NodeId) -> Vec<VbucketId> {
        until("partitions are lost", async || {
            self.proposed().into_iter().find_map(|command| match command {
                Command::PartitionsLost(PartitionsLost {
                    bucket: VERSION,
                    node: by,
                    partitions,
                }) if by == node => Some(partitions),
                _ => None,
            })
        })
        .await
    }

    /// Returns the cut that the coordinators publish.
    pub fn cut(&self) -> Cut {
        let position = |(partition, of): (u16, &Partition)| Position {
            vbuuid: branch_of_partition(VERSION, VbucketId(partition)),
            seqno: Seqno(of.content.expect("complete").rows),
        };
        let partitions = &self.set.versions[&1].partitions;
        Cut::from_positions((0..).zip(partitions).map(position).collect())
    }

    pub fn publish(&self) {
        let mark =
            EpochMark { bucket: VERSION, cut: Arc::new(self.cut()), ..mark(7, 0, &Cut::zero(0)) };
        self.first.script.say(WatchMessage::Epochs(vec![mark]));
    }
}

/// Returns the stored documents of the version, by id.
pub fn stored(world: &World) -> BTreeMap<String, (u64, Bytes)> {
    let mut snapshot = world.store.snapshot(VERSION).expect("a snapshot");
    let all = snapshot.next_chunk(usize::MAX).expect("documents");
    let of = |StoredDocument { id, seqno, document }| (id, (seqno.0, document));
    all.into_iter().map(of).collect()
}

/// Returns lines with ids from a range, whose number depends on `n`.
pub fn lines(ids: std::ops::Range<u32>, n: u32) -> String {
    ids.map(|id| format!("{{\"id\":\"p{id}\",\"n\":{}}}\n", id + n)).collect()
}

/// Writes two files of 300 rows with 250 distinct ids: 50 ids are in both files.
pub fn put_people(versions: &Versions) {
    versions.put("people/a.jsonl", &lines(0..150, 0));
    versions.put("people/b.jsonl", &lines(100..250, 1000));
}

/// Returns the number in each document of [`put_people`], by id.
pub fn people() -> BTreeMap<String, u32> {
    (0..250).map(|id| (format!("p{id}"), if id < 100 { id } else { id + 1000 })).collect()
}

pub fn numbers(world: &World) -> BTreeMap<String, u32> {
    let number = |document: &Bytes| match Value::parse_json(document).expect("JSON") {
        Value::Object(object) => {
            object.get("n").and_then(Value::as_number).and_then(|n| n.as_i64())
        }
        _ => None,
    };
    let of = |(id, (_, document))| (id, number(&document).expect("a number") as u32);
    stored(world).into_iter().map(of).collect()
}

#[tokio::test]
async fn all_holders_have_equal_documents() {
    let mut versions = Versions::new(2).await;
    put_people(&versions);
    versions.say();
    let told = versions.told_by(PROJECTOR, 4).await;
    assert_eq!(versions.told_by(OTHER, 4).await, told);
    let sum = |of: fn(&PartitionContent) -> u64| told.values().map(of).sum::<u64>();
    assert_eq!((sum(|of| of.rows), sum(|of| of.documents)), (300, 250));
    assert_eq!(stored(&versions.first), stored(&versions.other));
    assert_eq!(numbers(&versions.first), people(), "of rows with one id the last one counts");
    let bytes: usize =
        stored(&versions.first).iter().map(|(id, (_, text))| id.len() + text.len()).sum();
    assert_eq!(sum(|of| of.bytes), bytes as u64);
    versions.loaded().await;
    // Each row has its number in its partition.
    for (partition, content) in told {
        let seqnos: BTreeSet<u64> = stored(&versions.first)
            .into_iter()
            .filter(|(id, _)| vbucket_of(id, PARTITIONS) == partition)
            .map(|(_, (seqno, _))| seqno)
            .collect();
        assert_eq!(seqnos.len() as u64, content.documents);
        assert_eq!(seqnos.last(), Some(&content.rows), "the last row counts");
    }
    // Every holder answers, whichever projector owns the partition.
    for world in [&versions.first, &versions.other] {
        let ids: Vec<String> = people().into_keys().collect();
        let found = world.projector().get(VERSION, ids.clone()).await.expect("documents");
        assert!(found.iter().all(Option::is_some));
        let request =
            DocumentsRequest { bucket: VERSION, ids, snapshot: Some(Epoch(7)), own: None };
        assert_eq!(world.projector().get_for_transaction(request).await.expect("documents"), found);
    }
}

#[tokio::test]
async fn a_projector_has_its_own_partitions_only() {
    let mut versions = Versions::new(1).await;
    put_people(&versions);
    versions.say();
    versions.loaded().await;
    let mut all = numbers(&versions.first);
    let others = numbers(&versions.other);
    assert!(others.keys().all(|id| !all.contains_key(id)));
    let (own, other) = (all.keys().next().cloned(), others.keys().next().cloned());
    all.extend(others);
    assert_eq!(all, people());
    let projector = versions.first.projector();
    projector.get(VERSION, own.into_iter().collect()).await.expect("its own");
    let error = projector.get(VERSION, other.into_iter().collect()).await.expect_err("elsewhere");
    assert_eq!(error.code, ErrorCode::NotOwner);
}

#[tokio::test]
async fn an_owner_streams_its_partitions_once_they_are_whole() {
    let mut versions = Versions::new(1).await;
    put_people(&versions);
    let node = INDEXERS[0];
    let info = index_on(1, vec![path("n")], PartitionBy::DocumentId);
    let placement = vec![vec![node]; usize::from(SLICES)];
    let info = IndexInfo::new(info.id, VERSION, (*info.spec).clone(), placement);
    versions.indexes.push(Arc::new(info));
    versions.say();
    versions.loaded().await;
    versions.publish();
    let (mut contents, mut seqnos) = (Contents::new(), BTreeMap::new());
    for world in [&versions.first, &versions.other] {
        let projector = world.projector();
        let owned = until("the partitions are owned", async || {
            let history = projector.history(VERSION).await.expect("a history");
            (history.kept.len() == 2).then_some(history)
        })
        .await;
        assert_eq!(owned.durable, versions.cut().only_vbuckets(&owned.kept));
        let request = SubscribeRequest { node, bucket: VERSION, from: None, last_epoch: Epoch(0) };
        let stream = projector.subscribe(request).await.expect("a stream");
        let mut follower = Follower { stream, ..Follower::default() };
        while follower.epochs != [7] {
            follower.step().await.expect("the stream goes on");
        }
        assert_eq!(
            follower.at,
            versions.cut().only_vbuckets(&owned.kept),
            "nothing of it is in frames"
        );
        let index = versions.indexes[0].local_id();
        let vbuckets = Some(owned.kept.clone());
        let request = BackfillRequest { node, index, revision: 0, vbuckets };
        let mut stream = projector.backfill(request).await.expect("a backfill");
        while let Some(message) = stream.next().await {
            let BackfillMessage::Documents(body) = message.expect("it goes on") else { continue };
            for mutation in KeyVersionsReader::new(&body) {
                let mutation = mutation.expect("well formed");
                let state = mutation.indexes().next().expect("one index");
                seqnos.insert(mutation.id.to_owned(), mutation.seqno_minus_base);
                apply(&mut contents, &mutation, &state);
            }
        }
    }
    let expected = people().into_iter().map(|(id, n)| (id, vec![Value::int(i64::from(n))]));
    assert_eq!(contents, expected.collect());
    let mut stored_all = stored(&versions.first);
    stored_all.extend(stored(&versions.other));
    let expected = stored_all.into_iter().map(|(id, (seqno, _))| (id, seqno));
    assert_eq!(seqnos, expected.collect());
}

#[tokio::test]
async fn a_partition_moves_to_another_holder_without_a_copy() {
    let mut versions = Versions::new(2).await;
    put_people(&versions);
    versions.say();
    versions.loaded().await;
    versions.owners = VbucketAssignment::single(PARTITIONS, OTHER);
    versions.say();
    let projector = versions.other.projector();
    until("the other one owns all", async || {
        let history = projector.history(VERSION).await.expect("a history");
        (history.kept == VbucketSet::all(PARTITIONS)).then_some(())
    })
    .await;
    assert_eq!(projector.history(VERSION).await.expect("a history").durable, versions.cut());
    let history = versions.first.projector().history(VERSION).await.expect("a history");
    assert!(history.kept.is_empty());
    assert_eq!(numbers(&versions.first), people(), "it stays a holder");
}

#[tokio::test]
async fn a_version_takes_no_writes_and_reports_nothing() {
    let mut versions = Versions::new(2).await;
    put_people(&versions);
    versions.say();
    versions.loaded().await;
    let projector = versions.first.projector();
    for bucket in [SET, VERSION] {
        let writes = checked(vec![upsert("p1", "{}")]);
        let error = projector.write(WriteRequest { bucket, writes }).await.expect_err("no writes");
        assert_eq!(error.code, ErrorCode::Unsupported);
        assert!(error.message.contains("loaded from files"), "{error}");
        assert!(error.hint.is_some_and(|hint| hint.contains("LOAD VERSION")));
        let push = PushRequest { bucket, branches: vec![], mutations: vec![] };
        assert_eq!(projector.push(push).await.expect_err("no pushes").code, ErrorCode::Unsupported);
    }
    // All positions are reported every half second.
    tokio::time::sleep(Duration::from_millis(700)).await;
    assert!(versions.first.script.synced.lock().unwrap().is_empty());
    let base = projector.history(SET).await.expect("a history");
    assert_eq!(
        (base.kept.len(), base.durable.get(VbucketId(0)).seqno),
        (1, Seqno(0)),
        "it is served, empty"
    );
}
