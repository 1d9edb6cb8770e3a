//! Tests of damage: one flipped bit anywhere in a fragment is an error that names the file, and
//! never a wrong answer.

use proto::{Error, ErrorCode};

use super::model::Row;
use super::*;

/// Returns a table with two fragments, and its documents.
fn damaged_soon() -> (SimFs, TableManifest, Vec<Row>) {
    let fs = SimFs::new(1);
    let table = open(&fs, &TableManifest::new(7)).unwrap();
    for n in 0..60u64 {
        let document = (n % 7 > 0).then(|| format!("{{\"n\":{n}}}"));
        put(&table, n + 1, &format!("d{:02}", n % 40), n + 1, document.as_deref());
        if n == 29 {
            flush(&table, &Retention::default());
        }
    }
    let manifest = flush(&table, &Retention::default());
    let rows = rest_of(&mut table.walk(None, None).unwrap());
    (fs, manifest, rows)
}

/// Reads the table in every way. Checks that each answer is right or an error, and returns the
/// errors.
fn read_all(table: &DocumentTable, rows: &[Row]) -> Vec<Error> {
    let mut errors = Vec::new();
    let ids = (0..40).map(|n| format!("d{n:02}"));
    for id in ids.chain(["nobody".to_owned()]) {
        let expected = rows.iter().find(|row| row.0 == id);
        match table.get(&id) {
            Err(error) => errors.push(error),
            Ok(found) => {
                let found = found.map(|found| (id.clone(), found.seqno.0, found.document.to_vec()));
                assert_eq!(found.as_ref(), expected);
            }
        }
        match table.contains(&id) {
            Err(error) => errors.push(error),
            Ok(found) => assert_eq!(found, expected.is_some()),
        }
    }
    let mut left = rows.iter();
    let mut walk = match table.walk(None, None) {
        Ok(walk) => walk,
        Err(error) => return [errors, vec![error]].concat(),
    };
    loop {
        match walk.next_chunk(100) {
            Err(error) => {
                assert_eq!(walk.next_chunk(1).unwrap_err().message, error.message);
                return [errors, vec![error]].concat();
            }
            Ok(chunk) if chunk.is_empty() => break,
            Ok(chunk) => chunk.iter().for_each(|row| {
                let row = (row.id.to_owned(), row.seqno.0, row.document.to_vec());
                assert_eq!(Some(&row), left.next());
            }),
        }
    }
    assert_eq!(left.next(), None);
    errors
}

#[test]
fn one_flipped_bit_anywhere_is_an_error_that_names_the_file() {
    let (fs, manifest, rows) = damaged_soon();
    let system: Arc<dyn FileSystem> = Arc::new(fs.clone());
    assert!(read_all(&open(&fs, &manifest).unwrap(), &rows).is_empty());
    assert!(verify(&system, &dir(), &manifest).is_empty());
    for (path, entry) in files(&fs).iter().zip(manifest.fragments()) {
        for byte in 0..entry.bytes {
            let bit = 8 * byte + byte % 8;
            fs.flip_bit(path, bit).unwrap();
            let errors = match open(&fs, &manifest) {
                Ok(table) => read_all(&table, &rows),
                Err(error) => vec![error],
            };
            assert!(!errors.is_empty(), "{} byte {byte}: nobody saw the damage", path.display());
            for error in errors {
                let is_version = error.code == ErrorCode::Version;
                assert!(error.code == ErrorCode::Corrupt || is_version, "{error:?}");
                assert!(error.message.contains(&path.display().to_string()), "{error:?}");
            }
            let findings = verify(&system, &dir(), &manifest);
            assert!(!findings.is_empty() && findings.iter().all(|found| found.path == *path));
            fs.flip_bit(path, bit).unwrap();
        }
    }
    fs.take_flipped_bits();
    assert!(read_all(&open(&fs, &manifest).unwrap(), &rows).is_empty());
}

#[test]
fn a_file_that_is_cut_short_or_missing_is_an_error_at_open() {
    let (fs, manifest, _) = damaged_soon();
    let system: Arc<dyn FileSystem> = Arc::new(fs.clone());
    let path = files(&fs).remove(1);
    let bytes = manifest.fragments()[1].bytes;
    let file = fs.open(&path, proto::env::OpenMode::ReadWrite).unwrap();
    for len in [bytes - 1, bytes / 2, 0] {
        file.set_len(len).unwrap();
        let error = open(&fs, &manifest).unwrap_err();
        assert_eq!(error.code, ErrorCode::Corrupt, "{error:?}");
        assert!(error.message.contains(&path.display().to_string()), "{error:?}");
        assert_eq!(verify(&system, &dir(), &manifest).len(), 1);
    }
    fs.remove_file(&path).unwrap();
    let error = open(&fs, &manifest).unwrap_err();
    assert!(error.message.contains(&path.display().to_string()), "{error:?}");
    assert_eq!(verify(&system, &dir(), &manifest).len(), 1);
    assert_eq!(files(&fs).len(), 1, "the other file is not removed");
}

#[test]
fn a_merge_of_a_damaged_fragment_is_an_error_that_changes_nothing() {
    let (fs, manifest, rows) = damaged_soon();
    let table = open(&fs, &manifest).unwrap();
    let paths = files(&fs);
    // In the middle of the first block.
    fs.flip_bit(&paths[0], 8 * 60).unwrap();
    for _ in 0..2 {
        let error = table.prepare_full_merge(Retention::default).unwrap_err();
        assert_eq!(error.code, ErrorCode::Corrupt, "{error:?}");
        assert!(error.message.contains(&paths[0].display().to_string()), "{error:?}");
        assert_eq!(files(&fs), paths);
    }
    fs.flip_bit(&paths[0], 8 * 60).unwrap();
    fs.take_flipped_bits();
    assert_eq!(merge(&table, &Retention::default()).fragments().len(), 1);
    assert!(read_all(&table, &rows).is_empty());
}

/// Prepares a change repeatedly, each time with a failure of a later file operation, until none
/// fails. Returns the number of operations, and the manifest.
fn through_failures<'a>(
    fs: &SimFs,
    prepare: impl Fn() -> proto::Result<Option<TableChange<'a>>>,
) -> (u64, TableManifest) {
    for failures in 0.. {
        let (before, struck) = (files(fs), fs.occurred_faults().failed);
        fs.fail_at(fs.operations() + 1 + failures);
        match prepare() {
            Ok(change) => {
                fs.disarm_faults();
                return (failures, installed(change.expect("a change")));
            }
            Err(_) => {
                assert_eq!(fs.occurred_faults().failed, struck + 1);
                assert_eq!(files(fs), before, "a failed change leaves no file");
            }
        }
    }
    unreachable!("some change succeeds")
}

#[test]
fn a_change_that_fails_at_any_operation_is_prepared_again() {
    let (fs, manifest, mut rows) = damaged_soon();
    let table = open(&fs, &manifest).unwrap();
    put(&table, 100, "d05", 100, Some("{}"));
    rows.retain(|row| row.0 != "d05");
    rows.push(("d05".to_owned(), 100, b"{}".to_vec()));
    rows.sort();
    let (failures, _) = through_failures(&fs, || table.prepare_flush(Retention::default));
    assert!(failures >= 4, "create, write, sync, sync of the names: {failures}");
    assert!(read_all(&table, &rows).is_empty());
    let merge = || table.prepare_full_merge(Retention::default);
    let (failures, manifest) = through_failures(&fs, merge);
    assert!(failures >= 5, "a read comes before: {failures}");
    assert_eq!(manifest.fragments().len(), 1);
    assert!(read_all(&table, &rows).is_empty());
    assert!(read_all(&open(&fs, &manifest).unwrap(), &rows).is_empty());
}

#[test]
fn the_file_of_a_change_whose_manifest_was_not_written_goes_with_the_next_manifest() {
    let (fs, manifest, rows) = damaged_soon();
    let table = open(&fs, &manifest).unwrap();
    let before = files(&fs).len();
    for failures in 1..3 {
        let change = table.prepare_full_merge(Retention::default).unwrap().expect("a merge");
        let refused = change.install(|_| Err(proto::Error::internal("the disk is full")));
        assert!(refused.is_err());
        assert_eq!(files(&fs).len(), before + failures, "a manifest on disk may name the file");
    }
    assert_eq!(merge(&table, &Retention::default()).fragments().len(), 1);
    assert_eq!(files(&fs).len(), 1, "the merged fragment");
    assert!(read_all(&table, &rows).is_empty());
}
