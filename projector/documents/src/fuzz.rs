//! Entry points for fuzzers of a projector's files. Each must decode or refuse arbitrary bytes,
//! without a panic, and without much more memory than the bytes take.

use std::path::Path;

use proto::Result;
use proto::env::{Env, OpenMode, sim};

pub use crate::change_log::fuzz::{group, group_with_checksums, side_file};
pub use crate::store::fuzz::samples_of_paired_files;
use crate::{change_log, store};

const DIR: &str = "/fuzz";

/// Reads a segment of a change log: first unchanged, then with its checksums corrected.
pub fn segment(data: &[u8]) {
    read_segment(data);
    let mut mended = data.to_vec();
    storage::fuzz::mend_log(&mut mended);
    read_segment(&mended);
}

fn read_segment(data: &[u8]) {
    let base = data.get(8..16).and_then(|base| base.try_into().ok()).map_or(0, u64::from_le_bytes);
    let name = format!("{base:020}.log");
    let Ok(env) = with_file(&name, data) else { return };
    let _ = change_log::describe(&*env.fs, &Path::new(DIR).join(name), &mut |_| ());
}

/// Reads the manifest of a source or the checkpoint of a bucket: first unchanged, then with its
/// length and its checksum corrected.
pub fn paired_file(data: &[u8]) {
    read_paired_file(data);
    let mut mended = data.to_vec();
    store::fuzz::correct_paired_file(&mut mended);
    read_paired_file(&mended);
}

fn read_paired_file(data: &[u8]) {
    let Ok(env) = with_file("paired", data) else { return };
    let _ = store::describe(&*env.fs, &Path::new(DIR).join("paired"));
}

/// Creates a simulated disk that has one file.
fn with_file(name: &str, data: &[u8]) -> Result<Env> {
    let (env, _, _) = sim::world(0);
    env.fs.create_dir_all(Path::new(DIR))?;
    let file = env.fs.open(&Path::new(DIR).join(name), OpenMode::Create)?;
    file.write_all_at(data, 0)?;
    Ok(env)
}
