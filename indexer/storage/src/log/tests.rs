//! Tests of the log: records that are recovered, cut off or refused.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use proto::env::{Env, File, OpenMode, sim};
use proto::{Error, ErrorCode, Result};

use super::format::{RECORD_HEADER_BYTES, SEGMENT_HEADER_BYTES};
use super::segment::segment_path;
use super::*;
use crate::log::commit_log::PENDING_BYTES_MAX;

pub(super) fn small(segment_bytes: u64) -> LogOptions {
    LogOptions { segment_bytes, sync: SyncPolicy::EachGroup, ..LogOptions::default() }
}

fn records(env: &Env, dir: &Path) -> Result<Vec<(Lsn, Vec<u8>)>> {
    let mut records = Vec::new();
    CommitLog::open(env, dir, small(1), &mut |lsn, record| {
        records.push((lsn, record.to_vec()));
        Ok(())
    })?;
    Ok(records)
}

fn payloads(env: &Env, dir: &Path) -> Vec<Vec<u8>> {
    records(env, dir).unwrap().into_iter().map(|(_, payload)| payload).collect()
}

fn refused(env: &Env, dir: &Path) -> Error {
    records(env, dir).expect_err("damage must not pass")
}

async fn write(env: &Env, dir: &Path, options: LogOptions, records: &[&[u8]]) {
    let log = CommitLog::open(env, dir, options, &mut |_, _| Ok(())).unwrap();
    for record in records {
        let lsn = log.append(record).await.unwrap();
        log.wait_durable(lsn).await.unwrap();
    }
    // The writer becomes idle and writes its mark.
    tokio::task::yield_now().await;
}

fn segments(env: &Env, dir: &Path) -> Vec<PathBuf> {
    env.fs.list(dir).unwrap()
}

fn open(env: &Env, path: &Path) -> Arc<dyn File> {
    env.fs.open(path, OpenMode::ReadWrite).unwrap()
}

/// Cuts bytes off the end of a file.
fn cut(file: &dyn File, bytes: u64) {
    file.set_len(file.len().unwrap() - bytes).unwrap();
}

fn log_dir() -> PathBuf {
    PathBuf::from("/log")
}

#[tokio::test]
async fn durable_records_come_back_in_order_and_a_torn_tail_goes() {
    let ((env, _, _), dir) = (sim::world(1), log_dir());
    write(&env, &dir, small(1 << 20), &[b"one", b"", b"three"]).await;
    write(&env, &dir, small(1 << 20), &[b"four"]).await;
    let all: Vec<Vec<u8>> = vec![b"one".into(), b"".into(), b"three".into(), b"four".into()];
    assert_eq!(payloads(&env, &dir), all);
    let file = open(&env, &segment_path(&dir, 0));
    cut(&*file, RECORD_HEADER_BYTES as u64 + 1);
    assert_eq!(payloads(&env, &dir), all[..3], "the torn record goes, alone");
    write(&env, &dir, small(1 << 20), &[b"five"]).await;
    assert_eq!(payloads(&env, &dir)[3], b"five", "the log goes on behind the cut");
}

#[tokio::test]
async fn the_log_works_on_real_files() {
    let temp = tempfile::tempdir().unwrap();
    let (env, dir) = (Env::real(), temp.path().join("log"));
    for round in 0..20u64 {
        let log = CommitLog::open(&env, &dir, small(100), &mut |_, _| Ok(())).unwrap();
        for _ in 0..10 {
            log.append_parts(&[b"round ", &round.to_le_bytes()]).await.unwrap();
        }
        log.sync().await.unwrap();
    }
    let all = payloads(&env, &dir);
    assert_eq!(all.len(), 200);
    assert!(segments(&env, &dir).len() > 10, "it has rolled");
    assert!(all.iter().enumerate().all(|(n, p)| p[6..] == (n as u64 / 10).to_le_bytes()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_append_at_once_while_segments_are_released() {
    let temp = tempfile::tempdir().unwrap();
    let (env, dir) = (Env::real(), temp.path().join("log"));
    let log = Arc::new(CommitLog::open(&env, &dir, small(4 << 10), &mut |_, _| Ok(())).unwrap());
    let append_some = |who: u8| {
        let log = Arc::clone(&log);
        async move {
            let mut ends = Vec::new();
            for n in 0..200u16 {
                let payload = [&[who][..], &n.to_le_bytes(), &[0; 50]].concat();
                let lsn = log.append(&payload).await.unwrap();
                ends.push((lsn, payload));
                if n % 16 == 0 {
                    log.wait_durable(lsn).await.unwrap();
                }
                if who == 0 && n == 150 {
                    log.release(ends[100].0).unwrap();
                }
            }
            ends
        }
    };
    let appended = futures::future::join_all((0..6).map(append_some)).await;
    log.sync().await.unwrap();
    let held = log.retained_bytes();
    drop(log);
    let mut expected = appended.concat();
    expected.sort();
    let replayed = records(&env, &dir).unwrap();
    assert!(replayed.len() < expected.len(), "something was released");
    assert_eq!(replayed, expected[expected.len() - replayed.len()..]);
    let on_disk: u64 =
        segments(&env, &dir).iter().map(|path| open(&env, path).len().unwrap()).sum();
    assert!(on_disk.abs_diff(held) <= RECORD_HEADER_BYTES as u64, "but for a mark");
}

#[tokio::test]
async fn lsns_grow_over_restarts() {
    let ((env, _, _), dir) = (sim::world(1), log_dir());
    let mut ends = Vec::new();
    for _ in 0..4 {
        let log = CommitLog::open(&env, &dir, small(60), &mut |_, _| Ok(())).unwrap();
        for _ in 0..3 {
            let lsn = log.append(&[7; 30]).await.unwrap();
            log.wait_durable(lsn).await.unwrap();
            ends.push(lsn);
        }
    }
    assert!(ends.is_sorted_by(|a, b| a < b), "{ends:?}");
    let replayed: Vec<Lsn> = records(&env, &dir).unwrap().iter().map(|(lsn, _)| *lsn).collect();
    assert_eq!(replayed, ends, "a record ends where its append said");
    for pair in segments(&env, &dir).windows(2) {
        let len = open(&env, &pair[0]).len().unwrap() - SEGMENT_HEADER_BYTES as u64;
        let bases = [&pair[0], &pair[1]].map(|path| segment::segment_base(path).unwrap());
        assert_eq!(bases[0] + len, bases[1], "a segment begins where the last one ends");
    }
}

#[tokio::test]
async fn release_removes_whole_segments_below_a_place_and_never_the_last() {
    let ((env, _, _), dir) = (sim::world(1), log_dir());
    let log = CommitLog::open(&env, &dir, small(100), &mut |_, _| Ok(())).unwrap();
    let mut ends = vec![0];
    for n in 0..12u8 {
        ends.push(log.append(&[n; 40]).await.unwrap());
        log.sync().await.unwrap();
    }
    let before = log.retained_bytes();
    log.release(ends[7]).unwrap();
    assert!(log.retained_bytes() < before);
    let left = payloads(&env, &dir);
    assert!(left[0][0] <= 7, "record 7 ends behind the place");
    assert!(left[0][0] > 4, "whole segments below it are gone");
    assert_eq!(left.last().unwrap()[0], 11);
    log.release(u64::MAX).unwrap();
    assert_eq!(segments(&env, &dir).len(), 1);
    let end = log.end();
    drop(log);
    let log = CommitLog::open(&env, &dir, small(100), &mut |_, _| Ok(())).unwrap();
    assert!(log.end() >= end, "places go on from the segment that is never removed");
}

#[tokio::test]
async fn on_demand_syncs_only_for_waiting_callers() {
    let ((env, _, fs), dir) = (sim::world(1), log_dir());
    let options =
        LogOptions { segment_bytes: 1 << 20, sync: SyncPolicy::OnDemand, ..LogOptions::default() };
    let log = CommitLog::open(&env, &dir, options, &mut |_, _| Ok(())).unwrap();
    tokio::task::yield_now().await;
    let mut last = 0;
    let before = fs.operations();
    for n in 0..5u8 {
        last = log.append(&[n]).await.unwrap();
        tokio::task::yield_now().await;
    }
    assert_eq!(fs.operations() - before, 5, "five writes and no sync");
    assert_eq!(log.durable().borrow().lsn, 0);
    log.wait_durable(last).await.unwrap();
    assert!(log.durable().borrow().lsn >= last);
    fs.crash();
    fs.restart();
    drop(log);
    assert_eq!(payloads(&env, &dir).len(), 5);
}

#[tokio::test]
async fn appenders_wait_while_too_much_is_pending() {
    let ((env, _, _), dir) = (sim::world(1), log_dir());
    let log = CommitLog::open(&env, &dir, LogOptions::default(), &mut |_, _| Ok(())).unwrap();
    let payload = vec![7; PENDING_BYTES_MAX / 2 + 1];
    let first = log.append(&payload).await.unwrap();
    assert_eq!(log.durable().borrow().lsn, 0, "the first one found room, and waited for nothing");
    log.append(&payload).await.unwrap();
    assert!(log.durable().borrow().lsn >= first, "the second one had to wait for the first");
}

#[tokio::test]
async fn a_failed_write_stops_the_log_and_is_reported() {
    let ((env, _, fs), dir) = (sim::world(1), log_dir());
    let log = CommitLog::open(&env, &dir, small(100), &mut |_, _| Ok(())).unwrap();
    let kept = log.append(b"kept").await.unwrap();
    log.wait_durable(kept).await.unwrap();
    tokio::task::yield_now().await;
    fs.fail_at(fs.operations() + 2);
    let lost = log.append(b"lost").await.unwrap();
    let error = log.wait_durable(lost).await.expect_err("its sync has failed");
    assert_eq!(error.code, ErrorCode::Io);
    assert!(error.message.contains("/log"), "{error}");
    assert_eq!(log.append(b"more").await.expect_err("it has stopped").code, ErrorCode::Io);
    log.wait_durable(kept).await.unwrap();
}

#[tokio::test]
async fn every_flipped_bit_is_found_and_named_or_does_no_harm() {
    let ((env, _, fs), dir) = (sim::world(1), log_dir());
    write(&env, &dir, small(90), &[b"alpha", b"beta", b"gamma", b"delta", b"epsilon"]).await;
    let all = payloads(&env, &dir);
    let paths = segments(&env, &dir);
    assert!(paths.len() > 1);
    let last_mark = open(&env, &paths[paths.len() - 1]).len().unwrap() - RECORD_HEADER_BYTES as u64;
    for path in &paths {
        let bytes = open(&env, path).len().unwrap();
        for bit in 0..bytes * 8 {
            fs.flip_bit(path, bit).unwrap();
            if path == &paths[paths.len() - 1] && bit / 8 >= last_mark {
                // Only the mark after all records is cut off; opening writes it again.
                assert_eq!(payloads(&env, &dir), all);
                write(&env, &dir, small(1 << 20), &[]).await;
                assert_eq!(open(&env, path).len().unwrap(), bytes);
                continue;
            }
            let error = refused(&env, &dir);
            assert_eq!(error.code, ErrorCode::Corrupt, "{error}");
            assert!(error.message.contains("offset"), "{error}");
            assert!(error.message.contains(&*path.to_string_lossy()), "{error}");
            fs.flip_bit(path, bit).unwrap();
        }
    }
    assert_eq!(payloads(&env, &dir), all);
}

#[tokio::test]
async fn missing_cut_and_misnamed_segments_are_named() {
    let ((env, _, _), dir) = (sim::world(1), log_dir());
    write(&env, &dir, small(60), &[&[1; 40], &[2; 40], &[3; 40], &[4; 40], &[5; 40], &[6; 40]])
        .await;
    let paths = segments(&env, &dir);
    assert!(paths.len() >= 3);
    let middle = &paths[1];
    env.fs.rename(middle, &dir.join("aside")).unwrap();
    let error = refused(&env, &dir);
    assert!(error.message.contains(&*paths[0].to_string_lossy()), "{error}");
    assert!(error.message.contains("missing"), "{error}");
    env.fs.rename(&dir.join("aside"), middle).unwrap();
    assert_eq!(payloads(&env, &dir).len(), 6);
    cut(&*open(&env, middle), 1);
    let error = refused(&env, &dir);
    assert!(error.message.contains(&*middle.to_string_lossy()), "{error}");
    env.fs.rename(&paths[2], middle).unwrap();
    let error = refused(&env, &dir);
    assert!(error.message.contains("the file name says"), "{error}");
}

#[tokio::test]
async fn a_payload_that_looks_like_a_record_is_only_a_payload() {
    let ((env, _, _), dir) = (sim::world(1), log_dir());
    write(&env, &dir, small(1 << 20), &[b"first"]).await;
    let file = open(&env, &segment_path(&dir, 0));
    let mut copy = vec![0; file.len().unwrap() as usize];
    file.read_exact_at(&mut copy, 0).unwrap();
    write(&env, &dir, small(1 << 20), &[&copy, b"last"]).await;
    assert_eq!(payloads(&env, &dir), [b"first".to_vec(), copy, b"last".to_vec()]);
    let file = open(&env, &segment_path(&dir, 0));
    // The last record, the marks before and after it, and one more byte.
    cut(&*file, 3 * RECORD_HEADER_BYTES as u64 + 4 + 1);
    assert_eq!(payloads(&env, &dir).len(), 1, "the copy is torn, its inner records do not count");
}

#[tokio::test]
async fn describe_names_each_record_and_each_damage() {
    let ((env, _, fs), dir) = (sim::world(1), log_dir());
    write(&env, &dir, small(1 << 20), &[b"alpha", b"beta", b"gamma"]).await;
    let path = segment_path(&dir, 0);
    let describe_it = || {
        let mut records = Vec::new();
        let sum = describe(&env, &path, &mut |record| records.push(record.clone())).unwrap();
        (sum, records)
    };
    let (sum, all) = describe_it();
    assert_eq!((sum.records, sum.payload_bytes, sum.damaged), (3, 14, 0));
    let mut data = all.iter().filter(|record| !record.mark);
    assert_eq!(data.next().unwrap().offset, SEGMENT_HEADER_BYTES as u64);
    let beta = data.next().unwrap();
    fs.flip_bit(&path, beta.offset * 8).unwrap();
    let (sum, damaged) = describe_it();
    assert_eq!((sum.records, sum.damaged), (2, 1), "the records behind damage are found again");
    let found = damaged.iter().find(|record| record.state == RecordState::Unreadable).unwrap();
    assert_eq!((found.offset, found.bytes), (beta.offset, RECORD_HEADER_BYTES as u64 + 4));
    fs.flip_bit(&path, beta.offset * 8).unwrap();
    fs.flip_bit(&path, (beta.offset + RECORD_HEADER_BYTES as u64) * 8).unwrap();
    let (_, damaged) = describe_it();
    assert_eq!(damaged.len(), all.len());
    assert!(damaged.contains(&RecordInfo { state: RecordState::BadPayload, ..beta.clone() }));
}

#[tokio::test]
async fn a_full_disk_stalls_the_log_and_loses_nothing() {
    for segment_bytes in [1, 64, 1 << 20] {
        let (env, _, fs) = sim::world(7);
        let dir = log_dir();
        proto::env::create_dir_durably(&*env.fs, &dir).unwrap();
        let options = small(segment_bytes);
        let log = CommitLog::open(&env, &dir, options, &mut |_, _| Ok(())).unwrap();
        let mut expected = Vec::new();
        for round in 0..4u8 {
            let lsn = log.append(&[round; 40]).await.unwrap();
            log.wait_durable(lsn).await.unwrap();
            fs.set_capacity(0);
            let full = log.append(&[round; 41]).await.unwrap();
            let a_while = std::time::Duration::from_millis(20);
            let waited = tokio::time::timeout(a_while, log.wait_durable(full)).await;
            assert!(waited.is_err(), "it cannot be durable yet");
            fs.set_capacity(u64::MAX);
            log.wait_durable(full).await.unwrap();
            expected.extend([vec![round; 40], vec![round; 41]]);
        }
        drop(log);
        fs.crash();
        fs.restart();
        assert_eq!(payloads(&env, &dir), expected, "segments of {segment_bytes} bytes");
    }
}

/// A panic of the writer must end the process: otherwise callers that wait for the log would wait
/// forever.
#[tokio::test]
async fn a_panic_of_the_writer_ends_the_process() {
    let (env, fs, mut ends) = sim::real_env_with_sim_fs(1);
    let log = CommitLog::open(&env, &log_dir(), small(1 << 20), &mut |_, _| Ok(())).unwrap();
    fs.panic_at(fs.operations() + 1);
    log.append(b"a record").await.unwrap();
    let end = tokio::time::timeout(Duration::from_secs(20), ends.recv()).await;
    let end = end.expect("the process ends").unwrap();
    assert!(end.starts_with("task \"commit-log\" panicked: simulated panic"), "{end}");
}
