//! A stored data directory is opened with all its contents, or refused by name.
//!
//! `testdata/directory.zst` is the directory of `sextant dev --nodes 1` after a clean stop: a bucket with updates and
//! deletions, and two indexes, of which one keeps its included columns apart. Documents that were written before the
//! indexes are in fragments, later ones in the commit log. Its files are packed into one:
//!
//! ```text
//! file := len(path):u32  path  len(file):u64  len(bytes):u64  bytes      (little endian; the whole is one zstd frame)
//! ```
//!
//! `bytes` is the file without the zeros at its end: a journal is allocated in advance.
//!
//! The directory is never recreated while this build opens it. When a build refuses it, `UPDATE=1` makes the next one.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the tests run the product as a process"
)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use tests::harness::process::{Dev, dev, output, sextant};
use tests::harness::{connect, eventually, sql};
use tokio::runtime::Runtime;
use tokio_postgres::Client;

/// The number of documents of the first statement. Every third is replaced later, every seventh
/// removed.
const DOCUMENTS: u64 = 300;
const ZSTD_LEVEL: i32 = 19;
const UNPACKED_BYTES_MAX: usize = 64 << 20;

/// Returns the documents of the directory by id: number, city and note.
fn documents() -> BTreeMap<String, (u64, String, String)> {
    let present = (0..DOCUMENTS).filter(|n| n % 7 != 0);
    present.map(|n| (id(n), document(n, n % 3 == 0))).collect()
}

fn id(n: u64) -> String {
    format!("doc-{n:03}")
}

fn document(n: u64, replaced: bool) -> (u64, String, String) {
    let number = if replaced { n + 1_000 } else { n };
    (number, format!("city {}", number % 11), format!("the note of {number}"))
}

fn insert(documents: impl Iterator<Item = (u64, bool)>) -> String {
    let row = |(n, replaced)| {
        let (number, city, note) = document(n, replaced);
        let id = id(n);
        format!("('{id}', '{{\"n\":{number},\"city\":\"{city}\",\"note\":\"{note}\"}}')")
    };
    let rows: Vec<_> = documents.map(row).collect();
    format!(
        "INSERT INTO b (id, doc) VALUES {} ON CONFLICT (id) DO UPDATE SET doc = excluded.doc",
        rows.join(", ")
    )
}

/// Fills an empty directory.
async fn fill(client: &Client) {
    sql::run(client, "CREATE BUCKET b WITH (vbuckets = 16)").await;
    sql::run(client, &insert((0..DOCUMENTS).map(|n| (n, false)))).await;
    sql::run(client, "CREATE INDEX by_n ON b (n::int8) WITH (slices = 2)").await;
    let apart = "CREATE INDEX by_city ON b (city, n::int8 DESC) INCLUDE (note)
                 WITH (slices = 2, separate_included_columns)";
    sql::run(client, apart).await;
    sql::run(client, &insert((0..DOCUMENTS).step_by(3).map(|n| (n, true)))).await;
    let removed: Vec<_> = (0..DOCUMENTS).step_by(7).map(|n| format!("'{}'", id(n))).collect();
    sql::run(client, &format!("DELETE FROM b WHERE id IN ({})", removed.join(", "))).await;
    check(client, &documents()).await;
}

/// Compares the bucket and both indexes with the documents.
async fn check(client: &Client, documents: &BTreeMap<String, (u64, String, String)>) {
    sql::run(client, "SET consistency = 'request_plus'").await;
    let rows = |select: String| async move {
        // Slices may be rebuilt for a while.
        let rows = eventually(&select, || async {
            match sql::simple(client, &select).await {
                Err(error) if sql::state_of(&error) == "57P03" => None,
                rows => Some(rows.unwrap_or_else(|error| panic!("{select}: {error:?}"))),
            }
        });
        let rows = rows.await;
        let texts = |row: Vec<Option<String>>| row.into_iter().flatten().collect::<Vec<_>>();
        rows.into_iter().map(texts).collect::<Vec<_>>()
    };
    let ids: Vec<_> = (0..DOCUMENTS).map(|n| format!("'{}'", id(n))).collect();
    let stored = rows(format!("SELECT id, doc FROM b WHERE id IN ({})", ids.join(", "))).await;
    let numbers: BTreeMap<_, _> =
        stored.iter().map(|row| (row[0].clone(), number(&row[1]))).collect();
    let expected = documents.iter().map(|(id, (n, ..))| (id.clone(), *n));
    assert_eq!(numbers, expected.collect(), "the documents");

    let mut by_n: Vec<_> = documents.iter().map(|(id, (n, ..))| (*n, id.clone())).collect();
    by_n.sort();
    let by_n: Vec<_> = by_n.into_iter().map(|(n, id)| vec![n.to_string(), id]).collect();
    assert_eq!(rows("SELECT n, id FROM by_n ORDER BY n".into()).await, by_n, "one index");

    let mut by_city: Vec<_> = documents.values().collect();
    by_city.sort_by_key(|(n, city, _)| (city.clone(), std::cmp::Reverse(*n)));
    let by_city: Vec<_> = by_city
        .into_iter()
        .map(|(n, city, note)| vec![city.clone(), n.to_string(), note.clone()])
        .collect();
    let select = "SELECT city, n, note FROM by_city ORDER BY city, n DESC";
    assert_eq!(rows(select.into()).await, by_city, "the index with included columns");
}

fn number(document: &str) -> u64 {
    let document: serde_json::Value = serde_json::from_str(document).expect("JSON");
    document["n"].as_u64().expect("a number")
}

/// The packed directory; `UPDATE=1` creates it first.
static GOLDEN: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/directory.zst");
    if std::env::var_os("UPDATE").is_some() {
        let data = tempfile::tempdir().expect("a temporary directory");
        let process = start(data.path());
        let runtime = Runtime::new().expect("a runtime");
        runtime.block_on(async { fill(&connect(process.sql_address()).await).await });
        assert_eq!(process.terminate().code(), Some(0), "a clean stop");
        std::fs::write(&path, pack(data.path())).expect("it is written");
    }
    std::fs::read(&path).expect("the golden directory")
});

/// Unpacks the directory into a temporary directory, and returns it.
fn unpacked() -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let bytes = zstd::bulk::decompress(&GOLDEN, UNPACKED_BYTES_MAX).expect("a zstd frame");
    let mut rest = &bytes[..];
    while !rest.is_empty() {
        let path_bytes = take_number(&mut rest, 4);
        let path = take(&mut rest, path_bytes);
        let path = dir.path().join(std::str::from_utf8(path).expect("a path"));
        let file_bytes = take_number(&mut rest, 8);
        let kept_bytes = take_number(&mut rest, 8);
        std::fs::create_dir_all(path.parent().expect("a directory")).expect("it is created");
        std::fs::write(&path, take(&mut rest, kept_bytes)).expect("it is written");
        let file = std::fs::File::options().write(true).open(&path).expect("a file");
        file.set_len(file_bytes).expect("it is extended");
    }
    dir
}

fn take<'a>(rest: &mut &'a [u8], len: u64) -> &'a [u8] {
    let (taken, tail) = rest.split_at(len as usize);
    *rest = tail;
    taken
}

fn take_number(rest: &mut &[u8], bytes: u64) -> u64 {
    take(rest, bytes).iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// Packs a directory; returns the bytes.
fn pack(dir: &Path) -> Vec<u8> {
    let mut packed = Vec::new();
    for path in files_below(dir) {
        let name = path.strip_prefix(dir).expect("below").to_str().expect("UTF-8").as_bytes();
        let file = std::fs::read(&path).expect("a file");
        let kept = file.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        packed.extend_from_slice(&(name.len() as u32).to_le_bytes());
        packed.extend_from_slice(name);
        packed.extend_from_slice(&(file.len() as u64).to_le_bytes());
        packed.extend_from_slice(&(kept as u64).to_le_bytes());
        packed.extend_from_slice(&file[..kept]);
    }
    zstd::bulk::compress(&packed, ZSTD_LEVEL).expect("it is compressed")
}

fn files_below(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).expect("a directory");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    let below = |path: PathBuf| if path.is_dir() { files_below(&path) } else { vec![path] };
    paths.into_iter().flat_map(below).collect()
}

fn start(data: &Path) -> Dev {
    Dev::start_by(dev(data).args(["--nodes", "1"]))
}

#[test]
fn a_stored_directory_is_opened_with_all_that_was_in_it() {
    let runtime = Runtime::new().expect("a runtime");
    let data = unpacked();
    let verified = output(sextant().arg("verify").arg("--data").arg(data.path()));
    assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stdout));

    let mut expected = documents();
    for more in [0, 1] {
        let process = start(data.path());
        runtime.block_on(async {
            let client = connect(process.sql_address()).await;
            check(&client, &expected).await;
            // The directory accepts further writes, and a second start finds these too.
            let n = 7 * more;
            sql::run(&client, &insert(std::iter::once((n, false)))).await;
            expected.insert(id(n), document(n, false));
            check(&client, &expected).await;
        });
        assert_eq!(process.terminate().code(), Some(0), "a clean stop");
    }
}

/// The indexers and the projector know numbers that the copy of the coordinator does not have.
#[test]
fn the_documents_are_shown_again_after_a_copy_of_the_coordinator_was_restored() {
    let runtime = Runtime::new().expect("a runtime");
    let (data, copy) = (unpacked(), unpacked());
    assert_eq!(start(data.path()).terminate().code(), Some(0), "a clean stop");
    let coordinator = data.path().join("coordinator-1");
    std::fs::remove_dir_all(&coordinator).expect("removed");
    std::fs::rename(copy.path().join("coordinator-1"), &coordinator).expect("restored");
    let process = Dev::start_by(dev(data.path()).args(["--nodes", "1", "--skip-epochs"]));
    runtime.block_on(async {
        let client = connect(process.sql_address()).await;
        eventually("the indexes are rebuilt", || async {
            sql::run(&client, "SET consistency = 'request_plus'").await;
            sql::simple(&client, "SELECT count(*) FROM by_n").await.ok()?;
            sql::simple(&client, "SELECT count(*) FROM by_city").await.ok()
        })
        .await;
        check(&client, &documents()).await;
    });
    assert_eq!(process.terminate().code(), Some(0), "a clean stop");
}

#[test]
fn a_directory_of_the_next_format_is_refused_by_name_and_stays_as_it_is() {
    for part in ["indexer-1", "projector-1"] {
        let data = unpacked();
        // From now on it has the versions of this build.
        drop(start(data.path()));
        let path = data.path().join(part).join("VERSION");
        let spoken = std::fs::read_to_string(&path).expect("a version");
        let (name, number) = spoken.trim_end().rsplit_once(' ').expect("a name and a number");
        let number: u64 = number.parse().expect("a number");
        let next = format!("{name} {}", number + 1);
        std::fs::write(&path, format!("{next}\n")).expect("it is written");
        let directory = data.path().join(part).display().to_string();
        refused_and_unchanged(data.path(), part, &[&directory, &next, spoken.trim_end(), "hint:"]);
    }
}

/// Builds before the first release had formats with other names.
#[test]
fn a_directory_of_an_earlier_build_is_refused_by_one_line_and_stays_as_it_is() {
    for (part, earlier) in [
        ("coordinator-1", "sextant coordinator data 1"),
        ("indexer-1", "sextant indexer data 7"),
        ("projector-1", "sextant documents 8"),
    ] {
        let data = unpacked();
        let path = data.path().join(part).join("VERSION");
        let spoken = std::fs::read_to_string(&path).expect("a version");
        std::fs::write(&path, format!("{earlier}\n")).expect("it is written");
        let directory = data.path().join(part).display().to_string();
        refused_and_unchanged(
            data.path(),
            part,
            &[&directory, earlier, spoken.trim_end(), "hint:"],
        );
    }
}

#[test]
fn a_manifest_of_the_next_format_is_refused_by_name_and_stays_as_it_is() {
    let data = unpacked();
    // Generations have random numbers.
    let names = std::fs::read_dir(data.path().join("indexer-1/manifests")).expect("manifests");
    let path = names
        .map(|name| name.expect("a name").path())
        .find(|path| path.file_name().is_some_and(|n| n.to_string_lossy().starts_with("index-1.")))
        .expect("a manifest of an index");
    let mut manifest = std::fs::read(&path).expect("a manifest");
    let spoken = manifest[4];
    manifest[4] += 1;
    std::fs::write(&path, manifest).expect("it is written");
    let (name, next) = (path.display().to_string(), format!("version {}", spoken + 1));
    refused_and_unchanged(
        data.path(),
        "indexer-1",
        &[&name, &next, &format!("version {spoken}"), "hint:"],
    );
}

/// Starts the binary on a directory that it must refuse because of one part, with a message that
/// contains all these words.
fn refused_and_unchanged(data: &Path, part: &str, words: &[&str]) {
    let part = data.join(part);
    let before = contents(&part);
    let ran = output(dev(data).args(["--nodes", "1"]));
    let told = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert_eq!(ran.status.code(), Some(1), "{told}");
    for word in words {
        assert!(told.contains(word), "the refusal must name {word:?}: {told}");
    }
    assert!(contents(&part) == before, "its files are unchanged");
}

/// Returns the files below a directory, without its lock.
fn contents(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let files = files_below(dir).into_iter().filter(|path| !path.ends_with("LOCK"));
    files.map(|path| (path.clone(), std::fs::read(path).expect("a file"))).collect()
}
