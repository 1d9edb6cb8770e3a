//! Tests of crashes: synced data survives, and unsynced data may be lost in parts.

use super::*;

fn dir() -> PathBuf {
    PathBuf::from("/data")
}

/// Returns a machine with a durable directory and one durable file of `len` bytes with the value 1.
fn machine(seed: u64, len: usize) -> (SimFs, PathBuf) {
    let fs = SimFs::new(seed);
    fs.create_dir_all(&dir()).unwrap();
    fs.sync_dir(Path::new("/")).unwrap();
    let path = dir().join("file");
    let file = fs.open(&path, OpenMode::CreateNew).unwrap();
    file.write_all_at(&vec![1; len], 0).unwrap();
    file.sync().unwrap();
    fs.sync_dir(&dir()).unwrap();
    (fs, path)
}

fn contents(fs: &SimFs, path: &Path) -> Vec<u8> {
    let file = fs.open(path, OpenMode::Read).unwrap();
    let mut buf = vec![0; file.len().unwrap() as usize];
    file.read_exact_at(&mut buf, 0).unwrap();
    buf
}

fn crash_and_restart(fs: &SimFs) {
    fs.crash();
    fs.restart();
}

#[test]
fn unsynced_sectors_survive_in_any_subset_and_synced_ones_always() {
    let mut seen = BTreeSet::new();
    for seed in 0..64 {
        let (fs, path) = machine(seed, 4 * 512);
        let file = fs.open(&path, OpenMode::ReadWrite).unwrap();
        file.write_all_at(&[2; 3 * 512], 512).unwrap();
        crash_and_restart(&fs);
        let after = contents(&fs, &path);
        assert!(after[..512].iter().all(|byte| *byte == 1), "the synced part was not written to");
        for sector in after.chunks(512) {
            assert!(sector.iter().all(|byte| byte == &sector[0]), "a sector is never torn");
        }
        seen.insert(after.chunks(512).map(|sector| sector[0]).collect::<Vec<_>>());
    }
    assert_eq!(seen.len(), 8, "all subsets of three sectors: {seen:?}");
}

#[test]
fn the_same_seed_gives_the_same_crash() {
    let run = |seed| {
        let (fs, path) = machine(seed, 0);
        let file = fs.open(&path, OpenMode::ReadWrite).unwrap();
        file.write_all_at(&[7; 40 * 512], 100).unwrap();
        crash_and_restart(&fs);
        contents(&fs, &path)
    };
    assert_eq!(run(3), run(3));
}

#[test]
fn names_survive_only_with_their_directory() {
    let (mut kept, mut lost, mut renamed) = (0, 0, 0);
    for seed in 0..64 {
        let (fs, path) = machine(seed, 1);
        let other = dir().join("other");
        let file = fs.open(&other, OpenMode::CreateNew).unwrap();
        file.write_all_at(&[9], 0).unwrap();
        file.sync().unwrap();
        crash_and_restart(&fs);
        assert!(fs.exists(&path), "a durable name stays");
        if !fs.exists(&other) {
            lost += 1;
            continue;
        }
        kept += 1;
        assert_eq!(contents(&fs, &other), [9], "contents were synced, whatever became of the name");
        fs.sync_dir(&dir()).unwrap();
        fs.rename(&other, &path).unwrap();
        crash_and_restart(&fs);
        let value = contents(&fs, &path);
        assert_eq!(fs.exists(&other), value == [1], "a rename survives whole or not at all");
        renamed += usize::from(value == [9]);
    }
    assert!(kept > 0 && lost > 0 && renamed > 0 && renamed < kept, "{kept} {lost} {renamed}");
}

#[test]
fn a_lost_directory_takes_its_files_along() {
    let lost = (0..32).any(|seed| {
        let fs = SimFs::new(seed);
        fs.create_dir_all(&dir()).unwrap();
        fs.open(&dir().join("file"), OpenMode::Create).unwrap();
        fs.sync_dir(&dir()).unwrap();
        crash_and_restart(&fs);
        assert!(fs.exists(&dir()) || !fs.exists(&dir().join("file")));
        !fs.exists(&dir())
    });
    assert!(lost, "the directory's own name was never synced");
}

#[test]
fn a_crash_at_an_operation_fails_all_that_follow_and_kills_handles() {
    let (fs, path) = machine(5, 1);
    let file = fs.open(&path, OpenMode::ReadWrite).unwrap();
    let lock = fs.lock_dir(&dir()).unwrap();
    assert!(fs.lock_dir(&dir()).is_err(), "the directory is taken");
    fs.crash_at(fs.operations() + 2);
    file.write_all_at(&[4], 0).unwrap();
    assert!(file.sync().is_err(), "this is the operation that the crash falls into");
    assert!(fs.is_crashed() && fs.open(&path, OpenMode::Read).is_err());
    fs.restart();
    assert!(file.len().is_err(), "handles do not outlive the machine");
    let again = fs.lock_dir(&dir()).unwrap();
    drop(lock);
    assert!(fs.lock_dir(&dir()).is_err(), "an old lock frees nothing");
    drop(again);
    assert!(fs.lock_dir(&dir()).is_ok());
}

#[test]
fn faults_hit_one_operation_and_leave_no_trace() {
    let (fs, path) = machine(5, 1);
    let file = fs.open(&path, OpenMode::ReadWrite).unwrap();
    fs.fail_at(fs.operations() + 1);
    assert!(file.write_all_at(&[4], 0).is_err());
    assert_eq!(contents(&fs, &path), [1]);
    file.write_all_at(&[4], 0).unwrap();
    fs.flip_bit(&path, 1).unwrap();
    assert_eq!(contents(&fs, &path), [6]);
}

#[test]
fn the_fate_of_a_flipped_bit_is_known() {
    let fate = |then: &dyn Fn(&SimFs, &Path)| {
        let (fs, path) = machine(5, 8);
        fs.flip_bit(&path, 8 * 3).unwrap();
        then(&fs, &path);
        let fate = fs.take_flipped_bits();
        assert!(fs.take_flipped_bits().is_empty());
        (path, fate)
    };
    let write = |fs: &SimFs, path: &Path, from| {
        fs.open(path, OpenMode::ReadWrite).unwrap().write_all_at(&[4; 2], from).unwrap();
    };
    let stays = |path: PathBuf, is_read| vec![FlippedBit::Stays { path, byte: 3, is_read }];
    let (path, unread) = fate(&|fs, path| fs.open(path, OpenMode::Read).map(drop).unwrap());
    assert_eq!(unread, stays(path, false));
    let (path, read) = fate(&|fs, path| drop(contents(fs, path)));
    assert_eq!(read, stays(path, true));
    let (path, elsewhere) = fate(&|fs, path| write(fs, path, 4));
    assert_eq!(elsewhere, stays(path, false));
    let (_, written) = fate(&|fs, path| write(fs, path, 2));
    let (_, cut) = fate(&|fs, path| {
        fs.open(path, OpenMode::ReadWrite).unwrap().set_len(3).unwrap();
    });
    let (_, removed) = fate(&|fs, path| fs.remove_file(path).unwrap());
    assert!([written, cut, removed].iter().all(|fate| *fate == [FlippedBit::Replaced]));
    let (path, renamed) = fate(&|fs, path| fs.rename(path, &dir().join("new")).unwrap());
    assert_eq!(renamed, stays(path.with_file_name("new"), false));
    let (path, twice) = fate(&|fs, path| fs.flip_bit(path, 8 * 3 + 1).unwrap());
    assert_eq!(twice, [stays(path.clone(), false), stays(path, false)].concat());
}

#[test]
fn a_flipped_bit_returns_if_a_crash_loses_the_write_over_it() {
    let mut kept = 0;
    for seed in 0..40 {
        let (fs, path) = machine(seed, 8);
        fs.flip_bit(&path, 8 * 3).unwrap();
        fs.open(&path, OpenMode::ReadWrite).unwrap().write_all_at(&[77; 2], 2).unwrap();
        fs.crash();
        fs.restart();
        let is_kept = contents(&fs, &path)[3] == 77;
        assert_eq!(fs.take_flipped_bits() == [FlippedBit::Replaced], is_kept, "seed {seed}");
        kept += u32::from(is_kept);
    }
    assert!((1..40).contains(&kept), "{kept} writes survived");
}

#[test]
fn a_flipped_bit_is_flipped_back_unless_a_write_replaced_it() {
    let (fs, path) = machine(9, 8);
    let before = contents(&fs, &path);
    fs.flip_bit(&path, 8 * 3).unwrap();
    fs.flip_bit(&path, 8 * 6 + 1).unwrap();
    fs.open(&path, OpenMode::ReadWrite).unwrap().write_all_at(&[77], 3).unwrap();
    fs.flip_back();
    let mut expected = before;
    expected[3] = 77;
    assert_eq!(contents(&fs, &path), expected);
    assert_eq!(fs.flipped_bits(), []);
}

#[test]
fn a_copy_has_what_is_durable_and_is_put_back_as_a_whole() {
    let (fs, path) = machine(9, 8);
    let before = contents(&fs, &path);
    let file = fs.open(&path, OpenMode::ReadWrite).unwrap();
    file.write_all_at(&[77], 3).unwrap();
    let copy = fs.copy();
    assert_eq!(copy.len_of(&path), Some(8));
    file.sync().unwrap();
    fs.open(&dir().join("new"), OpenMode::Create).unwrap();
    fs.sync_dir(&dir()).unwrap();
    assert_ne!(fs.copy(), copy);
    fs.restore_disk(&copy);
    assert!(file.len().is_err(), "a handle to a file that was there");
    assert_eq!(contents(&fs, &path), before);
    assert_eq!(fs.list(&dir()).unwrap(), std::slice::from_ref(&path));
    assert_eq!(fs.copy(), copy);
}

#[test]
fn a_sync_fails_once_and_makes_nothing_durable() {
    let (fs, path) = machine(9, 8);
    let before = fs.copy();
    let file = fs.open(&path, OpenMode::ReadWrite).unwrap();
    file.write_all_at(&[77], 3).unwrap();
    fs.fail_next_sync();
    assert!(file.sync().is_err());
    assert_eq!(fs.copy(), before);
    file.sync().unwrap();
    assert_ne!(fs.copy(), before);
}

#[test]
fn a_full_disk_refuses_growth_alone() {
    let (fs, path) = machine(5, 1000);
    fs.set_capacity(1000);
    let file = fs.open(&path, OpenMode::ReadWrite).unwrap();
    file.write_all_at(&[4; 1000], 0).unwrap();
    let refused = file.write_all_at(&[4], 1000).unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::StorageFull);
    fs.remove_file(&path).unwrap();
    assert!(fs.open(&dir().join("new"), OpenMode::Create).unwrap().set_len(1000).is_ok());
}

#[test]
fn opening_follows_the_mode() {
    let (fs, path) = machine(5, 1);
    assert!(fs.open(&path, OpenMode::CreateNew).is_err());
    assert!(fs.open(&dir().join("none"), OpenMode::ReadWrite).is_err());
    assert!(fs.open(Path::new("/none/file"), OpenMode::Create).is_err());
    let reader = fs.open(&path, OpenMode::Read).unwrap();
    assert!(reader.write_all_at(&[1], 0).is_err());
    assert_eq!(fs.list(&dir()).unwrap(), std::slice::from_ref(&path));
    fs.remove_dir_all(&dir()).unwrap();
    assert!(!fs.exists(&path) && !fs.exists(&dir()));
}
