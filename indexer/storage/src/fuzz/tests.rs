//! The fuzzers' entry points hold over thousands of seeded mutations of valid input.

use std::path::PathBuf;

use proto::env::Random;
use proto::env::real::{RealFs, SeededRandom};
use proto::model::ids::{Epoch, Generation, IndexId, LocalIndexId, SliceNo};
use proto::rpc::mutation::{KeyVersionsWriter, MutationKind};

use super::*;
use crate::rows::block_builder::BlockBuilder;
use crate::rows::row::RowVersion;

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

/// Changes some bytes, cuts, or repeats a part, like a fuzzer.
fn mutate(random: &SeededRandom, good: &[u8]) -> Vec<u8> {
    let below = |bound: usize| (random.next_u64() % bound.max(1) as u64) as usize;
    let mut bytes = good.to_vec();
    for _ in 0..=below(4) {
        let at = below(bytes.len());
        match below(6) {
            0 => bytes.truncate(at),
            1 => {
                let end = at + below(bytes.len() - at);
                let part = bytes[at..end].to_vec();
                let to = below(bytes.len());
                bytes.splice(to..to, part);
            }
            2 => {
                // Values that lengths and numbers tolerate least.
                let word = [0, 1, u64::MAX, u64::from(u32::MAX), 1 << 63, 0x8080_8080][below(6)];
                let len = [1, 2, 4, 8][below(4)].min(bytes.len() - at);
                bytes[at..at + len].copy_from_slice(&word.to_le_bytes()[..len]);
            }
            _ if bytes.is_empty() => {}
            _ => bytes[at] ^= 1 << below(8),
        }
    }
    bytes
}

fn run(seed: u64, times: usize, good: &[Vec<u8>], target: fn(&[u8])) {
    let random = SeededRandom::new(seed);
    target(&[]);
    for input in good {
        target(input);
        (0..times).for_each(|_| target(&mutate(&random, input)));
    }
}

#[test]
fn mutated_blocks_are_read_or_refused() {
    let block = |rows: u64, wide: bool| {
        let mut builder = BlockBuilder::default();
        for n in 0..rows {
            let (slice, epoch, tombstone) = (SliceNo(0), Epoch(n % 3 * 999), n % 9 == 4);
            let id = "x".repeat(if wide { n as usize } else { 4 }).into_bytes();
            let key = n.to_be_bytes();
            builder.push(&RowVersion { slice, key: &key, id: &id, value: b"v", epoch, tombstone });
        }
        builder.finish()
    };
    run(1, 3000, &[block(1, false), block(40, false), block(40, true)], super::block);
}

#[test]
fn mutated_fragments_are_read_or_refused() {
    run(2, 2000, &golden("frag"), super::fragment);
}

#[test]
fn mutated_log_segments_are_read_or_refused() {
    run(3, 1500, &golden("log"), super::log);
}

#[test]
fn mutated_manifests_are_read_or_refused() {
    run(4, 2000, &golden("manifest"), super::manifest);
}

#[test]
fn mutated_key_versions_are_read_or_refused() {
    let mut writer = KeyVersionsWriter::default();
    for n in 1..20u64 {
        writer.mutation(n, MutationKind::Upsert, &format!("document-{n}"), 2);
        for index in 0..2 {
            let index = LocalIndexId { index: IndexId(index), generation: Generation(1) };
            writer.index(index, 2);
            writer.entry(SliceNo(0), &n.to_be_bytes(), b"");
            writer.entry(SliceNo(1), b"a key", b"included");
        }
    }
    run(5, 5000, &[writer.finish().to_vec()], super::key_versions);
}

/// Otherwise all corrected mutations would be refused, and the fuzzing would prove nothing.
#[test]
fn checksums_of_good_files_are_right_already() {
    type Mend = fn(&mut [u8]);
    let mend: [(&str, Mend); 3] = [
        ("frag", |bytes| assert!(fragment::mend(bytes).is_some())),
        ("log", super::mend::log),
        ("manifest", super::mend::manifest),
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
fn a_segment_that_says_it_begins_at_the_largest_place_is_refused() {
    for mut segment in golden("log") {
        segment[8..16].fill(0xff);
        super::log(&segment);
        let name = format!("{:020}.log", u64::MAX);
        super::mend::log(&mut segment);
        let env = with_file(&name, &segment).unwrap();
        let error = log::describe(&env, &Path::new(DIR).join(name), &mut |_| ()).unwrap_err();
        assert_eq!(error.code, proto::ErrorCode::Corrupt);
    }
}
