//! Tests of logs that are written on the callers' threads, and of segments that belong to no log or
//! to another one.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use proto::env::{Env, OpenMode, sim};
use proto::{Error, ErrorCode, Result};

use super::segment::segment_path;
use super::tests::small;
use super::*;
use crate::fragment::OpenFiles;

const HINT: &str = "restore it";

fn dir() -> PathBuf {
    PathBuf::from("/log")
}

fn options(from: Lsn) -> DirectLogOptions {
    DirectLogOptions {
        segment_bytes: 200,
        open_files: None,
        log_id: None,
        from,
        synced: from,
        hint: HINT,
    }
}

/// Beginning, end and payload of each record.
type Records = Vec<(Lsn, Lsn, Vec<u8>)>;

fn open(env: &Env, options: &DirectLogOptions) -> Result<(DirectLog, Records)> {
    let mut found = Vec::new();
    let log = DirectLog::open(env, &dir(), options, &mut |record| {
        found.push((record.start, record.end, record.payload.to_vec()));
        Ok(())
    })?;
    Ok((log, found))
}

fn payload(n: u8) -> Vec<u8> {
    vec![n; 30 + usize::from(n)]
}

/// A log of several segments, and its records.
fn write(env: &Env) -> (DirectLog, Records) {
    let (log, _) = open(env, &options(0)).unwrap();
    let append = |n: u8| {
        let payload = payload(n);
        let (left, right) = payload.split_at(7);
        let place = log.append(&[left, right]).unwrap();
        (place.start, place.end, payload)
    };
    let records = (0..20).map(append).collect();
    log.sync().unwrap();
    (log, records)
}

fn bytes_of(env: &Env, path: &Path) -> Vec<u8> {
    let file = env.fs.open(path, OpenMode::Read).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

fn put(env: &Env, path: &Path, bytes: &[u8]) {
    let file = env.fs.open(path, OpenMode::Create).unwrap();
    file.set_len(0).unwrap();
    file.write_all_at(bytes, 0).unwrap();
}

fn refused(env: &Env, options: &DirectLogOptions) -> Error {
    let error = open(env, options).err().expect("damage must not pass");
    assert_eq!(error.code, ErrorCode::Corrupt, "{error}");
    assert_eq!(error.hint.as_deref(), Some(HINT));
    error
}

#[test]
fn records_can_be_read_at_once_and_come_back() {
    let (env, _, _) = sim::world(1);
    let (log, records) = write(&env);
    let read = |log: &DirectLog| {
        for (_, end, payload) in &records {
            let found = log.read(end - payload.len() as u64, payload.len()).unwrap();
            assert_eq!(found, payload);
        }
    };
    read(&log);
    assert!(log.segments().len() > 3);
    let (first, rest) = (log.segments()[0], log.segments()[2]);
    log.append_mark().unwrap();
    drop(log);
    let (log, found) = open(&env, &options(0)).unwrap();
    assert_eq!(found, records);
    read(&log);
    let from = records[15].0;
    log.release(rest).unwrap();
    assert_eq!(log.read(first, 10).unwrap_err().code, ErrorCode::HistoryPurged);
    drop(log);
    let (log, found) = open(&env, &DirectLogOptions { log_id: Some(1), ..options(from) })
        .or_else(|error| {
            assert!(error.message.contains("belongs to log"), "{error}");
            open(&env, &options(from))
        })
        .unwrap();
    assert!(found.len() < 10, "closed segments before the place are not read");
    assert_eq!(found, records[20 - found.len()..]);
    assert!(log.segment_of(from).is_some());
    drop(log);
    for from in [records[0].0, records[19].1 + 1000] {
        refused(&env, &options(from));
    }
}

#[test]
fn a_lost_or_shortened_last_segment_is_found_by_the_witness() {
    for marks in [false, true] {
        let (env, _, _) = sim::world(1);
        let (log, records) = write(&env);
        if marks {
            log.append_mark().unwrap();
        }
        let last = *log.segments().last().unwrap();
        drop(log);
        let path = segment_path(&dir(), last);
        let bytes = bytes_of(&env, &path);
        let used = scan_segment(&*env.fs, &path, &mut |_, _| ()).unwrap().used_bytes() as usize;
        for len in 0..used - RECORD_OVERHEAD_BYTES as usize {
            put(&env, &path, &bytes[..len]);
            // Without a mark there is no evidence of the last segment's length.
            match marks {
                true => assert!(refused(&env, &options(0)).message.contains("/log")),
                false => assert!(open(&env, &options(0)).unwrap().1.len() < records.len()),
            }
        }
        env.fs.remove_file(&path).unwrap();
        if marks {
            refused(&env, &options(0));
            env.fs.remove_file(&Witness::path(&dir())).unwrap();
            open(&env, &options(0)).unwrap();
        }
    }
}

#[test]
fn a_damaged_witness_does_no_harm() {
    let (env, _, fs) = sim::world(1);
    let (log, records) = write(&env);
    log.append_mark().unwrap();
    drop(log);
    let path = Witness::path(&dir());
    for bit in 0..28 * 8 {
        fs.flip_bit(&path, bit).unwrap();
        assert_eq!(open(&env, &options(0)).unwrap().1, records);
        fs.flip_bit(&path, bit).unwrap();
    }
}

#[test]
fn a_failed_write_stops_the_log_for_good() {
    let (env, _, fs) = sim::world(1);
    let (log, records) = write(&env);
    fs.fail_at(fs.operations() + 1);
    assert_eq!(log.append(&[b"lost"]).unwrap_err().code, ErrorCode::Io);
    assert_eq!(log.append(&[b"refused"]).unwrap_err().code, ErrorCode::Io);
    assert_eq!(log.sync().unwrap_err().code, ErrorCode::Io);
    let (_, end, payload) = &records[19];
    assert_eq!(log.read(end - payload.len() as u64, payload.len()).unwrap(), payload);
    drop(log);
    assert_eq!(open(&env, &options(0)).unwrap().1, records);
}

/// A process that cannot open more files fails to open the last segment of an idle log for a mark;
/// a later call writes the mark.
#[test]
fn a_mark_that_cannot_open_the_file_is_made_later() {
    let (env, _, fs) = sim::world(1);
    let pool = OpenFiles::new(&env.fs, 1);
    let pooled = DirectLogOptions { open_files: Some(Arc::clone(&pool)), ..options(0) };
    let (log, _) = open(&env, &pooled).unwrap();
    log.append(&[b"first"]).unwrap();
    log.sync().unwrap();
    // A file that was used since the last round stays open for one more round.
    let path = PathBuf::from("/other");
    let others: Vec<_> =
        (0..2).map(|_| pool.add(&path, env.fs.open(&path, OpenMode::Create).unwrap())).collect();
    fs.fail_at(fs.operations() + 1);
    assert_eq!(log.append_mark().unwrap_err().code, ErrorCode::Io);
    assert_eq!(fs.occurred_faults().failed, 1);
    log.append(&[b"second"]).unwrap();
    log.sync().unwrap();
    log.append_mark().unwrap();
    drop((log, others));
    assert_eq!(open(&env, &options(0)).unwrap().1.len(), 2);
}

/// Writes a commit log from a seed, with records of fixed lengths whose contents depend on `text`.
async fn commit_log(seed: u64, text: u8) -> Env {
    let (env, _, _) = sim::world(seed);
    let log = CommitLog::open(&env, &dir(), small(100), &mut |_, _| Ok(())).unwrap();
    for n in 0..6u8 {
        let lsn = log.append(&[if n == 1 { text } else { n }; 40]).await.unwrap();
        log.wait_durable(lsn).await.unwrap();
        tokio::task::yield_now().await;
    }
    env
}

#[tokio::test]
async fn a_foreign_segment_is_refused() {
    let (env, same_log, other) =
        (commit_log(1, 1).await, commit_log(1, 9).await, commit_log(2, 1).await);
    let paths = env.fs.list(&dir()).unwrap();
    assert!(paths.len() > 2);
    let open = || CommitLog::open(&env, &dir(), small(100), &mut |_, _| Ok(())).map(drop);
    open().unwrap();
    for (n, path) in paths.iter().enumerate() {
        let own = bytes_of(&env, path);
        for (from, named) in [(&other, n.max(1)), (&same_log, n + 1)] {
            put(&env, path, &bytes_of(from, path));
            // Of two first segments neither is foreign; the contradiction is in the second.
            match (bytes_of(&env, path) == own, open()) {
                (true, opened) => opened.unwrap(),
                (false, opened) => {
                    let error = opened.unwrap_err();
                    assert_eq!(error.code, ErrorCode::Corrupt);
                    let named = [n, named].map(|n| paths.get(n).unwrap_or(path).to_string_lossy());
                    assert!(named.iter().any(|name| error.message.contains(&**name)), "{error}");
                    assert!(error.message.contains("offset 0"), "{error}");
                }
            }
        }
        put(&env, path, &own);
    }
    open().unwrap();
}

#[tokio::test]
async fn describe_finds_a_wrong_successor() {
    let (env, same_log) = (commit_log(1, 1).await, commit_log(1, 9).await);
    let paths = env.fs.list(&dir()).unwrap();
    let infos = || -> Vec<SegmentInfo> {
        paths.iter().map(|path| describe(&env, path, &mut |_| ()).unwrap()).collect()
    };
    let contradictions =
        || infos().windows(2).filter(|pair| pair[1].contradiction(&pair[0]).is_some()).count();
    assert_eq!(contradictions(), 0);
    put(&env, &paths[0], &bytes_of(&same_log, &paths[0]));
    assert_eq!(contradictions(), 1);
}

/// The files of the segments, oldest first, with their lengths.
fn lengths(env: &Env, log: &DirectLog) -> Vec<u64> {
    let length = |base| bytes_of(env, &segment_path(&dir(), base)).len() as u64;
    log.segments().into_iter().map(length).collect()
}

#[test]
fn small_groups_grow_the_file_once_and_a_closed_segment_ends_with_its_last_record() {
    let (env, _, _) = sim::world(1);
    let large = DirectLogOptions { segment_bytes: 2000, ..options(0) };
    let (log, _) = open(&env, &large).unwrap();
    let mut seen = Vec::new();
    for n in 0..40 {
        log.append(&[&payload(n)]).unwrap();
        log.sync().unwrap();
        if log.segments().len() == 1 {
            seen.push(lengths(&env, &log)[0]);
        }
    }
    seen.dedup();
    assert_eq!(seen.len(), 1, "the room takes all groups of the segment: {seen:?}");
    let bases = log.segments();
    assert!(bases.len() > 1);
    let closed = lengths(&env, &log)[0];
    assert_eq!(closed, bases[1] - bases[0] + SEGMENT_OVERHEAD_BYTES);
    let last = segment_path(&dir(), bases[bases.len() - 1]);
    let info = scan_segment(&*env.fs, &last, &mut |_, _| ()).unwrap();
    assert_eq!((info.end, info.damaged), (log.end(), 0));
    assert!(info.room_bytes > 1000, "{info:?}");
}

#[test]
fn synced_overwrites_survive_a_crash() {
    for seed in 0..200 {
        let (env, _, fs) = sim::world(seed);
        let large = DirectLogOptions { segment_bytes: 2000, ..options(0) };
        let (log, _) = open(&env, &large).unwrap();
        let mut synced = 0;
        for n in 0..(seed % 40) {
            log.append(&[&payload(n as u8)]).unwrap();
            if env.random.next_u64() % 3 != 0 {
                log.sync().unwrap();
                synced = n + 1;
            }
        }
        drop(log);
        fs.crash();
        fs.restart();
        let (log, found) = open(&env, &large).unwrap();
        assert!(found.len() as u64 >= synced, "seed {seed}: {} of {synced}", found.len());
        let payloads = found.iter().map(|(.., payload)| payload);
        assert!(payloads.eq(&(0..found.len()).map(|n| payload(n as u8)).collect::<Vec<_>>()));
        // The remains of the crash are removed, and the next records are at the end.
        log.append(&[b"next"]).unwrap();
        log.sync().unwrap();
        drop(log);
        assert_eq!(open(&env, &large).unwrap().1.last().unwrap().2, b"next");
    }
}

#[test]
fn zeros_in_the_place_of_synced_records_are_damage() {
    let (env, _, _) = sim::world(1);
    let (log, records) = write(&env);
    log.append_mark().unwrap();
    let bases = log.segments();
    drop(log);
    // The last record and the mark after it; only the witness proves that they existed.
    let last = segment_path(&dir(), bases[bases.len() - 1]);
    let mut bytes = bytes_of(&env, &last);
    let from = records[19].0 - bases[bases.len() - 1] + SEGMENT_OVERHEAD_BYTES;
    let whole = bytes.clone();
    bytes[from as usize..].fill(0);
    put(&env, &last, &bytes);
    assert!(refused(&env, &options(0)).message.contains("cut short"));
    put(&env, &last, &whole);
    // A closed segment has no room.
    let first = segment_path(&dir(), bases[0]);
    let mut bytes = bytes_of(&env, &first);
    bytes.extend([0; 100]);
    put(&env, &first, &bytes);
    assert!(refused(&env, &options(0)).message.contains("synced as a whole"));
}

/// The description of a log reads a segment only once, with records of any size.
#[test]
fn a_description_reads_each_part_of_a_segment_once() {
    let (env, _, fs) = sim::world(1);
    let large = DirectLogOptions { segment_bytes: 8 << 20, ..options(0) };
    let (log, _) = open(&env, &large).unwrap();
    for _ in 0..40_000 {
        log.append(&[&[7; 60]]).unwrap();
    }
    log.sync().unwrap();
    let path = segment_path(&dir(), 0);
    let before = fs.operations();
    let info = scan_segment(&*env.fs, &path, &mut |_, _| ()).unwrap();
    assert_eq!((info.records, info.damaged), (40_000, 0));
    let operations = fs.operations() - before;
    assert!(operations < 20, "{operations} operations for {} bytes", info.used_bytes());
}
