//! Tests of sorted documents that are added without the log.

use std::collections::BTreeMap;

use proto::env::Env;
use proto::model::assignment::VbucketSet;
use proto::model::bucket::{BucketInfo, SourceKind};
use proto::model::ids::{BucketId, NodeId, Seqno, VbucketId, Vbuuid, vbucket_of};

use super::small;
use crate::document_store::{AddSorted, DocumentRef, DocumentStore};
use crate::memory::MemoryStore;
use crate::ownership::Ownership;
use crate::record::BucketRecord;
use crate::store::DiskStore;

const BUCKET: BucketId = BucketId(3);
const VBUCKETS: u16 = 4;

fn record(branches: bool) -> BucketRecord {
    let info = BucketInfo::new(BUCKET, "b", VBUCKETS, SourceKind::Files, NodeId(1));
    let owned = if branches { VbucketSet::all(VBUCKETS) } else { VbucketSet::default() };
    let branch = if branches { vec![(Vbuuid(1), 0)] } else { Vec::new() };
    BucketRecord {
        info,
        branches: vec![branch; usize::from(VBUCKETS)],
        ownership: Ownership { owned, ..Ownership::default() },
        given_up: Default::default(),
        commits: Default::default(),
    }
}

/// The documents of a piece: every third id from `from` on.
fn piece(from: u64, count: u64) -> BTreeMap<String, (u64, String)> {
    let document = |n: u64| {
        let id = format!("d{:05}", from + 3 * n);
        (id.clone(), (1_000 * from + n, format!("{{\"id\":\"{id}\",\"from\":{from}}}")))
    };
    (0..count).map(document).collect()
}

fn write(store: &dyn DocumentStore, piece: &BTreeMap<String, (u64, String)>) -> AddSorted {
    let refs = piece.iter().map(|(id, (seqno, document))| DocumentRef {
        id,
        seqno: Seqno(*seqno),
        document: document.as_bytes(),
    });
    let refs: Vec<_> = refs.collect();
    store.write_sorted(BUCKET, &mut refs.into_iter()).expect("written")
}

fn stored(store: &dyn DocumentStore) -> BTreeMap<String, (u64, String)> {
    let mut walk = store.snapshot(BUCKET).expect("a snapshot");
    let mut found = BTreeMap::new();
    loop {
        let chunk = walk.next_chunk(700).expect("a chunk");
        if chunk.is_empty() {
            return found;
        }
        for stored in chunk {
            let document = String::from_utf8(stored.document.to_vec()).expect("text");
            let one =
                store.get(BUCKET, std::slice::from_ref(&stored.id), 1 << 20).expect("a document");
            assert_eq!(one[0].as_deref(), Some(document.as_bytes()));
            found.insert(stored.id, (stored.seqno.0, document));
        }
    }
}

fn fragments(dir: &std::path::Path) -> usize {
    let of_bucket = dir.join("buckets/00000000/fragments");
    Env::real().fs.list(&of_bucket).expect("a directory").len()
}

#[test]
fn last_added_document_of_an_id_wins() {
    let dir = tempfile::tempdir().expect("a directory");
    let disk = DiskStore::open(&Env::real(), dir.path(), small()).expect("a store");
    let memory = MemoryStore::default();
    for store in [&disk as &dyn DocumentStore, &memory] {
        store.apply_catalog(1, &[record(false)], &[]).expect("a bucket");
        let pieces = [piece(0, 300), piece(300, 200), piece(600, 1)];
        // The pieces are written in another order than they are added.
        let later: Vec<_> = pieces.iter().rev().map(|piece| write(store, piece)).collect();
        assert!(stored(store).is_empty(), "nothing counts before it is added");
        later.into_iter().rev().for_each(|add| add().expect("added"));
        let expected: BTreeMap<_, _> = pieces.into_iter().flatten().collect();
        assert_eq!(stored(store), expected);
    }
}

#[test]
fn only_added_files_survive_a_restart() {
    let dir = tempfile::tempdir().expect("a directory");
    let open = || DiskStore::open(&Env::real(), dir.path(), small()).expect("a store");
    let store = open();
    store.apply_catalog(1, &[record(false)], &[]).expect("a bucket");
    let one = piece(0, 200);
    write(&store, &one)().expect("added");
    let dropped = write(&store, &piece(1, 200));
    assert_eq!(fragments(dir.path()), 2);
    drop(dropped);
    assert_eq!(fragments(dir.path()), 1, "its file is removed");
    let never_added = write(&store, &piece(2, 200));
    std::mem::forget(never_added);
    drop(store);
    let store = open();
    assert_eq!((stored(&store), fragments(dir.path())), (one.clone(), 1));
    for vbucket in (0..VBUCKETS).map(VbucketId) {
        let of = |(id, _): &(&String, &(u64, String))| vbucket_of(id, VBUCKETS) == vbucket;
        let end = one.iter().filter(of).map(|(_, (seqno, _))| *seqno).max().expect("documents");
        store.begin_purged(&record(true), vbucket, Seqno(end)).expect("whole");
    }
    drop(store);
    assert_eq!(stored(&open()), one);
}

#[test]
fn added_files_replace_documents_in_memory() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = DiskStore::open(&Env::real(), dir.path(), small()).expect("a store");
    store.apply_catalog(1, &[record(false)], &[]).expect("a bucket");
    let (old, new) = (piece(0, 4), piece(0, 2));
    let in_memory = old.iter().map(|(id, (seqno, _))| crate::StoredDocument {
        id: id.clone(),
        seqno: Seqno(*seqno),
        document: "{\"old\":1}".into(),
    });
    store.put_documents(BUCKET, &in_memory.collect::<Vec<_>>()).expect("put");
    let add = write(&store, &new);
    add().expect("added");
    let found = stored(&store);
    assert_eq!(found.len(), 4);
    assert!(new.iter().all(|(id, document)| found[id] == *document));
}

#[test]
fn unsorted_documents_are_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = DiskStore::open(&Env::real(), dir.path(), small()).expect("a store");
    store.apply_catalog(1, &[record(false)], &[]).expect("a bucket");
    for ids in [["b", "a"], ["a", "a"]] {
        let refs = ids.map(|id| DocumentRef { id, seqno: Seqno(1), document: b"{}" });
        assert!(store.write_sorted(BUCKET, &mut refs.into_iter()).is_err(), "{ids:?}");
    }
    assert_eq!(fragments(dir.path()), 0);
}

#[test]
fn merges_wait_for_the_end_of_a_load() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = DiskStore::open(&Env::real(), dir.path(), small()).expect("a store");
    store.apply_catalog(1, &[record(false)], &[]).expect("a bucket");
    let pieces: Vec<_> = (0..24).map(|n| piece(n, 40)).collect();
    for piece in &pieces {
        write(&store, piece)().expect("added");
        while store.maintain().expect("work") {}
    }
    assert_eq!(fragments(dir.path()), 24);
    for vbucket in (0..VBUCKETS).map(VbucketId) {
        store.begin_purged(&record(true), vbucket, Seqno(100_000)).expect("whole");
    }
    store.end_load(BUCKET);
    while store.maintain().expect("work") {}
    assert!(fragments(dir.path()) < 8, "{} fragments", fragments(dir.path()));
    assert_eq!(stored(&store), pieces.into_iter().flatten().collect());
}
