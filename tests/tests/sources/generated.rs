//! The generated code of the gRPC services matches their `.proto` files. `UPDATE=1` generates it again.
#![allow(clippy::disallowed_methods, reason = "a test that reads and writes source files")]

use std::path::{Path, PathBuf};

use prost::Message;

/// The definitions for users and for other processes, each with its file of descriptors: a port describes only the
/// services that it has.
const FILES: [(&str, &str); 2] = [
    ("sextant/v1/sextant.proto", "descriptors.bin"),
    ("sextant/v1/peer.proto", "peer_descriptors.bin"),
];
const CODE: &str = "sextant.v1.rs";

fn proto() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace").join("proto")
}

/// Compiles the `.proto` files into a directory.
fn generate(out: &Path) {
    let compile = |files: &[&str]| {
        let descriptors = protox::compile(files.iter().map(|file| proto().join(file)), [proto()]);
        descriptors.expect("the .proto files are valid")
    };
    for (file, descriptors) in FILES {
        let bytes = compile(&[file]).encode_to_vec();
        std::fs::write(out.join(descriptors), bytes).expect("the file is written");
    }
    let descriptors = compile(&FILES.map(|(file, _)| file));
    let build = tonic_prost_build::configure().bytes(".").out_dir(out);
    build.compile_fds(descriptors).expect("the code is generated");
}

#[test]
fn the_generated_code_matches_the_proto_files() {
    let dir = tempfile::tempdir().expect("a directory");
    generate(dir.path());
    for name in FILES.map(|(_, descriptors)| descriptors).into_iter().chain([CODE]) {
        let kept = proto().join("generated").join(name);
        let fresh = std::fs::read(dir.path().join(name)).expect("it was generated");
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&kept, fresh).expect("the file is written");
        } else {
            let same = std::fs::read(&kept).is_ok_and(|kept| kept == fresh);
            assert!(
                same,
                "{name} is old: run `UPDATE=1 cargo test -p tests --test sources generated::`"
            );
        }
    }
}
