//! Tests that a bounded number of fragments is open at once, and that every fragment can be read.

use proto::env::Env;
use proto::env::sim::{SimFs, Turns, world};

use super::*;

const OPEN_MAX: usize = 4;

fn write(blobs: &FileBlobs, id: u64) -> Arc<dyn Blob> {
    let mut writer = blobs.create(id).unwrap();
    writer.append(&id.to_le_bytes()).unwrap();
    writer.into_blob()
}

fn is_readable(blob: &dyn Blob, id: u64) -> bool {
    let mut out = [0; 8];
    blob.read_exact_at(&mut out, 0).unwrap();
    u64::from_le_bytes(out) == id
}

fn blobs() -> FileBlobs {
    let fs: Arc<dyn FileSystem> = Arc::new(SimFs::new(1));
    fs.create_dir_all(&layout::fragment_dir(Path::new("/node"))).unwrap();
    FileBlobs::new(&fs, Path::new("/node"), OPEN_MAX)
}

#[test]
fn many_fragments_are_read_through_few_open_files() {
    let blobs = blobs();
    let written: Vec<_> = (0..40).map(|id| write(&blobs, id)).collect();
    let opened: Vec<_> = (0..40).map(|id| blobs.open(id).unwrap()).collect();
    for id in (0..40_u64).chain((0..40).rev()) {
        assert!(is_readable(&*written[id as usize], id) && is_readable(&*opened[id as usize], id));
        let open = blobs.open.open_now_count();
        assert!(open <= OPEN_MAX, "{open} files are open");
    }
}

#[test]
fn a_deleted_fragment_stays_readable_for_all_who_opened_it() {
    let blobs = blobs();
    let first: Vec<_> = (0..10).map(|id| write(&blobs, id)).collect();
    let second: Vec<_> = (0..10).map(|id| blobs.open(id).unwrap()).collect();
    (0..10).for_each(|id| blobs.delete(id).unwrap());
    assert!(blobs.list().unwrap().is_empty());
    let _more: Vec<_> = (20..40).map(|id| write(&blobs, id)).collect();
    for id in 0..10_u64 {
        assert!(is_readable(&*first[id as usize], id) && is_readable(&*second[id as usize], id));
    }
}

#[test]
fn a_fragment_stays_readable_whenever_it_is_deleted() {
    for seed in 0..200 {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            let turns = Turns::new(seed);
            let env = Env { spawner: turns.spawner(), ..world(seed).0 };
            let blobs = Arc::new(blobs());
            let written: Vec<_> = (0..8).map(|id| write(&blobs, id)).collect();
            let reader = env.blocking(move || {
                for id in (0..8_u64).chain((0..8).rev()) {
                    assert!(is_readable(&*written[id as usize], id));
                }
            });
            let deleter = env.blocking(move || (0..8).for_each(|id| blobs.delete(id).unwrap()));
            tokio::join!(reader, deleter);
            turns.resume_panic();
        });
    }
}

#[test]
fn written_bytes_are_in_memory() {
    let dir = tempfile::tempdir().unwrap();
    let env = Env::real();
    let file = env.fs.open(&dir.path().join("file"), OpenMode::CreateNew).unwrap();
    file.write_all_at(b"0123456789", 0).unwrap();
    let mut buf = [0; 4];
    // A file system without this kind of read answers false; then scans use other threads.
    if file.read_from_memory(&mut buf, 3) {
        assert_eq!(&buf, b"3456");
    }
    assert!(!file.read_from_memory(&mut buf, 7), "the file ends before");
    assert!(!file.read_from_memory(&mut buf, 10));
}
