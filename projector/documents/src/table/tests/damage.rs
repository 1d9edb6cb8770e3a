//! Damage: one flipped bit anywhere in a fragment is an error that names the file, and never a wrong answer.

use proto::{Error, ErrorCode};

use super::model::Row;
use super::*;

/// A table with two fragments, and what it holds.
fn damaged_soon() -> (SimFs, TableManifest, Vec<Row>) {
    let fs = SimFs::new(1);
    let table = open(&fs, &TableManifest::new(BucketId(7))).unwrap();
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

/// Reads everything in every way. Each answer is right or an error.
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
            Err(error) => return [errors, vec![error]].concat(),
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
    fs.take_flipped();
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
