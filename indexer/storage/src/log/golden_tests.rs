//! Tests that the format does not change by accident, and that damage of any kind is reported.

use std::path::{Path, PathBuf};

use proptest::prelude::*;
use proto::env::real::RealFs;
use proto::env::{Env, FileSystem, OpenMode, sim};
use proto::{ErrorCode, Result};

use super::segment::segment_path;
use super::*;

/// The second segment of a log: three records, a mark after each.
const GOLDEN: &[u8] = include_bytes!("../../testdata/00000000000000000148.log");
const GOLDEN_BASE: Lsn = 148;

fn payloads() -> [Vec<u8>; 3] {
    [b"alpha".to_vec(), Vec::new(), (0..200).collect()]
}

fn dir() -> PathBuf {
    PathBuf::from("/log")
}

/// Returns a machine with this segment as its only one.
fn world_with(segment: &[u8]) -> (Env, sim::SimFs) {
    let (env, _, fs) = sim::world(1);
    fs.create_dir_all(&dir()).unwrap();
    write_file(&fs, &segment_path(&dir(), GOLDEN_BASE), segment);
    fs.sync_dir(&dir()).unwrap();
    (env, fs)
}

fn write_file(fs: &dyn FileSystem, path: &Path, bytes: &[u8]) {
    let file = fs.open(path, OpenMode::Create).unwrap();
    file.set_len(0).unwrap();
    file.write_all_at(bytes, 0).unwrap();
    file.sync().unwrap();
}

fn replay(env: &Env) -> Result<Vec<Vec<u8>>> {
    let mut replayed = Vec::new();
    CommitLog::open(env, &dir(), LogOptions::default(), &mut |_, payload| {
        replayed.push(payload.to_vec());
        Ok(())
    })?;
    Ok(replayed)
}

/// Writes the log whose second segment is the golden file.
async fn write_golden() -> Vec<u8> {
    let (env, _, fs) = sim::world(1);
    let options = LogOptions { segment_bytes: 120, ..LogOptions::default() };
    let log = CommitLog::open(&env, &dir(), options, &mut |_, _| Ok(())).unwrap();
    for payload in std::iter::once(vec![0; 100]).chain(payloads()) {
        let lsn = log.append(&payload).await.unwrap();
        log.wait_durable(lsn).await.unwrap();
        tokio::task::yield_now().await;
    }
    let file = fs.open(&segment_path(&dir(), GOLDEN_BASE), OpenMode::Read).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

#[tokio::test]
async fn the_format_is_that_of_the_golden_file() {
    let written = write_golden().await;
    // Only for a new version of the format.
    if std::env::var_os("UPDATE").is_some() {
        let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("testdata");
        write_file(&RealFs, &segment_path(&dir, GOLDEN_BASE), &written);
        return;
    }
    assert_eq!(written, GOLDEN);
    let (env, _) = world_with(GOLDEN);
    assert_eq!(replay(&env).unwrap(), payloads());
}

#[tokio::test]
async fn an_unknown_version_is_distinguished_from_damage() {
    let mut bytes = GOLDEN.to_vec();
    for version in [0, 2] {
        bytes[4] = version;
        let crc = crc32c::crc32c(&bytes[..28]);
        bytes[28..32].copy_from_slice(&crc.to_le_bytes());
        let error = replay(&world_with(&bytes).0).unwrap_err();
        assert_eq!(error.code, ErrorCode::Version);
        assert!(error.message.contains(&format!("version {version}")), "{error}");
        assert!(error.hint.is_some(), "{error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn damaged_bytes_yield_a_beginning_of_the_records_or_an_error(
        at in any::<prop::sample::Index>(),
        removed in 0usize..300,
        inserted in prop::collection::vec(any::<u8>(), 0..40),
        copied in any::<prop::sample::Index>(),
    ) {
        let mut bytes = GOLDEN.to_vec();
        let at = at.index(bytes.len());
        // Bytes from elsewhere in the file are the most likely to be mistaken for valid ones.
        let from = copied.index(bytes.len());
        let copy = GOLDEN[from..bytes.len().min(from + inserted.len() * 4)].to_vec();
        let end = bytes.len().min(at + removed);
        bytes.splice(at..end, inserted.into_iter().chain(copy));
        let (env, _) = world_with(&bytes);
        let described = describe(&env, &segment_path(&dir(), GOLDEN_BASE), &mut |_| {});
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let replayed = runtime.block_on(async { replay(&env) });
        if let Ok(replayed) = replayed {
            prop_assert!(payloads().starts_with(&replayed), "{replayed:?}");
            let whole = described.map_or(0, |sum| sum.records);
            prop_assert!(whole >= replayed.len() as u64);
        }
    }
}
