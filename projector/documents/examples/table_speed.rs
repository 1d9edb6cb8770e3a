//! Measures the speed of the document table: `cargo run --release -p sextant-documents --example
//! table_speed [DOCUMENTS]`.
//!
//! Prints the rates of puts, reads and walks, and the space on disk, for documents of about 200
//! bytes of JSON.
#![allow(clippy::disallowed_methods, reason = "a measurement reads the clock")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use documents::table::{DocumentTable, Retention, TableManifest, TableOptions, VersionRef};
use proto::env::FileSystem;
use proto::env::real::RealFs;
use proto::model::ids::Seqno;
use proto::model::index::Compression;
use proto::{Error, Result};
use storage::fragment::{BlockCache, OpenFiles};

const VBUCKETS: u16 = 1024;
const BATCH: usize = 256;

fn main() -> Result<()> {
    let documents = std::env::args().nth(1).and_then(|arg| arg.parse().ok()).unwrap_or(1_000_000);
    for (compression, block_bytes) in [
        (Compression::None, 4 << 10),
        (Compression::Lz4, 4 << 10),
        (Compression::Lz4, 8 << 10),
        (Compression::Lz4, 16 << 10),
        (Compression::Zstd, 8 << 10),
    ] {
        println!("== {compression:?}, blocks of {block_bytes} bytes");
        measure(documents, compression, block_bytes)?;
    }
    Ok(())
}

fn id(n: u64) -> String {
    // In no order.
    format!("user::{:08}", n.wrapping_mul(0x9e37_79b1) % 100_000_000)
}

fn json(n: u64, random: &mut fastrand::Rng) -> String {
    const CITIES: [&str; 8] =
        ["Berlin", "Hamburg", "Kopenhagen", "Lyon", "Porto", "Gdansk", "Utrecht", "Graz"];
    let city = CITIES[random.usize(..8)];
    format!(
        "{{\"type\":\"user\",\"name\":\"{:08x} {:06x}\",\"age\":{},\"city\":\"{city}\",\"email\":\"u{n}@example.com\",\"created\":{},\"tags\":[\"a{}\",\"b{}\"],\"score\":{},\"active\":true,\"about\":\"{:016x}\"}}",
        random.u32(..),
        random.u32(..0xff_ffff),
        random.u8(18..90),
        1_700_000_000_000u64 + random.u64(..10_000_000_000),
        random.u8(..),
        random.u8(..),
        random.u32(..1_000_000),
        random.u64(..)
    )
}

fn rate(what: &str, count: u64, since: Instant) {
    let seconds = since.elapsed().as_secs_f64();
    println!(
        "{what:<36} {:>12.0} /s   {:>8.0} ns",
        count as f64 / seconds,
        seconds * 1e9 / count as f64
    );
}

fn measure(documents: u64, compression: Compression, block_bytes: usize) -> Result<()> {
    let dir = tempfile::tempdir().map_err(Error::from)?;
    let fs: Arc<dyn FileSystem> = Arc::new(RealFs);
    let options = TableOptions {
        memtable_bytes: 64 << 20,
        cache: Arc::new(BlockCache::new(64 << 20)),
        open_files: OpenFiles::new(&fs, 100),
        stop: Arc::default(),
        compression,
        block_bytes,
    };
    let open = |manifest| DocumentTable::open(&fs, dir.path(), VBUCKETS, options.clone(), manifest);
    let table = open(TableManifest::new(1))?;
    let mut manifest = fill(&table, documents)?;
    let info = table.describe();
    println!("fragments: {}, index memory: {} KiB", info.fragments.len(), info.index_bytes >> 10);
    gets(&table, documents, "get, fragments")?;
    walk(&table, "walk, fragments")?;
    merge(&table, &mut manifest)?;
    gets(&table, documents, "get, one fragment")?;
    absent(&table, documents)?;
    walk(&table, "walk, one fragment")?;
    println!("bytes of files: {}", table.describe().disk_bytes);
    read_during_writes(&table, documents)?;
    drop(table);
    let since = Instant::now();
    open(manifest)?;
    println!("opened in {:?}", since.elapsed());
    Ok(())
}

/// Measures reads while another thread adds documents to the table without a pause.
fn read_during_writes(table: &DocumentTable, documents: u64) -> Result<()> {
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| -> Result<()> {
            let (since, place, json) = (Instant::now(), table.describe().reached, [b'x'; 200]);
            let ids: Vec<String> = (0..BATCH as u64).map(id).collect();
            let mut written = 0;
            while written < 1_000_000 {
                let versions = ids.iter().enumerate().map(|(n, id)| VersionRef {
                    place: place + written + n as u64,
                    id,
                    seqno: Seqno(written + 1_000_000),
                    document: Some(&json),
                });
                table.apply(&versions.collect::<Vec<_>>())?;
                written += BATCH as u64;
            }
            is_done.store(true, Ordering::Relaxed);
            rate("put, beside a reader", written, since);
            Ok(())
        });
        let (since, mut reads, mut slowest) = (Instant::now(), 0, Duration::ZERO);
        while !is_done.load(Ordering::Relaxed) {
            let begun = Instant::now();
            table.get(&id(reads % documents))?;
            slowest = slowest.max(begun.elapsed());
            reads += 1;
        }
        rate("get, beside a writer", reads, since);
        println!("  (the slowest took {slowest:?})");
        writer.join().unwrap_or_else(|_| Err(Error::internal("the writer panicked")))
    })
}

fn fill(table: &DocumentTable, documents: u64) -> Result<TableManifest> {
    let mut random = fastrand::Rng::with_seed(1);
    let all: Vec<(String, String)> =
        (0..documents).map(|n| (id(n), json(n, &mut random))).collect();
    let raw: u64 = all.iter().map(|(id, json)| (id.len() + json.len()) as u64).sum();
    let (mut putting, mut flushing) = (0.0, 0.0);
    let mut manifest = TableManifest::new(1);
    for (n, batch) in all.chunks(BATCH).enumerate() {
        let since = Instant::now();
        let first = (n * BATCH) as u64;
        let versions: Vec<VersionRef<'_>> = batch
            .iter()
            .enumerate()
            .map(|(n, (id, json))| VersionRef {
                place: first + n as u64,
                id,
                seqno: Seqno(1 + (first + n as u64) / u64::from(VBUCKETS)),
                document: Some(json.as_bytes()),
            })
            .collect();
        table.apply(&versions)?;
        putting += since.elapsed().as_secs_f64();
        if table.needs_flush() {
            if n < 2000 {
                gets(table, first, "get, memory")?;
            }
            let since = Instant::now();
            flush(table, &mut manifest)?;
            flushing += since.elapsed().as_secs_f64();
        }
    }
    let since = Instant::now();
    walk(table, "walk, with a memtable")?;
    println!("  (the walk began with a sort; all: {:?})", since.elapsed());
    let since = Instant::now();
    flush(table, &mut manifest)?;
    flushing += since.elapsed().as_secs_f64();
    println!("put   {:>12.0} /s", documents as f64 / putting);
    println!("flush {:>12.0} /s", documents as f64 / flushing);
    let disk = table.describe().disk_bytes;
    println!("raw bytes {raw}, on disk {disk}: {:.3}", disk as f64 / raw as f64);
    Ok(manifest)
}

fn retention() -> Retention {
    Retention { from: vec![Seqno(u64::MAX); usize::from(VBUCKETS)] }
}

fn flush(table: &DocumentTable, manifest: &mut TableManifest) -> Result<()> {
    let Some(change) = table.prepare_flush(retention)? else { return Ok(()) };
    change.install(|new| {
        manifest.clone_from(new);
        Ok(())
    })
}

fn merge(table: &DocumentTable, manifest: &mut TableManifest) -> Result<()> {
    let (since, count) = (Instant::now(), table.describe().documents_about);
    if let Some(change) = table.prepare_full_merge(retention)? {
        change.install(|new| {
            manifest.clone_from(new);
            Ok(())
        })?;
        rate("merge of all fragments", count, since);
    }
    Ok(())
}

fn gets(table: &DocumentTable, documents: u64, what: &str) -> Result<()> {
    let mut random = fastrand::Rng::with_seed(2);
    let ids: Vec<String> = (0..200_000).map(|_| id(random.u64(..documents))).collect();
    let since = Instant::now();
    let mut found = 0;
    for id in &ids {
        found += u64::from(table.get(id)?.is_some());
    }
    rate(what, ids.len() as u64, since);
    assert_eq!(found, ids.len() as u64, "all documents are found");
    Ok(())
}

fn absent(table: &DocumentTable, documents: u64) -> Result<()> {
    let ids: Vec<String> = (0..200_000).map(|n| format!("nobody::{}", n + documents)).collect();
    let since = Instant::now();
    for id in &ids {
        assert!(!table.contains(id)?);
    }
    rate("contains, absent", ids.len() as u64, since);
    Ok(())
}

fn walk(table: &DocumentTable, what: &str) -> Result<()> {
    let since = Instant::now();
    let mut walk = table.walk(None, None)?;
    let begun = since.elapsed();
    let since = Instant::now();
    let (mut count, mut bytes) = (0, 0);
    loop {
        let chunk = walk.next_chunk(256 << 10)?;
        if chunk.is_empty() {
            break;
        }
        count += chunk.len() as u64;
        bytes += chunk.iter().map(|row| row.document.len() + row.id.len()).sum::<usize>();
    }
    rate(what, count, since);
    println!("  ({bytes} bytes, begun after {begun:?})");
    Ok(())
}
