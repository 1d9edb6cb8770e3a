//! Tests of the log's size on disk: what retains segments, and the effect of a log that ends too
//! early.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use proto::ErrorCode;
use proto::env::OpenMode;
use proto::model::ids::{Seqno, VbucketId, vbucket_of};
use proto::rpc::mutation::MutationKind;

use super::crashes::{BUCKET, VBUCKETS, World};
use super::open_whole;
use crate::document_store::{Batch, DocumentStore};
use crate::mutation::Mutation;
use storage::log::scan_segment;

const LOG: &str = "/data/buckets/00000000/log";

impl World {
    fn settle(&self) {
        while self.store().maintain().expect("maintained") {}
    }

    fn ends(&self) -> Vec<Seqno> {
        self.store().all()[0].1.ends()
    }

    fn held_bytes(&self) -> u64 {
        self.store().all()[0].1.log.retained_bytes()
    }

    fn purge_to(&self, to: &[(VbucketId, Seqno)]) {
        self.store().purge(BUCKET, to).expect("purged");
        // A flush, so that the checkpoint covers what was purged.
        self.store().all()[0].1.flush().expect("flushed");
        self.settle();
    }

    /// Commits `groups` groups of mutations in one vbucket.
    fn commit_to(&self, vbucket: VbucketId, groups: usize) {
        let is_there = |id: &String| vbucket_of(id, VBUCKETS) == vbucket;
        let ids: Vec<_> = (0..).map(|n| format!("e{n}")).filter(is_there).take(9).collect();
        for _ in 0..groups {
            let mut next = self.ends()[usize::from(vbucket.0)].0;
            let mut changes = Batch::default();
            for id in &ids {
                next += 1;
                let (id, kind) = (Arc::<str>::from(&**id), MutationKind::Upsert);
                let document = Bytes::from_static(b"{\"some\":\"document\"}");
                let mutation = Mutation::new((vbucket, Seqno(next)), id, kind, document);
                changes.mutations.push(Arc::new(mutation));
            }
            self.store().commit(BUCKET, changes).expect("a batch");
            self.settle();
        }
    }
}

#[test]
fn an_idle_vbucket_retains_no_segment() {
    let mut world = World::new(7);
    (0..20).for_each(|_| world.commit());
    let all: Vec<_> = (0..).map(VbucketId).zip(world.ends()).collect();
    world.purge_to(&all);
    world.commit_to(VbucketId(1), 200);
    let before = world.held_bytes();
    let end = world.ends()[1];
    world.purge_to(&[(VbucketId(1), Seqno(end.0 - 10))]);
    assert!(before > 60_000 && world.held_bytes() < 20_000, "{before}, {}", world.held_bytes());
}

/// The slow vbuckets have few mutations, so that no bound on their mutations purges them.
#[test]
fn purge_releases_segments_of_a_slow_vbucket() {
    let mut world = World::new(8);
    (0..20).for_each(|_| world.commit());
    world.commit_to(VbucketId(1), 200);
    let end = world.ends()[1];
    world.purge_to(&[(VbucketId(1), Seqno(end.0 - 10))]);
    let before = world.held_bytes();
    assert!(before > 60_000, "{before}");
    let bound = 20_000;
    let points = world.store().points_to_shrink_to(BUCKET, bound).expect("points");
    let vbuckets: Vec<_> = points.iter().map(|(vbucket, _)| vbucket.0).collect();
    assert_eq!(vbuckets, [0, 2], "the fast one holds nothing old");
    world.purge_to(&points);
    assert!(world.held_bytes() <= bound, "{}", world.held_bytes());
    assert_eq!(world.store().points_to_shrink_to(BUCKET, bound).expect("points"), []);
    world.open();
    assert_eq!(world.ends()[1], end);
}

/// A record of the bucket, without versions in memory, moves the checkpoint too.
#[test]
fn record_changes_alone_advance_the_checkpoint() {
    let world = World::new(11);
    let (_, bucket) = world.store().all().remove(0);
    for _ in 0..600 {
        world.store().put_records(&[bucket.record()]).expect("a record");
        world.settle();
    }
    assert!(bucket.log.end() > 40_000, "{}", bucket.log.end());
    assert!(world.held_bytes() < 40_000, "{}", world.held_bytes());
}

/// A synced end of the log that is torn is reported and kept; only the source's manifest knows the
/// length of the log.
#[test]
fn lost_synced_end_is_an_error_and_changes_nothing() {
    let mut world = World::new(5);
    (0..10).for_each(|_| world.commit());
    world.store = None;
    let env = &world.env;
    let (mut last, mut witness) = (PathBuf::new(), 0);
    for path in env.fs.list(Path::new(LOG)).expect("the log") {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("log") => last = last.max(path),
            Some("witness") => {
                env.fs.remove_file(&path).expect("removed");
                witness += 1;
            }
            _ => {}
        }
    }
    let file = env.fs.open(&last, OpenMode::ReadWrite).expect("the last segment");
    let used =
        scan_segment(&*env.fs, &last, &mut |_, _| ()).expect("the last segment").used_bytes();
    let cut = used - 40;
    file.set_len(cut).expect("shortened");
    for _ in 0..2 {
        let error = open_whole(env, Path::new("/data")).map(|_| ());
        let error = error.expect_err("a loss");
        assert_eq!((error.code, witness), (ErrorCode::Corrupt, 1), "{error}");
        assert!(error.message.contains("mutations"), "{error}");
        assert_eq!(file.len().expect("its length"), cut, "nothing more was cut");
    }
}

/// A log that is shorter than its checkpoint is reported, even without the witness and the newest
/// manifest of the source.
#[test]
fn a_log_that_ends_before_its_checkpoint_is_named() {
    let mut world = World::new(3);
    while world.store().all()[0].1.covered() < 9_000 {
        world.commit();
        world.settle();
    }
    let covered = world.store().all()[0].1.covered();
    world.store = None;
    for path in world.env.fs.list(Path::new(LOG)).expect("the log") {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let base = name.strip_suffix(".log").and_then(|base| base.parse::<u64>().ok());
        if base.is_none_or(|base| base > 0 && base + 5_000 > covered) {
            world.env.fs.remove_file(&path).expect("removed");
        }
    }
    let error = open_whole(&world.env, Path::new("/data")).map(|_| ());
    let error = error.expect_err("a loss");
    assert_eq!(error.code, ErrorCode::Corrupt, "{error}");
    assert!(error.message.contains(LOG), "{error}");
}
