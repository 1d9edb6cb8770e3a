//! Damages files in various ways: the damage must be an error that names a file, or be harmless. A
//! synced group that a mark covers is never lost silently, and the log never panics.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use proto::env::{File, FileSystem, OpenMode};
use proto::model::ids::{Seqno, VbucketId};
use proto::{Error, ErrorCode};

use super::history::History;
use super::naive_model::{Op, VBUCKETS, add};
use crate::change_log::*;

/// Returns a log of several segments, all synced and covered by a mark.
fn written(seed: u64) -> History {
    let mut history = History::new(seed);
    let log = history.open().unwrap();
    history.work(&log, 40).unwrap();
    log.sync().unwrap();
    history.synced = history.groups.len();
    log.record_synced_end().unwrap();
    drop(log);
    assert!(segments(&history).len() > 3, "the log has rolled");
    history
}

fn files(history: &History) -> Vec<PathBuf> {
    history.fs.list(&history.dir).unwrap()
}

fn segments(history: &History) -> Vec<PathBuf> {
    let is_segment = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "log");
    files(history).into_iter().filter(is_segment).collect()
}

/// Returns the bytes of a segment file without the preallocated room.
fn used_bytes(history: &History, path: &Path) -> usize {
    let info = storage::log::scan_segment(&history.fs, path, &mut |_, _| ()).unwrap();
    info.used_bytes() as usize
}

fn open(fs: &dyn FileSystem, path: &Path) -> Arc<dyn File> {
    fs.open(path, OpenMode::Create).unwrap()
}

fn bytes_of(fs: &dyn FileSystem, path: &Path) -> Vec<u8> {
    let file = open(fs, path);
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

fn put(fs: &dyn FileSystem, path: &Path, bytes: &[u8]) {
    let file = open(fs, path);
    file.set_len(0).unwrap();
    file.write_all_at(bytes, 0).unwrap();
}

/// Opens the log and reads all data. Returns true if the complete history was read, false after an
/// error that names a damaged file.
fn attempt(history: &mut History, what: &str) -> bool {
    let expected = history.groups.len();
    let result = history.open_only().and_then(|log| history.reads_agree(&log));
    assert_eq!(history.groups.len(), expected, "{what}: groups are lost in silence");
    match result {
        Ok(()) => true,
        Err(error) => {
            check_error(history, &error, what);
            false
        }
    }
}

fn check_error(history: &History, error: &Error, what: &str) {
    assert_eq!(error.code, ErrorCode::Corrupt, "{what}: {error}");
    let dir = history.dir.display().to_string();
    assert!(error.message.contains(&dir), "{what}: {error}");
    assert!(error.hint.is_some(), "{what}: {error}");
}

/// The contents of all files.
fn saved(history: &History) -> Vec<(PathBuf, Vec<u8>)> {
    files(history).into_iter().map(|path| (path.clone(), bytes_of(&history.fs, &path))).collect()
}

fn restore(history: &History, saved: &[(PathBuf, Vec<u8>)]) {
    for path in files(history) {
        if !saved.iter().any(|(known, _)| *known == path) {
            history.fs.remove_file(&path).unwrap();
        }
    }
    saved.iter().for_each(|(path, bytes)| put(&history.fs, path, bytes));
}

/// Checks one kind of damage, with an opening from the checkpoint, and with one from the beginning
/// if the log still has all segments.
fn try_damage(
    history: &mut History,
    files: &[(PathBuf, Vec<u8>)],
    what: &str,
    damage: &dyn Fn(&History),
) -> bool {
    restore(history, files);
    damage(history);
    let survey = verify(&history.fs, &history.dir, Some(&history.checkpoint.0));
    let is_harmless = attempt(history, what);
    if !is_harmless {
        let seen = survey.is_err() || survey.is_ok_and(|survey| !survey.findings.is_empty());
        assert!(seen, "{what}: verify has not seen it");
    }
    restore(history, files);
    is_harmless
}

#[test]
fn a_damaged_witness_is_noted() {
    let history = written(3);
    let path = storage::log::Witness::path(&history.dir);
    let noted = || {
        let survey = verify(&history.fs, &history.dir, Some(&history.checkpoint.0)).unwrap();
        assert_eq!(survey.findings, []);
        survey.notes.iter().any(|note| note.path == path)
    };
    assert!(!noted());
    history.fs.flip_bit(&path, 60).unwrap();
    assert!(noted());
}

#[test]
fn a_flipped_bit_anywhere_is_an_error_or_harmless() {
    for seed in [1, 2] {
        let mut history = written(seed);
        let saved = saved(&history);
        let mut refused = 0;
        for (path, bytes) in &saved {
            for byte in 0..bytes.len() {
                let bit = 1 << ((byte + seed as usize) % 8);
                let what = format!("{} byte {byte}", path.display());
                refused += u64::from(!try_damage(&mut history, &saved, &what, &|history| {
                    let mut changed = bytes.clone();
                    changed[byte] ^= bit;
                    put(&history.fs, path, &changed);
                }));
            }
        }
        assert!(refused > 100, "{refused}");
    }
}

#[test]
fn a_file_that_is_cut_anywhere_is_an_error_or_harmless() {
    let mut history = written(2);
    let saved = saved(&history);
    for (path, bytes) in &saved {
        for len in 0..bytes.len() {
            let what = format!("{} cut to {len}", path.display());
            let is_segment = path.extension().is_some_and(|extension| extension == "log");
            let cut = try_damage(&mut history, &saved, &what, &|history| {
                open(&history.fs, path).set_len(len as u64).unwrap();
            });
            // Except for the mark at the very end, and the preallocated space after it.
            let is_last = Some(path) == segments(&history).last();
            assert!(
                !cut || !is_segment || is_last && len + 24 >= used_bytes(&history, path),
                "{what}"
            );
        }
    }
}

#[test]
fn a_removed_file_is_an_error_or_harmless() {
    for seed in 1..9 {
        let mut history = written(seed);
        let saved = saved(&history);
        for (path, _) in &saved {
            let what = format!("{} removed", path.display());
            let harmless = try_damage(&mut history, &saved, &what, &|history| {
                history.fs.remove_file(path).unwrap();
            });
            let is_segment = path.extension().is_some_and(|extension| extension == "log");
            // A first segment that is no longer needed may be missing.
            let is_first = Some(path) == segments(&history).first();
            assert!(!harmless || !is_segment || is_first, "{what}");
            assert!(harmless || is_segment, "{what}");
        }
    }
}

#[test]
fn exchanged_files_are_an_error_or_harmless() {
    for seed in 1..5 {
        let mut history = written(seed);
        let saved = saved(&history);
        let other = written(seed + 100);
        let foreign = self::saved(&other);
        for (path, bytes) in &saved {
            let is_segment = path.extension().is_some_and(|extension| extension == "log");
            let others = saved
                .iter()
                .chain(&foreign)
                .filter(|(other, of)| other.extension() == path.extension() && of != bytes);
            for (from, of) in others {
                let what = format!("{} replaced by {}", path.display(), from.display());
                let harmless = try_damage(&mut history, &saved, &what, &|history| {
                    put(&history.fs, path, of);
                });
                assert!(!harmless || !is_segment, "{what}");
            }
        }
    }
}

/// A segment with a valid name and other contents, from a copy of the log before a crash, must be
/// detected.
#[test]
fn a_segment_of_an_older_log_is_detected() {
    let group = |n: u64, text: u8| {
        let mut group = GroupBuilder::default();
        let (vbucket, vbuuid, seqno, id) = (0, 1, n + 1, format!("id-{n}"));
        let op = Op::Mutation { vbucket, vbuuid, seqno, id, document: Some(vec![text; 200]) };
        add(&mut group, &op);
        group
    };
    let write = |history: &History, odd: bool| {
        let (options, state) = (history.options.clone(), LogState::new(VBUCKETS));
        let opened =
            ChangeLog::open(&history.env, &history.dir, &options, &state, &mut |_, _| Ok(()));
        let log = opened.unwrap();
        for n in 0..30 {
            // The groups of both lives have equal lengths.
            let text = if odd && n == 1 { b'y' } else { b'x' };
            log.append(&group(n, text)).unwrap();
        }
        log.sync().unwrap();
    };
    // One seed, so both logs have one id.
    let (one, other) = (History::new(5), History::new(5));
    write(&one, false);
    write(&other, true);
    let (first, names) = (segments(&one)[0].clone(), segments(&one));
    assert_eq!(names, segments(&other));
    put(&one.fs, &first, &bytes_of(&other.fs, &first));
    let state = LogState::new(VBUCKETS);
    let opened = ChangeLog::open(&one.env, &one.dir, &one.options, &state, &mut |_, _| Ok(()));
    let error = opened.err().expect("the chain does not fit");
    check_error(&one, &error, "exchanged");
    assert!(error.message.contains(&*names[1].to_string_lossy()), "{error}");
    assert!(error.message.contains("exchanged"), "{error}");
    assert!(!verify(&one.fs, &one.dir, None).unwrap().findings.is_empty());
}

#[test]
fn damage_error_names_affected_mutations() {
    let mut history = History::new(4);
    history.options.segment_bytes = 1 << 20;
    let log = history.open().unwrap();
    let mut places = Vec::new();
    for n in 0..20u64 {
        let mut group = GroupBuilder::default();
        for vbucket in [0, 2] {
            let (seqno, document) = (n + 1, Some(vec![b'x'; 20]));
            let (id, vbuuid) = (format!("id-{n}"), 1);
            let op = Op::Mutation { vbucket, vbuuid, seqno, id, document };
            add(&mut group, &op);
        }
        places.push(log.append(&group).unwrap());
    }
    log.sync().unwrap();
    let range = VbucketRange { vbucket: VbucketId(2), after: Seqno(9), to: Seqno(12) };
    let path = segments(&history)[0].clone();
    let bit = (places[10].mutations[1].item + storage::log::SEGMENT_OVERHEAD_BYTES + 70) * 8;
    history.fs.flip_bit(&path, bit).unwrap();
    let error = log.read(range, 1000).unwrap_err();
    assert_eq!(error.code, ErrorCode::Corrupt);
    assert!(error.message.contains("seqnos 11 to 11 of vbucket 2"), "{error}");
    assert_eq!(log.read(VbucketRange { to: Seqno(10), ..range }, 1000).unwrap().len(), 1);
    let intact = VbucketRange { vbucket: VbucketId(0), ..range };
    assert_eq!(log.read(intact, 1000).unwrap().len(), 3, "the other run of the group is intact");
    log.record_synced_end().unwrap();
    drop(log);
    let error = history.open().err().expect("the damage is in the midst");
    check_error(&history, &error, "flipped");
    for expected in
        ["vbucket 0 lacks what lies between seqnos 10 and 12", "vbucket 2 lacks", "offset"]
    {
        assert!(error.message.contains(expected), "{error}");
    }
    let survey = verify(&history.fs, &history.dir, None).unwrap();
    assert_eq!(survey.gaps.len(), 2, "{survey:?}");
}

#[test]
fn zeros_after_a_closed_segment_are_detected() {
    let mut history = written(2);
    let saved = saved(&history);
    let first = segments(&history).remove(0);
    let bytes = &saved.iter().find(|(path, _)| *path == first).unwrap().1;
    let is_harmless = try_damage(&mut history, &saved, "zeros behind it", &|history| {
        put(&history.fs, &first, &[bytes.as_slice(), &[0; 100]].concat());
    });
    assert!(!is_harmless);
}
