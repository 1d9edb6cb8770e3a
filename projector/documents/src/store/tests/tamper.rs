//! Tests of damage: a bit of each file is flipped, or the file is truncated or removed. The store
//! must report an error that names a file, or have all its contents.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use proto::env::sim::{self, SimFs};
use proto::env::{Env, FileSystem, OpenMode};
use proto::model::assignment::VbucketSet;
use proto::model::bucket::{BucketInfo, SourceKind};
use proto::model::ids::{BucketId, NodeId, Seqno, VbucketId, Vbuuid, vbucket_of};
use proto::rpc::mutation::MutationKind;
use proto::{ErrorCode, Result};

use super::open_whole;
use crate::document_store::{Batch, DocumentStore, LogRange};
use crate::mutation::Mutation;
use crate::ownership::Ownership;
use crate::record::BucketRecord;
use crate::store::{DiskStore, verify};

const BUCKET: BucketId = BucketId(4);
const VBUCKETS: u16 = 3;
const DIR: &str = "/data";
/// Number of faults of each kind.
const FAULTS: u64 = 500;

/// The visible contents of a store: documents, and entries of the logs.
#[derive(Clone, Debug, Default, PartialEq)]
struct Shown {
    documents: BTreeMap<String, (u64, Bytes)>,
    log: Vec<(u16, u64, String, Bytes)>,
    purged: Vec<Seqno>,
}

fn show(store: &DiskStore) -> Result<Shown> {
    let mut shown = Shown::default();
    let mut walk = store.snapshot(BUCKET)?;
    loop {
        let chunk = walk.next_chunk(500)?;
        if chunk.is_empty() {
            break;
        }
        for stored in chunk {
            shown.documents.insert(stored.id, (stored.seqno.0, stored.document));
        }
    }
    for vbucket in (0..VBUCKETS).map(VbucketId) {
        let range = LogRange { bucket: BUCKET, vbucket, after: Seqno(0), to: Seqno(u64::MAX) };
        for mutation in store.read_log(range, usize::MAX)? {
            let id = mutation.id.to_string();
            shown.log.push((vbucket.0, mutation.seqno.0, id, mutation.document.clone()));
        }
    }
    shown.purged = store.extents(BUCKET)?.iter().map(|extent| extent.purged).collect();
    Ok(shown)
}

/// Creates a store with some fragments, some segments, and changes that no fragment has; returns
/// its contents.
fn filled(env: &Env) -> Shown {
    let store = open(env).expect("a new store");
    let info = BucketInfo::new(BUCKET, "b", VBUCKETS, SourceKind::Embedded, NodeId(1));
    let ownership = Ownership { owned: VbucketSet::all(VBUCKETS), ..Ownership::default() };
    let branches = vec![vec![(Vbuuid(7), 0)]; usize::from(VBUCKETS)];
    let record = BucketRecord {
        info,
        branches,
        ownership,
        given_up: BTreeMap::new(),
        commits: Default::default(),
    };
    store.apply_catalog(1, &[record], &[]).expect("a bucket");
    let mut next = [0; VBUCKETS as usize];
    for round in 0..60 {
        let mut changes = Batch::default();
        for n in 0..12 {
            let id: Arc<str> = format!("d{}", (round * 7 + n * 5) % 90).into();
            let vbucket = vbucket_of(&id, VBUCKETS);
            let seqno = &mut next[usize::from(vbucket.0)];
            *seqno += 1;
            let document = Bytes::from(format!("{{\"round\":{round},\"n\":{n}}}"));
            let place = (vbucket, Seqno(*seqno));
            let mutation = Mutation::new(place, Arc::clone(&id), MutationKind::Upsert, document);
            changes.mutations.push(Arc::new(mutation));
        }
        store.commit(BUCKET, changes).expect("a batch");
        match round {
            20 => store.purge(BUCKET, &[(VbucketId(0), Seqno(30))]).expect("purged"),
            50.. => {}
            _ => while store.maintain().expect("maintained") {},
        }
    }
    show(&store).expect("all of it")
}

fn open(env: &Env) -> Result<DiskStore> {
    open_whole(env, Path::new(DIR))
}

fn files(fs: &dyn FileSystem, dir: &Path) -> Vec<PathBuf> {
    match fs.list(dir) {
        Ok(listed) => listed.iter().flat_map(|path| files(fs, path)).collect(),
        Err(_) => vec![dir.to_owned()],
    }
}

fn contents(fs: &SimFs, path: &Path) -> Vec<u8> {
    let file = fs.open(path, OpenMode::Read).expect("a file");
    let mut bytes = vec![0; file.len().expect("its length") as usize];
    file.read_exact_at(&mut bytes, 0).expect("its contents");
    bytes
}

fn restore(fs: &SimFs, saved: &BTreeMap<PathBuf, Vec<u8>>) {
    for path in files(fs, Path::new(DIR)) {
        if !saved.contains_key(&path) {
            fs.remove_file(&path).expect("removed");
        }
    }
    for (path, bytes) in saved {
        let file = fs.open(path, OpenMode::Create).expect("a file");
        file.set_len(0).expect("emptied");
        file.write_all_at(bytes, 0).expect("written");
        file.sync().expect("synced");
    }
}

/// Returns the outcome of a fault, as a word for a report.
fn fate(env: &Env, all: &Shown, what: &str) -> &'static str {
    let shown = open(env).and_then(|store| {
        while store.maintain()? {}
        show(&store)
    });
    match shown {
        Ok(shown) => {
            assert!(shown == *all, "{what}: nothing was said, and something is not as it was");
            "healed or harmless"
        }
        Err(error) => {
            assert!(
                [ErrorCode::Corrupt, ErrorCode::Version].contains(&error.code),
                "{what}: {error}"
            );
            assert!(error.message.contains("/data/"), "{what}: {error}");
            "named"
        }
    }
}

#[test]
fn damage_of_any_file_is_detected() {
    let (env, _, fs) = sim::world(5);
    let all = filled(&env);
    assert_eq!(verify(&env, Path::new(DIR)).findings, [], "an intact store");
    let saved: BTreeMap<PathBuf, Vec<u8>> = files(&fs, Path::new(DIR))
        .into_iter()
        .map(|path| (path.clone(), contents(&fs, &path)))
        .collect();
    assert!(saved.len() > 10, "{:?}", saved.keys());
    let mut fates: BTreeMap<(String, &str), u32> = BTreeMap::new();
    let mut found = 0;
    let below = |end: u64| env.random.next_u64() % end.max(1);
    let paths: Vec<&PathBuf> = saved.keys().collect();
    for n in 0..FAULTS {
        let path = paths[n as usize % paths.len()];
        // The zeros of a log's room are damaged too, but not most of the time.
        let used = saved[path].iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        let bytes = if n % 8 == 0 { saved[path].len() } else { used } as u64;
        let fault = match below(4) {
            0 => {
                fs.remove_file(path).expect("removed");
                "removed".to_owned()
            }
            1 if bytes > 0 => {
                let to = below(bytes);
                let file = fs.open(path, OpenMode::ReadWrite).expect("a file");
                file.set_len(to).expect("cut");
                format!("cut to {to}")
            }
            _ if bytes > 0 => {
                let bit = below(bytes * 8);
                fs.flip_bit(path, bit).expect("flipped");
                format!("bit {bit} flipped")
            }
            _ => continue,
        };
        let what = format!("{} {fault}", path.display());
        // A lost VERSION file is named at the start; the other files need no version to be read.
        let is_found = !verify(&env, Path::new(DIR)).findings.is_empty();
        let fate = fate(&env, &all, &what);
        let is_version = path.ends_with("VERSION");
        assert!(is_found || fate != "named" || is_version, "{what}: no finding of the check");
        found += u64::from(is_found);
        let kind = path.extension().or(path.file_name()).unwrap_or_default();
        *fates.entry((kind.to_string_lossy().into_owned(), fate)).or_default() += 1;
        restore(&fs, &saved);
    }
    assert_eq!(open(&env).and_then(|store| show(&store)), Ok(all), "the test itself is right");
    let named: u32 = fates.iter().filter(|((_, fate), _)| *fate == "named").map(|(_, n)| n).sum();
    assert!(u64::from(named) > FAULTS / 4, "{fates:?}");
    assert!(found > FAULTS / 2, "{found} findings of the check");
}

#[test]
fn files_that_a_crash_has_left_are_noted_and_removed_by_the_next_start() {
    let (env, _, fs) = sim::world(77);
    let shown = filled(&env);
    let bucket = Path::new(DIR).join("buckets/00000000");
    let left = [
        bucket.join("fragments/00000000000000009999.frag"),
        bucket.join("checkpoint.tmp"),
        Path::new(DIR).join("source.tmp"),
    ];
    for path in &left {
        fs.open(path, OpenMode::CreateNew).expect("a file").write_all_at(&[7; 9], 0).expect("left");
    }
    let report = verify(&env, Path::new(DIR));
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    for path in &left {
        assert!(report.notes.iter().any(|note| note.path == *path), "{path:?}: {:?}", report.notes);
    }
    let store = open(&env).expect("it opens");
    assert_eq!(show(&store).expect("readable"), shown);
    assert!(!fs.exists(&left[0]), "a fragment that nobody names");
}
