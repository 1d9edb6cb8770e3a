//! Tests that the format does not change: fragments of versions 1 and 2 are read, and are written
//! again to the same bytes. Every damaged bit is found.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use proto::ErrorCode;
use proto::env::real::RealFs;
use proto::env::{Env, OpenMode, sim};

use super::tests::{Row, disk, write};
use super::*;
use crate::rows::columns::Columns;

const DIR: &str = "data";

/// The golden files: name, options, rows.
fn golden() -> Vec<(&'static str, FragmentOptions, Vec<Row>)> {
    let forward = Columns::ENTRY.union(Columns::include(0)).0;
    let plain = FragmentOptions { columns: forward, ..FragmentOptions::default() };
    let back =
        FragmentOptions { filter_rows: Some(40), columns: Columns::BACK.0, ..Default::default() };
    let lz4 = FragmentOptions { compression: Compression::Lz4, ..plain };
    let zstd = FragmentOptions { compression: Compression::Zstd, ..plain };
    let stamped = FragmentOptions { is_stamped: true, ..back };
    vec![
        ("forward", plain, forward_rows(20, "")),
        ("back", back, back_rows()),
        ("lz4", lz4, forward_rows(60, "and the same again and again")),
        ("zstd", zstd, forward_rows(60, "and the same again and again")),
        ("stamped", stamped, back_rows()),
    ]
}

/// Returns rows of two slices; each third entry has an older version, each fifth is deleted in the
/// newest epoch.
fn forward_rows(count: u64, value: &str) -> Vec<Row> {
    let mut rows = Vec::new();
    for n in 0..count {
        let slice = (2 * n / count) as u16 + 1;
        let (key, id) = ((n * 77).to_be_bytes().to_vec(), format!("id-{n:03}").into_bytes());
        let value = format!("{n} {value}").into_bytes();
        let gone = n % 5 == 0;
        let shown = if gone { Vec::new() } else { value.clone() };
        rows.push((slice, key.clone(), id.clone(), shown, 300 + n % 4, gone));
        if n % 3 == 0 {
            rows.push((slice, key, id, value, 17, false));
        }
    }
    rows
}

fn back_rows() -> Vec<Row> {
    let row = |n: u64| -> Row {
        let state = [&[16][..], &(n * 77).to_be_bytes()].concat();
        (1, format!("id-{n:03}").into_bytes(), Vec::new(), state, 9, false)
    };
    (0..40).map(row).collect()
}

fn golden_path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("testdata/{name}.frag"))
}

fn file_bytes(fs: &dyn proto::env::FileSystem, path: &Path) -> Vec<u8> {
    let file = fs.open(path, OpenMode::Read).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

fn written(options: &FragmentOptions, rows: &[Row]) -> Vec<u8> {
    let fs = disk(1, Path::new(DIR));
    write(&fs, 12, &Arc::new(BlockCache::new(0)), options, rows).unwrap();
    file_bytes(&fs, &crate::layout::fragment_path(Path::new(DIR), 12))
}

#[test]
fn golden_fragments_are_read_and_written_again_to_the_same_bytes() {
    for (name, options, rows) in golden() {
        let path = golden_path(name);
        if std::env::var_os("UPDATE").is_some() {
            write_golden(&path, &written(&options, &rows));
        }
        assert!(file_bytes(&RealFs, &path) == written(&options, &rows), "{name} has changed");
        let mut blocks = Vec::new();
        let info = describe(&Env::real(), &path, &mut |block| blocks.push(block.clone())).unwrap();
        assert_eq!(info.findings, Vec::<String>::new(), "{name}");
        assert_eq!((info.id, info.stats.rows), (12, rows.len() as u64));
        assert_eq!(info.filter_bytes > 0, options.filter_rows.is_some());
        let tombstones = rows.iter().filter(|row| row.5).count() as u64;
        assert_eq!(info.stats.tombstones, tombstones);
        assert!(blocks.iter().all(|block| block.compression == options.compression), "{name}");
    }
}

/// Replaces a golden file; only for a new version of the format.
fn write_golden(path: &Path, bytes: &[u8]) {
    let file = proto::env::FileSystem::open(&RealFs, path, OpenMode::Create).unwrap();
    file.set_len(0).and_then(|()| file.write_all_at(bytes, 0)).unwrap();
}

/// The damage found in a file: an error that names the file, or findings that name a block.
fn damage(env: &Env, path: &Path) -> Vec<String> {
    match describe(env, path, &mut |_| ()) {
        Ok(info) => info.findings,
        Err(error) => {
            assert!(matches!(error.code, ErrorCode::Corrupt | ErrorCode::Version), "{error:?}");
            assert!(error.message.contains(path.to_str().unwrap()), "{error}");
            vec![error.message]
        }
    }
}

#[test]
fn every_flipped_bit_is_found_and_named() {
    for (name, options, rows) in golden() {
        let (env, _, fs) = sim::world(1);
        let path = Path::new("damaged.frag");
        let bytes = written(&options, &rows);
        env.fs.open(path, OpenMode::Create).unwrap().write_all_at(&bytes, 0).unwrap();
        for bit in 0..bytes.len() as u64 * 8 {
            fs.flip_bit(path, bit).unwrap();
            let found = damage(&env, path);
            let is_named =
                |text: &String| text.contains("damaged.frag") || text.contains("at offset");
            assert!(!found.is_empty() && found.iter().all(is_named), "{name}, {bit}: {found:?}");
            fs.flip_bit(path, bit).unwrap();
        }
        assert_eq!(damage(&env, path), Vec::<String>::new());
    }
}

#[test]
fn a_fragment_that_is_cut_or_has_more_at_its_end_is_refused() {
    let (_, options, rows) = golden().swap_remove(1);
    let bytes = written(&options, &rows);
    let (env, _, _) = sim::world(1);
    let path = Path::new("damaged.frag");
    let file = env.fs.open(path, OpenMode::Create).unwrap();
    file.write_all_at(&bytes, 0).unwrap();
    for len in (0..bytes.len() as u64).rev() {
        file.set_len(len).unwrap();
        assert_eq!(damage(&env, path).len(), 1, "{len} bytes");
    }
    file.write_all_at(&bytes, 0).unwrap();
    file.set_len(bytes.len() as u64 + 1).unwrap();
    assert_eq!(damage(&env, path).len(), 1);
}

#[test]
fn an_unknown_version_is_distinguished_from_damage() {
    let (_, options, rows) = golden().swap_remove(0);
    let mut bytes = written(&options, &rows);
    bytes[4] = 3;
    let crc = crc32c::crc32c(&bytes[..16]);
    bytes[16..20].copy_from_slice(&crc.to_le_bytes());
    let (env, _, _) = sim::world(1);
    let path = Path::new("newer.frag");
    env.fs.open(path, OpenMode::Create).unwrap().write_all_at(&bytes, 0).unwrap();
    let error = describe(&env, path, &mut |_| ()).unwrap_err();
    assert_eq!(error.code, ErrorCode::Version);
    assert!(error.message.contains("newer.frag") && error.message.contains('3'), "{error}");
}

#[test]
fn rows_that_contradict_their_statistics_are_found() {
    let (_, options, rows) = golden().swap_remove(0);
    let good = written(&options, &rows);
    let mut found = std::collections::BTreeSet::new();
    // Bytes are changed and checksums corrected: only the comparison with the rows can find that.
    for at in HEADER..good.len() - TRAILER {
        let mut bytes = good.clone();
        bytes[at] ^= 1;
        if mend(&mut bytes).is_none() {
            continue;
        }
        let (env, _, _) = sim::world(1);
        let path = Path::new("contradiction.frag");
        env.fs.open(path, OpenMode::Create).unwrap().write_all_at(&bytes, 0).unwrap();
        for text in damage(&env, path) {
            for kind in ["statistics say", "contradict the sparse index", "first entry", "behind"] {
                if text.contains(kind) {
                    found.insert(kind);
                }
            }
        }
    }
    assert_eq!(found.len(), 4, "{found:?}");
}

const HEADER: usize = 20;
const TRAILER: usize = 32;
