//! Tests that the log survives disk faults, or reports the damage.

use std::path::PathBuf;

use proto::env::sim::SimFs;
use raft::eraftpb::Entry;

use super::*;
use crate::raft::members::Members;
use crate::raft::wire::LogSnapshot;

const MEMBER: NodeId = NodeId(2);
const VOTERS: [u64; 3] = [1, 2, 3];

fn dir() -> PathBuf {
    PathBuf::from("/member")
}

fn open(fs: &SimFs) -> Result<(LogStore, MemoryLog)> {
    LogStore::open(fs, &dir(), MEMBER, &VOTERS)
}

fn entry(index: u64, term: u64) -> Entry {
    Entry { index, term, data: vec![index as u8; 700].into(), ..Default::default() }
}

fn hard_state(term: u64, commit: u64) -> LogOp {
    LogOp::HardState(HardState { term, vote: 1, commit, ..Default::default() })
}

fn snapshot(index: u64, term: u64) -> LogSnapshot {
    let members = Members::new(VOTERS.to_vec());
    LogSnapshot::new(index, term, &members, &[index as u8; 3000]).unwrap()
}

/// Returns writes that cover every operation: append, overwrite, snapshot, truncation, reset.
fn history() -> Vec<LogWrite> {
    let ops = [
        vec![LogOp::Append((1..=5).map(|index| entry(index, 1)).collect()), hard_state(1, 0)],
        vec![LogOp::Append(vec![entry(4, 2)]), hard_state(2, 3)],
        vec![LogOp::Snapshot(snapshot(3, 1)), LogOp::DropThrough { index: 2, term: 1 }],
        vec![LogOp::Append((5..=9).map(|index| entry(index, 2)).collect()), hard_state(2, 9)],
        vec![LogOp::Reset(snapshot(20, 3)), hard_state(3, 20)],
        vec![LogOp::Append(vec![entry(21, 3)])],
    ];
    ops.into_iter()
        .enumerate()
        .map(|(number, ops)| LogWrite { number: number as u64 + 1, ops })
        .collect()
}

/// Hard state, start, snapshot, and the entries' indexes and terms.
type View = (HardState, (u64, u64), u64, Vec<(u64, u64)>);

/// Returns the observable content of a log.
fn view(log: &MemoryLog) -> View {
    let entries = log.entries.iter().map(|entry| (entry.index, entry.term)).collect();
    (log.hard_state.clone(), log.start, log.snapshot_index(), entries)
}

#[test]
fn the_file_shrinks_when_long_entries_are_dropped() {
    let fs = SimFs::new(7);
    let (store, _) = open(&fs).unwrap();
    let file = fs.open(&dir().join(FILE), OpenMode::Read).unwrap();
    for round in 0..6 {
        let large = |index| Entry { data: vec![1; 1 << 20].into(), ..entry(index, 1) };
        let ops = vec![LogOp::Append((round * 20 + 1..=round * 20 + 20).map(large).collect())];
        store.commit(&[LogWrite { number: round + 1, ops }]).unwrap();
    }
    assert!(file.len().unwrap() > 100 << 20, "{}", file.len().unwrap());
    let drop_all = LogOp::DropThrough { index: 120, term: 1 };
    let ops = vec![LogOp::Snapshot(snapshot(120, 1)), hard_state(1, 120), drop_all];
    store.commit(&[LogWrite { number: 7, ops }]).unwrap();
    assert!(file.len().unwrap() < 16 << 20, "{}", file.len().unwrap());
    drop(store);
    assert_eq!(open(&fs).unwrap().1.snapshot_index(), 120);
}

#[test]
fn written_documents_are_read_back() {
    let fs = SimFs::new(1);
    let (store, log) = open(&fs).unwrap();
    assert_eq!(view(&log), view(&MemoryLog::new(VOTERS.to_vec())));
    store.commit(&history()[..4]).unwrap();
    drop(store);
    let (store, log) = open(&fs).unwrap();
    let (hard_state, start, snapshot, entries) = view(&log);
    assert_eq!((hard_state.term, hard_state.vote, hard_state.commit), (2, 1, 9));
    assert_eq!((start, snapshot), ((2, 1), 3));
    assert_eq!(entries, [(3, 1), (4, 2), (5, 2), (6, 2), (7, 2), (8, 2), (9, 2)]);
    store.commit(&history()[4..]).unwrap();
    drop(store);
    let (_, log) = open(&fs).unwrap();
    let (hard_state, start, snapshot, entries) = view(&log);
    assert_eq!((hard_state.term, start, snapshot), (3, (20, 3), 20));
    assert_eq!(entries, [(21, 3)]);
}

#[test]
fn a_crash_at_any_operation_keeps_all_or_nothing_of_a_write() {
    // The contents after 0, 1, 2, … writes, from a run without faults.
    let views: Vec<_> = (0..=history().len())
        .map(|writes| {
            let fs = SimFs::new(0);
            let (store, _) = open(&fs).unwrap();
            history()[..writes]
                .iter()
                .for_each(|write| store.commit(std::slice::from_ref(write)).unwrap());
            drop(store);
            view(&open(&fs).unwrap().1)
        })
        .collect();

    let mut crashes = 0;
    for crash_at in 1.. {
        let fs = SimFs::new(crash_at);
        fs.crash_at(crash_at);
        let mut done = 0;
        if let Ok((store, _)) = open(&fs) {
            done = history()
                .iter()
                .take_while(|w| store.commit(std::slice::from_ref(w)).is_ok())
                .count();
        }
        if !fs.is_crashed() {
            break;
        }
        crashes += 1;
        fs.restart();
        let (_, log) = open(&fs).unwrap_or_else(|error| panic!("crash at {crash_at}: {error}"));
        let seen = view(&log);
        let possible = &views[done..=(done + 1).min(history().len())];
        assert!(possible.contains(&seen), "crash at {crash_at} after {done} writes: {seen:?}");
    }
    assert!(crashes > 50, "every operation was tried, {crashes} in all");
}

#[test]
fn a_full_disk_and_a_failing_write_are_errors() {
    let fs = SimFs::new(1);
    let (store, _) = open(&fs).unwrap();
    fs.fail_at(fs.operations() + 1);
    assert_eq!(store.commit(&history()[..1]).unwrap_err().code, ErrorCode::Io);
    drop(store);
    let (store, _) = open(&fs).unwrap();
    fs.set_capacity(0);
    let large = Entry { index: 1, term: 1, data: vec![7; 4 << 20].into(), ..Default::default() };
    let write = LogWrite { number: 1, ops: vec![LogOp::Append(vec![large])] };
    assert!(store.commit(&[write]).is_err());
}

#[test]
fn a_flipped_bit_is_found_by_the_checksum() {
    let good = encode(&LogEntry::from_raft(entry(1, 1)).unwrap()).unwrap();
    for bit in 0..good.len() * 8 {
        let mut bad = good.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        let read: Result<LogEntry> = decode(&bad, "entry");
        assert_eq!(read.unwrap_err().code, ErrorCode::Corrupt);
    }
}

#[test]
fn the_log_of_another_member_is_refused() {
    let fs = SimFs::new(1);
    drop(open(&fs).unwrap());
    let refused = LogStore::open(&fs, &dir(), NodeId(3), &VOTERS).err().unwrap();
    assert_eq!(refused.code, ErrorCode::InvalidParameter);
    assert!(refused.hint.is_some());
}

/// The members are stored in the log: settings that name others change nothing.
#[test]
fn a_log_keeps_its_founders() {
    let fs = SimFs::new(1);
    drop(open(&fs).unwrap());
    let (_, log) = LogStore::open(&fs, &dir(), MEMBER, &[2, 7]).unwrap();
    assert_eq!(log.members().unwrap(), Members::new(VOTERS.to_vec()));
}
