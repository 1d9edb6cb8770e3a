//! Tests with a writer, readers and maintenance that run concurrently.
//!
//! Each batch of the writer gives all documents the same text, or deletes all. Rewinds return all
//! documents to an earlier batch. So at each moment all documents are equal. A reader that finds
//! two different documents has seen a partial change.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use proto::env::Env;
use proto::env::sim::{Turns, world};
use proto::lock::lock;
use proto::model::ids::VbucketId;

use super::*;

const DOCUMENTS: u64 = 12;
/// One of this number of batches deletes all documents.
const DELETES_ONE_IN: u64 = 11;
/// One of this number of batches is large.
const LARGE_ONE_IN: u64 = 7;

fn ids() -> Vec<String> {
    (0..DOCUMENTS).map(|n| format!("document {n}")).collect()
}

struct Shared {
    table: DocumentTable,
    /// The oldest batch to which a rewind may return.
    floor: AtomicU64,
    is_done: AtomicBool,
    durable: Mutex<TableManifest>,
    reads: AtomicU64,
    /// The text of all documents at the end.
    newest: Mutex<Option<String>>,
}

fn shared(fs: &SimFs) -> Arc<Shared> {
    let manifest = TableManifest::new(7);
    Arc::new(Shared {
        table: open(fs, &manifest).unwrap(),
        floor: AtomicU64::new(0),
        is_done: AtomicBool::new(false),
        durable: Mutex::new(manifest),
        reads: AtomicU64::new(0),
        newest: Mutex::default(),
    })
}

/// Returns the greatest seqno of a batch; each document has a different one.
fn seqno(batch: u64) -> u64 {
    batch * DOCUMENTS
}

/// Writes `count` batches; waits while memory is above the bound.
fn write_batches(shared: &Shared, seed: u64, count: u64, memory_bytes_max: usize) {
    let mut random = fastrand::Rng::with_seed(seed);
    let ids = ids();
    let (mut place, mut batch) = (1, 0);
    let mut texts = vec![None];
    for _ in 0..count {
        while shared.table.memory_bytes() > memory_bytes_max {
            std::thread::yield_now();
        }
        batch += 1;
        // Some batches are large enough to become a separate run.
        let pad = if batch % LARGE_ONE_IN == 0 { 400 } else { 0 };
        let text =
            (batch % DELETES_ONE_IN > 0).then(|| format!("{{\"place\":{place}{:pad$}}}", ""));
        let versions = ids.iter().enumerate().map(|(n, id)| VersionRef {
            place: place + n as u64,
            id,
            seqno: Seqno(seqno(batch - 1) + n as u64 + 1),
            document: text.as_deref().map(str::as_bytes),
        });
        shared.table.apply(&versions.collect::<Vec<_>>()).unwrap();
        place += DOCUMENTS;
        texts.truncate(batch as usize);
        texts.push(text);
        let floor = shared.floor.load(Ordering::SeqCst);
        if random.u8(0..8) == 0 {
            batch = random.u64(floor..=batch);
            let of = |vbucket| DeadVersions {
                vbucket: VbucketId(vbucket),
                before: place,
                after: Seqno(seqno(batch)),
            };
            shared.table.add_dead_versions(&(0..VBUCKETS).map(of).collect::<Vec<_>>());
        } else if random.u8(0..4) == 0 {
            shared.floor.store(random.u64(floor..=batch), Ordering::SeqCst);
        }
        let cut = random.u64(shared.floor.load(Ordering::SeqCst)..=batch);
        let found = shared.table.get_at(&ids[3], &[Seqno(seqno(cut)); VBUCKETS as usize]).unwrap();
        let found = found.map(|found| String::from_utf8(found.document.to_vec()).unwrap());
        assert_eq!(found, texts[cut as usize], "as of batch {cut} of {batch}");
        let newest = super::text(&shared.table, &ids[5]);
        assert_eq!(newest, texts[batch as usize], "after batch {batch}");
    }
    lock(&shared.newest).clone_from(&texts[batch as usize]);
    shared.is_done.store(true, Ordering::SeqCst);
}

fn retention(shared: &Shared) -> Retention {
    let floor = seqno(shared.floor.load(Ordering::SeqCst));
    Retention { from: vec![Seqno(floor); usize::from(VBUCKETS)] }
}

fn maintain(shared: &Shared, turn: u64) {
    let retention = || retention(shared);
    let change = match turn % 3 {
        0 | 1 => shared.table.prepare_flush(retention).unwrap(),
        _ => shared.table.prepare_full_merge(retention).unwrap(),
    };
    let Some(change) = change else { return };
    change
        .install(|manifest| {
            *lock(&shared.durable) = manifest.clone();
            Ok(())
        })
        .unwrap();
}

fn read_once(shared: &Shared, turn: u64) {
    let ids = ids();
    let texts: Vec<Option<Vec<u8>>> = if turn.is_multiple_of(3) {
        let rows = rest_of(&mut shared.table.walk(None, None).unwrap());
        assert!(rows.is_empty() || rows.len() as u64 == DOCUMENTS, "{rows:?}");
        rows.into_iter().map(|row| Some(row.2)).collect()
    } else {
        let asked: Vec<&str> = ids.iter().map(String::as_str).collect();
        let found = shared.table.get_many(&asked, usize::MAX).unwrap();
        found.into_iter().map(|found| found.map(|found| found.document.to_vec())).collect()
    };
    assert!(texts.windows(2).all(|pair| pair[0] == pair[1]), "{texts:?}");
    shared.reads.fetch_add(1, Ordering::Relaxed);
}

/// Flushes, merges, opens the table again, and checks it.
fn reopen(fs: &SimFs, shared: &Shared) {
    let newest = lock(&shared.newest).clone();
    for turn in [0, 2] {
        maintain(shared, turn);
        for id in ids() {
            assert_eq!(text(&shared.table, &id), newest, "{id}");
        }
    }
    let manifest = lock(&shared.durable).clone();
    let reopened = open(fs, &manifest).unwrap();
    let system: Arc<dyn FileSystem> = Arc::new(fs.clone());
    assert!(verify(&system, &dir(), &manifest).is_empty());
    let rows = rest_of(&mut reopened.walk(None, None).unwrap());
    assert!(rows.iter().all(|row| newest.as_ref().is_some_and(|text| row.2 == text.as_bytes())));
    assert_eq!(rows.len() as u64, if newest.is_some() { DOCUMENTS } else { 0 });
}

#[test]
fn in_every_order_of_steps_readers_see_whole_batches() {
    for seed in 0..60 {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            let turns = Turns::new(seed);
            let (env, _, fs) = world(seed);
            let env = Env { spawner: turns.spawner(), ..env };
            let shared = shared(&fs);
            let of = || Arc::clone(&shared);
            let writer = of();
            let writer = env.blocking(move || write_batches(&writer, seed, 60, usize::MAX));
            let readers = (0..2u64).map(|n| {
                let shared = of();
                env.blocking(move || (n..n + 25).for_each(|turn| read_once(&shared, turn)))
            });
            let readers = futures::future::join_all(readers.collect::<Vec<_>>());
            let maintainers = (0..2u64).map(|n| {
                let shared = of();
                env.blocking(move || (n..n + 25).for_each(|turn| maintain(&shared, turn)))
            });
            let maintainers = futures::future::join_all(maintainers.collect::<Vec<_>>());
            tokio::join!(writer, readers, maintainers);
            turns.resume_panic();
            assert!(turns.switches() > 100, "{} switches", turns.switches());
            reopen(&fs, &shared);
        });
    }
}

#[test]
fn on_real_threads_readers_see_whole_batches() {
    let fs = SimFs::new(1);
    let shared = shared(&fs);
    std::thread::scope(|scope| {
        scope.spawn(|| write_batches(&shared, 1, 5000, 256 << 10));
        let until_done = |step: fn(&Shared, u64)| {
            let mut turn = 0;
            while !shared.is_done.load(Ordering::SeqCst) {
                step(&shared, turn);
                turn += 1;
            }
        };
        scope.spawn(move || until_done(read_once));
        scope.spawn(move || until_done(read_once));
        scope.spawn(move || until_done(maintain));
    });
    let reads = shared.reads.load(Ordering::Relaxed);
    assert!(reads > 20, "{reads} reads, {:?}", shared.table.describe());
    reopen(&fs, &shared);
}
