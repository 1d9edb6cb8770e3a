//! Compiles the gRPC services with `protox`, so that no `protoc` has to be installed.
#![allow(clippy::disallowed_methods, reason = "a build script has no seams")]

use std::path::PathBuf;

use prost::Message;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let files = ["sextant/v1/sextant.proto", "sextant/v1/peer.proto"];
    for file in files {
        println!("cargo::rerun-if-changed={file}");
    }
    let descriptors = protox::compile(files, ["."])?;
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    std::fs::write(out.join("descriptors.bin"), descriptors.encode_to_vec())?;
    tonic_prost_build::configure().bytes(".").compile_fds(descriptors)?;
    Ok(())
}
