//! Faults of the disks of simulated hosts.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use proto::env::sim::{FlippedBit, SimClock, SimFs};
use proto::env::{FileSystem, OpenMode};
use proto::model::node::Role;
use storage::verify::{Remark, Report};

use super::hosts::{DATA, Host, env};
use crate::sim::Shared;

/// All files below a directory.
pub fn files(fs: &dyn FileSystem, dir: &Path) -> Vec<PathBuf> {
    match fs.list(dir) {
        Ok(listed) => listed.iter().flat_map(|path| files(fs, path)).collect(),
        Err(_) => vec![dir.to_owned()],
    }
}

/// The number of bits that are tried until the next start would detect one.
const TRIED_BITS: usize = 40;

/// Flips a bit in a file of a host; false if the host has no file, or if the damage could not be
/// told apart from the effect of a crash.
pub fn flip(host: &Host, random: &mut fastrand::Rng) -> bool {
    let Some((file, bit)) = choose_bit(host, &host.fs, random) else { return false };
    let is_projector = host.info.role == Role::Projector;
    (!is_projector || is_vouched_for(host, &file, bit)) && host.fs.flip_bit(&file, bit).is_ok()
}

/// Flips a bit in a projector's file such that the projector's next start finds a bucket damaged.
/// Most damages are only found when the bit is read.
pub fn flip_found(host: &Host, random: &mut fastrand::Rng) -> bool {
    // Looks at the files are operations, which may be those of an armed fault.
    let aside = SimFs::new(0);
    aside.restore_disk(&host.fs.copy());
    (0..TRIED_BITS).any(|_| {
        let chosen = choose_bit(host, &aside, random);
        chosen.is_some_and(|(file, bit)| {
            let damaged = host.damaged_buckets(Some((&file, bit)));
            !damaged.is_empty() && host.fs.flip_bit(&file, bit).is_ok()
        })
    })
}

/// Chooses a bit of a file on a host's disk or on a copy of the disk.
fn choose_bit(host: &Host, fs: &SimFs, random: &mut fastrand::Rng) -> Option<(PathBuf, u64)> {
    let mut files = files(fs, Path::new(DATA));
    let is_projector = host.info.role == Role::Projector;
    files.retain(|file| match is_projector {
        // The file with the layout's number has no checksum.
        true => !file.ends_with("VERSION"),
        false => file.components().count() > 3,
    });
    if files.is_empty() {
        return None;
    }
    let file = files.swap_remove(random.usize(..files.len()));
    let bytes = fs.open(&file, OpenMode::Read).and_then(|file| file.len()).unwrap_or(0);
    (bytes > 0).then(|| (file, random.u64(..bytes * 8)))
}

/// True if a bit of a projector's file is durable, and damage to it is not taken for a torn tail.
/// The last groups of a change log may not be covered by a later check yet, so that a crash would
/// lose them with the damage.
fn is_vouched_for(host: &Host, file: &Path, bit: u64) -> bool {
    let copy = host.fs.copy();
    let aside = SimFs::new(0);
    aside.restore_disk(&copy);
    let is_durable = copy.len_of(file).is_some_and(|bytes| bit / 8 < bytes);
    is_durable && aside.flip_bit(file, bit).is_ok() && {
        let is_segment = file.extension().is_some_and(|extension| extension == "log");
        let notes = verify(host.info.role, &aside).notes;
        !is_segment || !notes.iter().any(|note| note.path == *file)
    }
}

/// Checks the directory of a process, and returns the report.
pub fn verify(role: Role, fs: &SimFs) -> Report {
    let env = env(0, Arc::new(SimClock::new(0)), fs.clone());
    match role {
        Role::Projector => projector::verify_source(&env, Path::new(DATA)),
        _ => storage::verify::verify(&env, Path::new(DATA)),
    }
}

/// Judges the flipped bits of a stopped host. Each must have been overwritten, or a check of the
/// directory must name its file: as damaged, as a torn tail, or as a file that the next start
/// removes. Scans judge the effects of a bit that was read.
pub fn judge_flipped(host: &Host, summary: &Shared) {
    let flipped = host.fs.flipped_bits();
    if flipped.is_empty() {
        return;
    }
    let report = verify(host.info.role, &host.fs);
    let mut summary = summary.lock().expect("not poisoned");
    for bit in flipped {
        let fate = match &bit {
            FlippedBit::Replaced => "replaced",
            FlippedBit::Stays { path, is_read, .. } => {
                let names = |remarks: &[Remark]| remarks.iter().any(|remark| remark.path == *path);
                let is_left = report.notes.iter().any(|note| path.starts_with(&note.path));
                match (names(&report.findings), is_left) {
                    (true, _) if *is_read => "read and found",
                    (true, _) => "found",
                    (false, true) => "in a leftover",
                    (false, false) => {
                        let what = format!("{}: nothing shows the flipped bit: {bit:?}", host.name);
                        summary.violations.push(what);
                        "missed"
                    }
                }
            }
        };
        *summary.flipped.entry(fate.to_owned()).or_default() += 1;
    }
}

/// Gives a stopped host an empty disk.
pub fn wipe(host: &Host) {
    // An error means that nothing is there yet.
    let _ = host.fs.remove_dir_all(Path::new(DATA));
    let _ = host.fs.sync_dir(Path::new("/"));
    host.fs.crash();
}
