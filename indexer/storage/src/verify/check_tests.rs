//! Tests that an intact directory passes, and that every damaged, missing or left-over file is
//! reported.

use std::sync::Arc;

use bytes::Bytes;
use proto::env::sim::{SimFs, world};
use proto::model::cut::{Cut, EpochMark, Position};
use proto::model::ids::{BucketId, Epoch, NodeId, Seqno, SliceNo, VbucketId, Vbuuid};
use proto::rpc::mutation::{KeyVersionsWriter, MutationKind};

use super::*;
use crate::batch::{EpochBatch, VbucketMutations};
use crate::engine::storage_engine::StorageEngine;
use crate::log::format::SegmentHead;
use crate::manifest::testing;
use crate::options::StoreOptions;
use crate::rows::columns::Grouping;
use crate::slice_store::SliceStore;

const DIR: &str = "data";
const BUCKET: BucketId = BucketId(2);

/// Documents with one entry each.
fn documents(ids: std::ops::Range<u64>) -> Bytes {
    let info = testing::manifest().info;
    let mut writer = KeyVersionsWriter::default();
    for n in ids {
        writer.mutation(n + 1, MutationKind::Upsert, &format!("user{n:08}"), 1);
        writer.index(info.local_id(), 1);
        writer.entry(SliceNo(0), &(n * 77).to_be_bytes(), b"");
    }
    writer.finish()
}

fn mark(epoch: u64, seqno: u64) -> EpochMark {
    let position = Position { vbuuid: Vbuuid(9), seqno: Seqno(seqno) };
    EpochMark {
        bucket: BUCKET,
        epoch: Epoch(epoch),
        parent: Epoch(epoch - 1),
        cut: Arc::new(Cut::zero(1).with(&[(VbucketId(0), position)])),
        horizon: Epoch(0),
        points: Arc::default(),
    }
}

async fn apply(store: &StorageEngine, epoch: u64, ids: std::ops::Range<u64>) {
    let to = Seqno(ids.end + 1);
    let piece = VbucketMutations { body: documents(ids), base: Seqno(0), after: Seqno(0), to };
    store
        .apply(EpochBatch { mark: mark(epoch, to.0), pieces: vec![piece], commits: Vec::new() })
        .await
        .unwrap();
    store.wait_durable(BUCKET, Epoch(epoch)).await.unwrap();
}

/// A node's directory: an index in fragments, and an epoch that is only in the log.
async fn node() -> (Env, SimFs) {
    let (env, _, fs) = world(1);
    let dir = Path::new(DIR);
    env.fs.create_dir_all(dir).unwrap();
    let version = env.fs.open(&layout::version_path(dir), OpenMode::Create).unwrap();
    version.write_all_at(layout::DATA_VERSION.as_bytes(), 0).unwrap();
    let store = StorageEngine::open(&env, NodeId(1), dir, StoreOptions::default()).unwrap();
    let info = testing::manifest().info;
    let index = info.local_id();
    store.begin_build(info, Grouping::Together).await.unwrap();
    store.begin_backfill(index).await.unwrap();
    store.backfill(index, documents(0..300)).await.unwrap();
    apply(&store, 1, 300..310).await;
    store.finish_build(index, &mark(1, 311)).await.unwrap();
    apply(&store, 2, 200..350).await;
    store.flush().await.unwrap();
    apply(&store, 3, 340..360).await;
    drop(store);
    (env, fs)
}

fn files(env: &Env, dir: &Path) -> Vec<PathBuf> {
    env.fs.list(dir).unwrap()
}

fn bytes(env: &Env, path: &Path) -> Vec<u8> {
    let file = env.fs.open(path, OpenMode::Read).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

fn all_files(env: &Env) -> Vec<PathBuf> {
    let dir = Path::new(DIR);
    let dirs = [layout::log_dir(dir), layout::manifest_dir(dir), layout::fragment_dir(dir)];
    dirs.iter().flat_map(|dir| files(env, dir)).collect()
}

#[tokio::test]
async fn an_intact_directory_passes_and_is_unchanged() {
    let (env, _) = node().await;
    let before: Vec<_> = all_files(&env).iter().map(|path| bytes(&env, path)).collect();
    let report = verify(&env, Path::new(DIR));
    assert_eq!(report.findings, vec![]);
    assert_eq!((report.log_segments, report.manifests), (1, 2));
    assert!(report.fragments >= 2 && report.rows >= 720 && report.log_records > 0, "{report:?}");
    let sizes: usize = before.iter().map(Vec::len).sum();
    assert_eq!(report.bytes, sizes as u64);
    let after: Vec<_> = all_files(&env).iter().map(|path| bytes(&env, path)).collect();
    assert!(before == after);
}

#[tokio::test]
async fn a_flipped_bit_in_any_file_is_named() {
    let (env, fs) = node().await;
    for path in all_files(&env) {
        let bits = bytes(&env, &path).len() as u64 * 8;
        for n in 0..200u64 {
            let bit = n * 0x9e37_79b9 % bits;
            fs.flip_bit(&path, bit).unwrap();
            let report = verify(&env, Path::new(DIR));
            let mut remarks = report.findings.iter().chain(&report.notes);
            assert!(remarks.any(|remark| remark.path == path), "{path:?}, bit {bit}");
            // A torn tail of the log is no damage; everything else is.
            let may_be_torn = path.starts_with(layout::log_dir(Path::new(DIR)));
            assert!(may_be_torn || !report.findings.is_empty(), "{path:?}, bit {bit}");
            fs.flip_bit(&path, bit).unwrap();
        }
    }
    assert_eq!(verify(&env, Path::new(DIR)).findings, vec![]);
}

#[tokio::test]
async fn a_damaged_record_that_was_durable_is_damage_and_a_torn_tail_is_not() {
    let (env, fs) = node().await;
    let log = files(&env, &layout::log_dir(Path::new(DIR))).remove(0);
    fs.flip_bit(&log, 8 * 50).unwrap();
    assert_eq!(verify(&env, Path::new(DIR)).findings.len(), 1);
    fs.flip_bit(&log, 8 * 50).unwrap();
    let file = env.fs.open(&log, OpenMode::ReadWrite).unwrap();
    let len = file.len().unwrap();
    file.write_all_at(b"half a record", len).unwrap();
    let report = verify(&env, Path::new(DIR));
    assert_eq!((report.findings.len(), report.notes.len()), (0, 1), "{report:?}");
}

#[tokio::test]
async fn zeros_behind_a_closed_segment_are_a_finding() {
    let (env, _) = node().await;
    let dir = layout::log_dir(Path::new(DIR));
    let log = files(&env, &dir).remove(0);
    let info = log::scan_segment(&*env.fs, &log, &mut |_, _| ()).unwrap();
    let head = SegmentHead { base: info.end, log_id: info.log_id, chain: info.chain_end.unwrap() };
    let next = env.fs.open(&log::segment_path(&dir, info.end), OpenMode::CreateNew).unwrap();
    next.write_all_at(&head.encode(), 0).unwrap();
    assert_eq!(verify(&env, Path::new(DIR)).findings, vec![]);
    let file = env.fs.open(&log, OpenMode::ReadWrite).unwrap();
    file.write_all_at(&[0; 100], file.len().unwrap()).unwrap();
    let report = verify(&env, Path::new(DIR));
    assert_eq!(report.findings.len(), 1, "{report:?}");
    assert_eq!(report.findings[0].path, log);
}

#[tokio::test]
async fn a_missing_fragment_is_a_finding_and_an_unnamed_one_is_a_note() {
    let (env, _) = node().await;
    let dir = Path::new(DIR);
    let fragments = files(&env, &layout::fragment_dir(dir));
    let stray = layout::fragment_path(dir, 4711);
    env.fs.rename(&fragments[0], &stray).unwrap();
    let other = layout::log_dir(dir).join("README");
    env.fs.open(&other, OpenMode::Create).unwrap();
    let report = verify(&env, dir);
    assert_eq!(report.findings.len(), 1, "{report:?}");
    assert_eq!(report.findings[0].path, fragments[0]);
    assert!(report.findings[0].message.contains(".manifest names it"), "{report:?}");
    let noted: Vec<_> = report.notes.iter().map(|note| &note.path).collect();
    assert_eq!(noted, [&other, &stray]);
}

#[tokio::test]
async fn a_manifest_under_a_wrong_name_is_a_finding() {
    let (env, _) = node().await;
    let dir = layout::manifest_dir(Path::new(DIR));
    let manifest = files(&env, &dir).into_iter().find(|path| !path.ends_with("node.manifest"));
    env.fs.rename(&manifest.unwrap(), &dir.join("index-8.3.manifest")).unwrap();
    let report = verify(&env, Path::new(DIR));
    assert!(report.findings[0].message.contains("the file name should be"), "{report:?}");
}

#[tokio::test]
async fn a_missing_or_foreign_directory_is_a_finding() {
    let (env, _) = node().await;
    assert!(is_data_dir(&env, Path::new(DIR)));
    assert!(!is_data_dir(&env, Path::new("elsewhere")));
    assert_eq!(verify(&env, Path::new("elsewhere")).findings.len(), 1);
}

#[tokio::test]
async fn a_manifest_that_contradicts_its_fragments_is_a_finding() {
    let (env, _) = node().await;
    let dir = layout::manifest_dir(Path::new(DIR));
    let info = testing::manifest().info;
    let read = || manifest::read_index(&*env.fs, &dir, info.local_id()).unwrap().unwrap().0;
    let whole = read();
    let slice = SliceNo(0);
    let told = |edit: &dyn Fn(&mut manifest::IndexManifest)| {
        let mut edited = whole.clone();
        edit(&mut edited);
        manifest::write_index(&*env.fs, &dir, &edited, u64::MAX).unwrap();
        let report = verify(&env, Path::new(DIR));
        manifest::write_index(&*env.fs, &dir, &whole, u64::MAX).unwrap();
        report.findings.into_iter().map(|finding| finding.message).collect::<Vec<_>>()
    };
    assert_eq!(told(&|_| ()), [""; 0]);
    let counted = told(&|manifest| *manifest.entries.get_mut(&slice).unwrap() += 1);
    assert!(counted[0].contains("slice 0 has 350 entries, the manifest says 351"), "{counted:?}");
    let moved = told(&|manifest| {
        let lists = manifest.slices.get_mut(&slice).unwrap();
        lists.groups[0].items[0].rows_of = SliceNo(4);
    });
    assert!(moved[0].contains("has no rows of slice 4"), "{moved:?}");
    let exchanged = told(&|manifest| {
        let lists = manifest.slices.get_mut(&slice).unwrap();
        let (entries, back) = (lists.groups[0].items[0].file, lists.groups[1].items[0].file);
        lists.groups[0].items[0].file = back;
        lists.groups[1].items[0].file = entries;
    });
    assert!(
        exchanged[0].contains("has columns back, but columns entry,include count"),
        "{exchanged:?}"
    );
}
