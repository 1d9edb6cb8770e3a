//! Tests of open transactions without their callers: memory, places, and what streams read.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use proto::ErrorCode;
use proto::Result;
use proto::model::bucket::{BucketInfo, SourceKind};
use proto::model::ids::{BucketId, NodeId, TransactionId, TransactionPlace};
use proto::rpc::api::{CheckedWrites, Write, WriteKind};
use tokio::sync::watch;
use tokio::time::Instant;

use super::counts::TransactionFigures;
use super::limits::Limits;
use super::open::{Transactions, WriteIn};
use super::reader::{TransactionNews, TransactionReader};
use super::room::TransactionBudget;
use super::transaction::YOUNG;

const VBUCKETS: u16 = 4;

struct World {
    info: BucketInfo,
    open: Arc<Transactions>,
    limits: Limits,
    now: Instant,
    woken: watch::Receiver<u64>,
}

impl World {
    fn new() -> Self {
        let (turned, woken) = watch::channel(0);
        let info = BucketInfo::new(BucketId(1), "b", VBUCKETS, SourceKind::Embedded, NodeId(1));
        let limits =
            Limits { bytes_max: 100_000, open_max: 10, room: TransactionBudget::new(200_000) };
        let open = Arc::new(Transactions::new(turned));
        Self { info, open, limits, now: Instant::now(), woken }
    }

    /// Returns a time at which no transaction is young.
    fn later(&self) -> Instant {
        self.now + YOUNG
    }

    /// Upserts documents; returns the place.
    fn write(&self, id: u64, after: u64, documents: &[&str]) -> Result<u64> {
        let write = |id: &&str| {
            let kind = WriteKind::Upsert(Bytes::from_static(b"1"));
            Write { id: (*id).to_owned(), kind }
        };
        let writes = CheckedWrites::new(documents.iter().map(write).collect(), 1000)?;
        let request = WriteIn {
            at: (TransactionId(id), TransactionPlace(after)),
            owner: "somebody",
            snapshot: None,
            writes: &writes,
            known: &BTreeMap::new(),
            behind: 0,
        };
        let written = self.open.write(&self.info, request, &self.limits, self.now)?;
        Ok(written.place.0)
    }

    /// Rolls back to a place; returns the new place.
    fn back(&self, id: u64, to: u64) -> u64 {
        let at = (TransactionId(id), TransactionPlace(to));
        self.open.roll_back_to(at, self.now).expect("it is open").0
    }

    fn commit(&self, id: u64, place: u64) -> Option<super::committing::CommitInProgress> {
        let at = (TransactionId(id), TransactionPlace(place));
        self.open.commit(at, None, (self.now, u64::MAX)).expect("it is open")
    }
}

/// Returns the events as text: ended transactions, rollbacks, and changes.
fn said(news: &TransactionNews) -> String {
    let ended = news.ended.iter().map(|id| format!("end {id}"));
    let backs = news.backs.iter().map(|(id, to)| format!("{id} back to {to}"));
    let changes = news.changes.iter().map(|new| {
        let ids: Vec<_> = new.changes.iter().map(|change| &*change.id).collect();
        format!("{} {}-{} {}", new.transaction, new.from, new.to, ids.join(","))
    });
    ended.chain(backs).chain(changes).collect::<Vec<_>>().join("; ").trim_end().to_owned()
}

#[test]
fn a_reader_reads_what_is_new_and_nothing_twice() {
    let world = World::new();
    let mut reader = TransactionReader::default();
    let next =
        |reader: &mut TransactionReader| said(&reader.next(&world.open, 1 << 20, world.later()));
    assert_eq!(next(&mut reader), "");
    assert_eq!(world.write(1, 0, &["a", "b"]), Ok(2));
    assert_eq!(world.write(2, 0, &["c"]), Ok(1));
    assert_eq!(next(&mut reader), "1 0-2 a,b; 2 0-1 c");
    assert_eq!(next(&mut reader), "");
    assert_eq!(world.write(1, 2, &["d", "e"]), Ok(4));
    assert_eq!(next(&mut reader), "1 2-4 d,e");
    assert_eq!((world.back(1, 3), world.back(1, 1)), (5, 6));
    assert_eq!(world.write(1, 4, &["late"]).map_err(|error| error.code), Err(ErrorCode::Conflict));
    assert_eq!(world.write(1, 6, &["f"]), Ok(7));
    assert_eq!(next(&mut reader), "1 back to 1; 1 1-7 f");
    assert_eq!(world.write(1, 7, &["g", "h"]), Ok(9));
    assert_eq!(world.back(1, 8), 10);
    assert_eq!(next(&mut reader), "1 7-10 g", "nothing of the rollback was read");
    reader.restart_all();
    assert_eq!(next(&mut reader), "2 0-1 c; 1 0-10 a,f,g");
    world.open.abort(TransactionId(2)).expect("open");
    assert_eq!(world.write(2, 0, &["x"]), Ok(1));
    assert_eq!(next(&mut reader), "end 2; 2 0-1 x", "the id is used again");
    drop(world.commit(1, 10).expect("changes"));
    assert_eq!(next(&mut reader), "end 1");
}

#[test]
fn young_transaction_is_not_read_and_wakes_no_stream() {
    let mut world = World::new();
    let mut reader = TransactionReader::default();
    world.write(1, 0, &["a"]).expect("written");
    assert!(world.open.must_schedule_wake(), "the caller wakes the streams later");
    world.write(2, 0, &["b"]).expect("written");
    assert!(!world.open.must_schedule_wake(), "somebody does it already");
    assert_eq!(said(&reader.next(&world.open, 1 << 20, world.now)), "");
    drop(world.commit(1, 1).expect("changes"));
    assert!(!world.woken.has_changed().expect("open"), "nobody knows of it");
    assert!(world.open.wake_for_young(world.now), "the second one is young still");
    assert_eq!(said(&reader.next(&world.open, 1 << 20, world.later())), "2 0-1 b");
    assert!(!world.open.wake_for_young(world.later()));
    world.woken.borrow_and_update();
    let committing = world.commit(2, 1).expect("changes");
    assert_eq!(said(&reader.next(&world.open, 1 << 20, world.later())), "");
    drop(committing);
    assert!(world.woken.has_changed().expect("open"), "streams tell its end");
    assert_eq!(said(&reader.next(&world.open, 1 << 20, world.later())), "end 2");
}

#[test]
fn a_reader_reads_in_pieces() {
    let world = World::new();
    let ids: Vec<String> = (0..10).map(|n| format!("d{n}")).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    world.write(1, 0, &ids).expect("written");
    world.write(2, 0, &["z"]).expect("written");
    let mut reader = TransactionReader::default();
    let mut next = |bytes| said(&reader.next(&world.open, bytes, world.later()));
    assert_eq!(next(1), "1 0-1 d0", "at least one");
    assert_eq!(next(500), "1 1-4 d1,d2,d3");
    world.back(1, 2);
    // The rollback made the first transaction the one that changed last.
    assert_eq!(next(1 << 20), "1 back to 2; 2 0-1 z; 1 2-11");
}

#[test]
fn rollback_or_end_releases_memory() {
    let world = World::new();
    let used = || world.limits.room.used();
    world.write(1, 0, &["a", "b"]).expect("written");
    let two = used();
    world.write(1, 2, &["b", "c"]).expect("written");
    assert_eq!(used(), 2 * two);
    world.back(1, 2);
    assert_eq!(used(), two);
    assert_eq!(world.write(1, 2, &["a"]).map_err(|error| error.code), Err(ErrorCode::Conflict));
    assert_eq!(used(), two, "a refused write takes nothing");
    world.write(2, 0, &["a", "b"]).expect("written");
    let committing = world.commit(1, 5).expect("changes");
    assert_eq!((committing.changes.len(), used()), (2, 2 * two), "it is in memory until it ends");
    drop(committing);
    assert_eq!(used(), two);
    world.open.close();
    assert_eq!(used(), 0);
    assert_eq!(world.write(3, 0, &["a"]).map_err(|error| error.code), Err(ErrorCode::Conflict));
    assert_eq!(used(), 0);
}

#[test]
fn the_rollbacks_that_are_remembered_are_as_few_as_the_changes() {
    let world = World::new();
    let mut place = world.write(1, 0, &["kept"]).expect("written");
    for _ in 0..100 {
        let to = place;
        world.write(1, place, &["gone"]).expect("written");
        place = world.back(1, to);
    }
    let mut reader = TransactionReader::default();
    assert_eq!(said(&reader.next(&world.open, 1 << 20, world.later())), "1 0-201 kept");
    assert_eq!(world.open.remembered_rollbacks(TransactionId(1)), 1);
}

#[test]
fn each_change_wakes_the_streams_and_a_write_without_effect_does_not() {
    let mut world = World::new();
    let is_woken = |world: &mut World| {
        let is_woken = world.woken.has_changed().expect("open");
        world.woken.borrow_and_update();
        is_woken
    };
    world.write(1, 0, &["a"]).expect("written");
    assert!(!is_woken(&mut world), "it is young");
    world.now = world.later();
    world.write(1, 1, &["b"]).expect("written");
    assert!(is_woken(&mut world));
    world.write(1, 2, &[]).expect("written");
    assert!(!is_woken(&mut world));
    world.back(1, 0);
    assert!(is_woken(&mut world));
    let mut reader = TransactionReader::default();
    reader.next(&world.open, 1 << 20, world.now);
    let later = world.now + Duration::from_secs(30);
    assert_eq!(world.open.roll_back_forgotten(later, Duration::from_secs(30)), 0);
    assert!(!is_woken(&mut world), "somebody asked in time");
    let figures = world.open.figures(later);
    assert_eq!((figures.open, figures.oldest_age_ms), (1, 30_001));
    let later = later + Duration::from_millis(1);
    assert_eq!(world.open.roll_back_forgotten(later, Duration::from_secs(30)), 1);
    assert_eq!(world.open.figures(later), TransactionFigures::default());
    assert!(is_woken(&mut world));
}
