//! The rate at which a projector loads a version from files, beside the rate at which it takes the same documents as COPY brings them.
//! `cargo run --release -p sextant-projector --features parquet --example load_rates [ROWS] [DIR]`
#![allow(clippy::disallowed_methods, reason = "it writes the files that are read")]
#![allow(dead_code, reason = "the modules are those of the tests")]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use projector::{Config, DiskStore, DiskStoreOptions, Service};
use proto::env::{Bulk, Env};
use proto::model::bucket::*;
use proto::model::data_set::*;
use proto::model::ids::*;
use proto::rpc::api::WriteRequest;
use proto::rpc::api::*;
use proto::rpc::command::{Command, PartitionsLoaded, VersionFailed};
use tokio::time::Instant;

#[path = "../tests/common/mod.rs"]
mod common;

use common::{BUCKET, PROJECTOR, Script, catalog, projector_info};

const SET: BucketId = BucketId(20);
const PARTITIONS: u16 = 8;
/// Batches of COPY that are written at once, and documents of each.
const COPY_AT_ONCE: usize = 4;
const COPY_BATCH: usize = 4_096;
/// The size limit of what is written as COPY.
const COPY_BYTES_MAX: usize = 48 << 20;

fn line(n: u64) -> String {
    let city = ["Berlin", "Lima", "Kyoto", "Oslo", "Accra"][(n % 5) as usize];
    format!(
        "{{\"id\":\"user::{n:012}\",\"name\":\"name {}\",\"city\":\"{city}\",\"age\":{},\"score\":{}.5}}",
        n % 9_973,
        n % 90,
        n * 7 % 1_000
    )
}

fn write_lines(path: &Path, rows: u64) -> std::io::Result<()> {
    let mut out = std::io::BufWriter::new(std::fs::File::create(path)?);
    (0..rows).try_for_each(|n| writeln!(out, "{}", line(n)))?;
    out.flush()
}

fn write_csv(path: &Path, rows: u64) -> std::io::Result<()> {
    let mut out = std::io::BufWriter::new(std::fs::File::create(path)?);
    writeln!(out, "id,name,city,age,score")?;
    for n in 0..rows {
        let city = ["Berlin", "Lima", "Kyoto", "Oslo", "Accra"][(n % 5) as usize];
        let (name, age, score) = (n % 9_973, n % 90, n * 7 % 1_000);
        writeln!(out, "user::{n:012},name {name},{city},{age},{score}.5")?;
    }
    out.flush()
}

#[cfg(feature = "parquet")]
fn write_parquet(path: &Path, rows: u64) -> std::io::Result<()> {
    use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
    use parquet::file::properties::WriterProperties;
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::parser::parse_message_type;

    const SCHEMA: &str = "message m { required binary id (STRING); required binary name (STRING); required binary city (STRING); required int64 age; required double score; }";
    let schema = parse_message_type(SCHEMA)?.into();
    let properties = WriterProperties::builder()
        .set_compression(parquet::basic::Compression::SNAPPY)
        .build()
        .into();
    let mut writer = SerializedFileWriter::new(std::fs::File::create(path)?, schema, properties)?;
    let all: Vec<u64> = (0..rows).collect();
    for group_rows in all.chunks(1 << 17) {
        let mut group = writer.next_row_group()?;
        let texts: [&dyn Fn(u64) -> String; 3] =
            [&|n| format!("user::{n:012}"), &|n| format!("name {}", n % 9_973), &|n| {
                ["Berlin", "Lima", "Kyoto", "Oslo", "Accra"][(n % 5) as usize].to_owned()
            }];
        for text in texts {
            let values: Vec<ByteArray> =
                group_rows.iter().map(|n| ByteArray::from(text(*n).into_bytes())).collect();
            if let Some(mut column) = group.next_column()? {
                column.typed::<ByteArrayType>().write_batch(&values, None, None)?;
                column.close()?;
            }
        }
        let ages: Vec<i64> = group_rows.iter().map(|n| (n % 90) as i64).collect();
        if let Some(mut column) = group.next_column()? {
            column.typed::<Int64Type>().write_batch(&ages, None, None)?;
            column.close()?;
        }
        let scores: Vec<f64> = group_rows.iter().map(|n| (n * 7 % 1_000) as f64 + 0.5).collect();
        if let Some(mut column) = group.next_column()? {
            column.typed::<DoubleType>().write_batch(&scores, None, None)?;
            column.close()?;
        }
        group.close()?;
    }
    writer.close()?;
    Ok(())
}

/// Loads one version, and waits until the load is reported.
async fn load(script: &Script, cas: u64, pattern: &str, rows: u64) {
    let begun = Instant::now();
    script.proposed.lock().expect("not poisoned").clear();
    let bucket = BucketId(SET.0 + cas);
    let version = Version {
        name: pattern.to_owned(),
        bucket,
        files: Files { pattern: pattern.to_owned(), id: "id".into() },
        nodes: vec![PROJECTOR],
        stage: VersionStage::Loading,
        partitions: vec![Partition::default(); usize::from(PARTITIONS)],
    };
    let mut set = DataSet::new(PARTITIONS, 1, 0);
    set.versions.insert(cas, version);
    let mut next = catalog(cas, &[]);
    for (id, partitions) in [(SET, 1), (bucket, PARTITIONS)] {
        let info = BucketInfo::new(id, pattern, partitions, SourceKind::Files, PROJECTOR);
        next.buckets.insert(id, Arc::new(info));
    }
    next.data_sets.insert(SET, set);
    script.say(WatchMessage::Catalog(next.into()));
    loop {
        let proposed = script.proposed.lock().expect("not poisoned").clone();
        for command in proposed {
            match command {
                Command::PartitionsLoaded(PartitionsLoaded { partitions, .. }) => {
                    let documents: u64 = partitions.iter().map(|(_, of)| of.documents).sum();
                    assert_eq!(documents, rows, "all documents are there");
                    print(pattern, rows, begun.elapsed());
                    return;
                }
                Command::VersionFailed(VersionFailed { error, .. }) => panic!("{error}"),
                _ => {}
            }
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn print(what: &str, rows: u64, spent: Duration) {
    let rate = rows as f64 / spent.as_secs_f64() / 1e3;
    println!("{what}: {rows} documents in {spent:.2?}, {rate:.0} thousand/s");
}

/// Writes the documents as COPY does: lines are checked on threads for bulk work, and some batches are written at once.
async fn copy(service: &Service, env: &Env, path: &Path) {
    let mut text = Bytes::from(std::fs::read(path).expect("a file"));
    // There is no coordinator here, and without its epochs so much is accepted.
    let end = text.iter().take(COPY_BYTES_MAX).rposition(|byte| *byte == b'\n');
    text.truncate(end.map_or(0, |end| end + 1));
    let (begun, mut written, mut rows) = (Instant::now(), std::collections::VecDeque::new(), 0);
    let mut rest = text;
    while !rest.is_empty() {
        let mut ends = rest.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
        let end = ends.by_ref().take(COPY_BATCH).last().map_or(rest.len(), |(at, _)| at + 1);
        let piece = rest.split_to(end);
        let (projector, env_of) = (service.projector(), env.clone());
        written.push_back(tokio::spawn(async move {
            let check = move || -> proto::Result<CheckedWrites> {
                let lines = piece.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
                let check =
                    |line: &[u8]| CheckedWrite::upsert_with_id_in("id", piece.slice_ref(line));
                lines.map(check).collect()
            };
            let writes = env_of.bulk(Bulk::Queued, check).await?;
            let count = writes.writes().len() as u64;
            projector.write(WriteRequest { bucket: BUCKET, writes }).await.map(|_| count)
        }));
        if written.len() == COPY_AT_ONCE
            && let Some(first) = written.pop_front()
        {
            rows += first.await.expect("it ends").expect("written");
        }
    }
    for one in written {
        rows += one.await.expect("it ends").expect("written");
    }
    print("as COPY", rows, begun.elapsed());
}

#[tokio::main]
async fn main() {
    let mut args = std::env::args().skip(1);
    let rows: u64 = args.next().map_or(1_000_000, |rows| rows.parse().expect("a number"));
    let dir = PathBuf::from(args.next().unwrap_or_else(|| "load_rates.tmp".into()));
    let files = dir.join("files");
    // Versions that an earlier run has left would not be loaded again.
    drop(std::fs::remove_dir_all(&dir));
    std::fs::create_dir_all(&files).expect("a directory");
    write_lines(&files.join("a.jsonl"), rows).expect("written");
    write_csv(&files.join("a.csv"), rows).expect("written");
    #[cfg(feature = "parquet")]
    write_parquet(&files.join("a.parquet"), rows).expect("written");

    let (env, script) = (Env::real(), Script::new(PROJECTOR));
    let store = DiskStore::open(&env, &dir.join("data"), DiskStoreOptions::default());
    let store = Arc::new(store.expect("a store"));
    let mut config = Config::new(projector_info(PROJECTOR));
    config.files_dir = Some(files.clone());
    let directory = Arc::new(script.clone());
    let service =
        Service::start(config, env.clone(), store, directory, Arc::new(common::Router)).await;
    let service = service.expect("a projector");
    load(&script, 1, "a.jsonl", rows).await;
    load(&script, 2, "a.csv", rows).await;
    #[cfg(feature = "parquet")]
    load(&script, 3, "a.parquet", rows).await;
    copy(&service, &env, &files.join("a.jsonl")).await;
    drop(service);
    std::fs::remove_dir_all(dir).expect("removed");
}
