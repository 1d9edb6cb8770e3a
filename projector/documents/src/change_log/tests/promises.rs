//! Tests of single promises of the change log, and of readers concurrent with a writer.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bytes::Bytes;
use proto::env::{Env, FileSystem, sim};
use proto::model::ids::{Seqno, VbucketId, Vbuuid};
use proto::rpc::mutation::MutationKind;
use proto::{ErrorCode, Result};

use crate::change_log::*;
use crate::mutation::Mutation;

const V: VbucketId = VbucketId(1);

fn dir() -> PathBuf {
    PathBuf::from("/log")
}

fn small() -> ChangeLogOptions {
    let index_cache = IndexCache::new(1 << 10);
    ChangeLogOptions { segment_bytes: 500, open_files: None, index_cache }
}

fn open_at(env: &Env, dir: &Path, state: &LogState) -> Result<ChangeLog> {
    ChangeLog::open(env, dir, &small(), state, &mut |_, _| Ok(()))
}

fn mutation(vbucket: VbucketId, seqno: u64, text: &str) -> Mutation {
    let document = Bytes::from(text.to_owned().into_bytes());
    Mutation::new((vbucket, Seqno(seqno)), "an id".into(), MutationKind::Upsert, document)
}

/// Appends mutations of a vbucket, one per group, and syncs.
fn append(log: &ChangeLog, vbucket: VbucketId, seqnos: std::ops::RangeInclusive<u64>, text: &str) {
    for seqno in seqnos {
        let mut group = GroupBuilder::default();
        group.mutation(Vbuuid(1), &mutation(vbucket, seqno, text));
        log.append(&group).unwrap();
    }
    log.sync().unwrap();
}

fn one(build: impl FnOnce(&mut GroupBuilder)) -> GroupBuilder {
    let mut group = GroupBuilder::default();
    build(&mut group);
    group
}

fn texts(log: &ChangeLog, vbucket: VbucketId) -> Vec<(u64, String)> {
    let range = VbucketRange { vbucket, after: Seqno(0), to: Seqno(u64::MAX) };
    let found = log.read(range, usize::MAX).unwrap();
    let text = |document: &Bytes| String::from_utf8(document.to_vec()).unwrap();
    found.iter().map(|mutation| (mutation.seqno.0, text(&mutation.document))).collect()
}

#[test]
fn a_group_is_visible_after_the_sync_and_not_before() {
    let (env, _, _) = sim::world(1);
    let log = open_at(&env, &dir(), &LogState::new(2)).unwrap();
    let group = one(|group| group.mutation(Vbuuid(1), &mutation(V, 1, "one")));
    let place = log.append(&group).unwrap();
    assert_eq!(log.extents()[1].end, Seqno(0));
    assert!(texts(&log, V).is_empty());
    log.sync().unwrap();
    assert_eq!(texts(&log, V), [(1, "one".into())]);
    let found = log.read_at(V, place.mutations[0]).unwrap();
    assert_eq!((found.seqno, &found.document[..]), (Seqno(1), &b"one"[..]));
}

#[test]
fn the_newest_run_of_a_seqno_counts_after_a_rewind() {
    let (env, _, _) = sim::world(1);
    let log = open_at(&env, &dir(), &LogState::new(2)).unwrap();
    append(&log, V, 1..=20, "old");
    let state = log.state();
    log.append(&one(|group| group.rewind(V, Seqno(7)))).unwrap();
    append(&log, V, 8..=10, "new");
    let expected: Vec<(u64, String)> =
        (1..=10).map(|n| (n, if n <= 7 { "old" } else { "new" }.to_owned())).collect();
    assert_eq!(texts(&log, V), expected);
    drop(log);
    for state in [LogState::new(2), state] {
        let log = open_at(&env, &dir(), &state).unwrap();
        assert_eq!(texts(&log, V), expected);
        assert_eq!(log.bytes_to(V, Seqno(9)).unwrap(), 9 * (24 + 5 + 3));
    }
}

#[test]
fn a_group_that_does_not_fit_is_refused_and_changes_nothing() {
    let (env, _, _) = sim::world(1);
    let log = open_at(&env, &dir(), &LogState::new(2)).unwrap();
    append(&log, V, 1..=3, "x");
    let end = log.end();
    let refused = [
        one(|group| group.mutation(Vbuuid(1), &mutation(V, 5, "a gap"))),
        one(|group| group.mutation(Vbuuid(1), &mutation(V, 3, "again"))),
        one(|group| group.begin(V, Seqno(9))),
        one(|group| {
            group.mutation(Vbuuid(1), &mutation(V, 4, "good"));
            group.begin(V, Seqno(9));
        }),
    ];
    for group in &refused {
        assert_eq!(log.append(group).unwrap_err().code, ErrorCode::OutOfOrder);
    }
    let unknown = one(|group| group.remove(VbucketId(2)));
    assert_eq!(log.append(&unknown).unwrap_err().code, ErrorCode::Internal);
    assert_eq!(log.end(), end);
    append(&log, V, 4..=4, "goes on");
    assert_eq!(texts(&log, V).len(), 4);
}

#[test]
fn segments_are_released_when_all_their_mutations_are_purged_and_covered() {
    let (env, _, fs) = sim::world(1);
    let log = open_at(&env, &dir(), &LogState::new(2)).unwrap();
    let other = VbucketId(0);
    append(&log, other, 1..=1, "idle");
    append(&log, V, 1..=40, "x");
    let files = fs.list(&dir()).unwrap().len();
    assert!(log.segments().len() > 5);
    log.append(&one(|group| group.purge(&[(V, Seqno(30))]))).unwrap();
    log.sync().unwrap();
    log.release(log.end()).unwrap();
    assert_eq!(log.segments()[0], 0, "the other vbucket still needs the first segment");
    log.append(&one(|group| group.purge(&[(other, Seqno(1))]))).unwrap();
    log.sync().unwrap();
    log.release(1).unwrap();
    assert_eq!(log.segments()[0], 0, "no checkpoint covers it");
    let state = log.state();
    log.release(state.from).unwrap();
    assert!(log.segments()[0] > 0);
    assert!(fs.list(&dir()).unwrap().len() < files, "the side files go with their segments");
    assert_eq!(texts(&log, V).len(), 10);
    assert_eq!(log.extents()[0].end, Seqno(1), "a vbucket without entries keeps its end");
    drop(log);
    let error = open_at(&env, &dir(), &LogState::new(2)).err().unwrap();
    assert_eq!(error.code, ErrorCode::Corrupt, "a checkpoint from before the release: {error}");
    let log = open_at(&env, &dir(), &state).unwrap();
    assert_eq!((texts(&log, V).len(), log.extents()[0].end), (10, Seqno(1)));
    append(&log, other, 2..=2, "goes on");
}

#[test]
fn a_missing_known_log_is_an_error() {
    let (env, _, fs) = sim::world(1);
    let log = open_at(&env, &dir(), &LogState::new(2)).unwrap();
    let state = log.state();
    drop(log);
    fs.remove_dir_all(&dir()).unwrap();
    let error = open_at(&env, &dir(), &state).err().unwrap();
    assert_eq!(error.code, ErrorCode::Corrupt);
    assert!(!env.fs.exists(&dir().join("00000000000000000000.log")));
}

#[test]
fn a_failed_sync_stops_the_log_for_good() {
    let (env, _, fs) = sim::world(1);
    let log = open_at(&env, &dir(), &LogState::new(2)).unwrap();
    append(&log, V, 1..=3, "kept");
    let group = one(|group| group.mutation(Vbuuid(1), &mutation(V, 4, "in doubt")));
    log.append(&group).unwrap();
    fs.fail_at(fs.operations() + 1);
    assert_eq!(log.sync().unwrap_err().code, ErrorCode::Io);
    assert_eq!(log.sync().unwrap_err().code, ErrorCode::Io);
    let next = one(|group| group.mutation(Vbuuid(1), &mutation(V, 5, "refused")));
    assert_eq!(log.append(&next).unwrap_err().code, ErrorCode::Io);
    assert_eq!(texts(&log, V).len(), 3, "what was visible can still be read");
}

#[test]
fn describe_names_each_item() {
    let (env, _, fs) = sim::world(1);
    let log = open_at(&env, &dir(), &LogState::new(2)).unwrap();
    let group = one(|group| {
        group.mutation(Vbuuid(9), &mutation(V, 1, "x"));
        group.rewind(VbucketId(0), Seqno(0));
    });
    log.append(&group).unwrap();
    log.sync().unwrap();
    let mut found = Vec::new();
    let path = dir().join("00000000000000000000.log");
    let sum = describe(&fs, &path, &mut |item| found.push(item.content.clone())).unwrap();
    assert_eq!((sum.records, sum.damaged), (1, 0));
    let (vbuuid, first, last) = (9, Seqno(1), Seqno(1));
    let run = ItemContent::Run { vbucket: V, vbuuid, first, last };
    assert_eq!(found, [run, ItemContent::Rewind { vbucket: VbucketId(0), to: Seqno(0) }]);
}

/// Readers of a vbucket see contiguous mutations of one history while a writer appends, rewinds, purges and releases.
#[test]
fn readers_work_during_writes() {
    let temp = tempfile::tempdir().unwrap();
    let env = Env::real();
    let options = ChangeLogOptions { segment_bytes: 16 << 10, ..small() };
    let state = LogState::new(2);
    let log = ChangeLog::open(&env, temp.path(), &options, &state, &mut |_, _| Ok(())).unwrap();
    let (is_done, reads) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !is_done.load(Ordering::Relaxed) {
                    read_some(&log);
                    reads.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        write_much(&log);
        is_done.store(true, Ordering::Relaxed);
    });
    assert!(reads.load(Ordering::Relaxed) > 10);
    assert!(log.segments()[0] > 0, "segments were released meanwhile");
}

/// Each time a seqno is written, a number is put into its document; these numbers must grow along
/// the log.
fn read_some(log: &ChangeLog) {
    for vbucket in [VbucketId(0), V] {
        let before = log.extent(vbucket);
        let range = VbucketRange { vbucket, after: before.purged, to: before.end };
        let found = log.read(range, 20_000).unwrap();
        let lives: Vec<u64> = found
            .iter()
            .map(|mutation| std::str::from_utf8(&mutation.document).unwrap().parse().unwrap())
            .collect();
        assert!(lives.is_sorted(), "two histories are mixed: {lives:?}");
        assert!(found.windows(2).all(|pair| pair[0].seqno.0 + 1 == pair[1].seqno.0));
        let middle = Seqno((before.purged.0 + before.end.0) / 2);
        log.bytes_to(vbucket, middle).unwrap();
    }
}

fn write_much(log: &ChangeLog) {
    let mut group = GroupBuilder::default();
    let mut ends = [0u64; 2];
    for life in 0..1500u64 {
        group.clear();
        if life % 9 == 8 {
            let extent = log.extent(V);
            let to = extent.end.0 - (extent.end.0 - extent.purged.0) / 4;
            group.rewind(V, Seqno(to));
            ends[1] = to;
        }
        if life % 25 == 24 {
            let points = [VbucketId(0), V].map(|v| (v, Seqno(log.extent(v).end.0 / 4 * 3)));
            group.purge(&points.map(|(v, to)| (v, to.min(Seqno(ends[usize::from(v.0)])))));
        }
        for _ in 0..20 {
            for vbucket in [0, 1] {
                ends[vbucket] += 1;
                let vbucket_id = VbucketId(vbucket as u16);
                group.mutation(Vbuuid(1), &mutation(vbucket_id, ends[vbucket], &life.to_string()));
            }
        }
        log.append(&group).unwrap();
        if life % 3 == 0 {
            log.sync().unwrap();
        }
        if life % 50 == 49 {
            log.release(log.state().from).unwrap();
        }
    }
    log.sync().unwrap();
}
