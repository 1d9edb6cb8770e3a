//! Tests that the fuzzers' corrections are right, and that bugs found by fuzzers do not return.

use std::path::PathBuf;

use proto::env::real::RealFs;

use super::*;

/// The golden files with an extension.
fn golden(extension: &str) -> Vec<Vec<u8>> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata");
    let paths = proto::env::FileSystem::list(&RealFs, &dir).unwrap();
    let read = |path: PathBuf| {
        let file = proto::env::FileSystem::open(&RealFs, &path, OpenMode::Read).unwrap();
        let mut bytes = vec![0; file.len().unwrap() as usize];
        file.read_exact_at(&mut bytes, 0).unwrap();
        bytes
    };
    let fits = |path: &PathBuf| path.extension().is_some_and(|found| found == extension);
    let files: Vec<_> = paths.into_iter().filter(fits).map(read).collect();
    assert!(!files.is_empty(), "no golden file is named *.{extension}");
    files
}

/// Wrong corrections would let the decoders refuse all mutations, and the fuzzing would test
/// nothing.
#[test]
fn checksums_of_good_files_are_right_already() {
    type Mend = fn(&mut [u8]);
    let mend: [(&str, Mend); 3] = [
        ("frag", |bytes| assert!(fragment::mend(bytes).is_some())),
        ("log", super::mend::mend_log),
        ("manifest", super::mend::mend_manifest),
    ];
    for (extension, mend) in mend {
        for good in golden(extension) {
            let mut mended = good.clone();
            mend(&mut mended);
            assert!(mended == good, "*.{extension}");
        }
    }
}

#[test]
fn a_segment_at_the_last_lsn_fails() {
    for mut segment in golden("log") {
        segment[8..16].fill(0xff);
        super::log(&segment);
        let name = format!("{:020}.log", u64::MAX);
        super::mend::mend_log(&mut segment);
        let env = with_file(&name, &segment).unwrap();
        let error = log::describe(&env, &Path::new(DIR).join(name), &mut |_| ()).unwrap_err();
        assert_eq!(error.code, proto::ErrorCode::Corrupt);
    }
}
