//! Targets for bytes from a disk: logs, fragments, manifests, change logs, snapshots, and the files
//! of a process.
#![allow(clippy::disallowed_methods, reason = "samples are files of the repository")]

use std::path::Path;

use proto::env::{DirectoryIdentity, OpenMode, sim};
use proto::model::ids::{Generation, IndexId, LocalIndexId, SliceNo};
use proto::rpc::mutation::{KeyVersionsWriter, MutationKind};

use super::target::Target;
use super::{corpus, world};

/// The targets that read files from disk.
pub const TARGETS: &[Target] = &[
    Target::new("block", storage::fuzz::block, storage::fuzz::samples_of_blocks),
    Target::new("fragment", storage::fuzz::fragment, || golden(STORAGE, "frag")).with_share(0.5),
    Target::new("log", storage::fuzz::log, || golden(STORAGE, "log")).with_share(0.3),
    Target::new("log_record", storage::fuzz::log_record, || {
        storage::fuzz::samples_of_log_records(&[key_versions().into()])
    }),
    Target::new("manifest", storage::fuzz::manifest, || golden(STORAGE, "manifest")),
    Target::new("key_versions", storage::fuzz::key_versions, || vec![key_versions()]),
    Target::new("change_log", documents::fuzz::segment, || golden(DOCUMENTS, "log")),
    Target::new("change_group", documents::fuzz::group, change_groups),
    Target::new("change_index", documents::fuzz::side_file, || golden(DOCUMENTS, "index")),
    Target::new(
        "paired_file",
        documents::fuzz::paired_file,
        documents::fuzz::samples_of_paired_files,
    ),
    Target::new("kept_catalog", router::fuzz::stored_catalog, || {
        vec![router::fuzz::sample_of_stored_catalog(world::catalog())]
    }),
    Target::new("kept_users", sextant::auth::fuzz::users_file, || vec![world::users_file()]),
    Target::new("audit_facts", sextant::audit::fuzz::facts, || {
        vec![sextant::audit::fuzz::sample_of_facts(&world::catalog())]
    }),
    Target::new("state", coordinator::testing::fuzz::snapshot, world::states),
    Target::new("identity_file", identity_file, || vec![identity()])
        .with_words(&["role ", "node ", "cluster ", "secret ", "check ", "router", "-\n"]),
];

const STORAGE: &str = "indexer/storage/testdata";
const DOCUMENTS: &str = "projector/documents/testdata";

/// The golden files of a folder with an extension.
fn golden(folder: &str, extension: &str) -> Vec<Vec<u8>> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(folder);
    let fits = |path: &std::path::PathBuf| path.extension().is_some_and(|it| it == extension);
    let paths = corpus::files(&dir).into_iter().filter(fits);
    let files: Vec<_> = paths.map(|path| std::fs::read(path).expect("a golden file")).collect();
    assert!(!files.is_empty(), "no golden file of {folder} is named *.{extension}");
    files
}

/// Key-versions of some documents in two indexes.
pub fn key_versions() -> Vec<u8> {
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
    writer.finish().to_vec()
}

/// The groups of the golden change log: the payloads of its records.
fn change_groups() -> Vec<Vec<u8>> {
    let dir = Path::new("/log");
    let mut groups = Vec::new();
    for segment in golden(DOCUMENTS, "log") {
        let (env, _, _) = sim::world(0);
        let path = dir.join(format!("{:020}.log", 0));
        env.fs.create_dir_all(dir).expect("a directory");
        let file = env.fs.open(&path, OpenMode::Create).expect("a file");
        file.write_all_at(&segment, 0).expect("room");
        storage::log::scan_segment(&*env.fs, &path, &mut |record, payload| {
            if !record.mark && !payload.is_empty() {
                groups.push(documents::fuzz::group_with_checksums(payload));
            }
        })
        .expect("a golden file");
    }
    groups
}

fn identity_file(data: &[u8]) {
    let (env, _, _) = sim::world(0);
    let dir = Path::new("/node");
    let written = env.fs.create_dir_all(dir).and_then(|()| {
        let file = env.fs.open(&DirectoryIdentity::path(dir), OpenMode::Create)?;
        file.write_all_at(data, 0)
    });
    written.expect("a simulated disk");
    if let Ok(Some(read)) = DirectoryIdentity::read(&*env.fs, dir) {
        let _ = read.proof();
    }
}

fn identity() -> Vec<u8> {
    let body = "sextant identity 1\nrole indexer\nnode 7\ncluster -\nsecret 000102030405060708090a0b0c0d0e0f\n";
    format!("{body}check {:08x}\n", world::crc32c(body.as_bytes())).into_bytes()
}
