//! Faults of the disks of simulated hosts.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use projector::testing::DocumentStore;
use projector::testing::MemoryStore;
use proto::env::sim::{FlippedBit, SimClock};
use proto::env::{FileSystem, OpenMode};
use proto::model::ids::{BucketId, Seqno, VbucketId};
use storage::verify::Remark;

use super::Shared;
use super::hosts::{Host, Hosts, env};

/// The data directory of a process.
const DATA: &str = "/data";

/// Replaces a projector's disk by an older copy: mostly a few vbuckets lack their end, sometimes all lack a large part.
/// False if the disk is empty.
pub fn restore_older(host: &Host, hosts: &Hosts, random: &mut fastrand::Rng) -> bool {
    let deep = random.u8(..6) == 0;
    let mut has_lost = false;
    for bucket in buckets(&host.store) {
        let lost = host.store.restore_older(bucket, |end| match random.u8(..4) {
            _ if deep => random.u64(end / 4..=end),
            0 | 1 => end - random.u64(..=end.min(12)),
            _ => end,
        });
        has_lost |= !lost.is_empty();
        if let Some(producer) = &hosts.producer {
            lost.iter().for_each(|(vbucket, end)| producer.lose_taken(*vbucket, *end));
        }
    }
    if has_lost {
        // The operator, who has no newer copy.
        host.store.put_accepts_loss(true).expect("the store takes it");
    }
    has_lost
}

/// Purges the source's log: mostly as much as possible, sometimes the older half.
pub fn purge(store: &MemoryStore, random: &mut fastrand::Rng) {
    for bucket in buckets(store) {
        let Ok(extents) = store.extents(bucket) else { continue };
        let half = random.u8(..4) == 0;
        let to = extents.iter().zip(0..).map(|(extent, n)| {
            let end = if half { extent.end.0 / 2 } else { extent.end.0 };
            (VbucketId(n), Seqno(end))
        });
        // A failed disk accepts no purge either.
        let _ = store.purge(bucket, &to.collect::<Vec<_>>());
    }
}

/// The buckets of a projector, by their number.
fn buckets(store: &MemoryStore) -> Vec<BucketId> {
    let records = store.buckets().unwrap_or_default();
    let mut ids: Vec<_> = records.into_iter().map(|(record, _)| record.info.id).collect();
    ids.sort_unstable();
    ids
}

/// All files below a directory.
fn files(fs: &dyn FileSystem, dir: &Path) -> Vec<PathBuf> {
    match fs.list(dir) {
        Ok(listed) => listed.iter().flat_map(|path| files(fs, path)).collect(),
        Err(_) => vec![dir.to_owned()],
    }
}

/// Flips a bit of a file of a host; false if the host has no file.
pub fn flip(host: &Host, random: &mut fastrand::Rng) -> bool {
    let mut files = files(&host.fs, Path::new(DATA));
    files.retain(|file| file.components().count() > 3);
    if files.is_empty() {
        return false;
    }
    let file = &files[random.usize(..files.len())];
    let bytes = host.fs.open(file, OpenMode::Read).and_then(|file| file.len()).unwrap_or(0);
    bytes > 0 && host.fs.flip_bit(file, random.u64(..bytes * 8)).is_ok()
}

/// Judges the flipped bits of a host that is down. Each was replaced, or a check of the directory names its file: as damaged,
/// as a part of a torn tail, or as a file that the next start removes. What a process that read it has shown is judged by
/// its scans.
pub fn judge_flipped(host: &Host, summary: &Shared) {
    let flipped = host.fs.take_flipped();
    if flipped.is_empty() {
        return;
    }
    let report = storage::verify::verify(
        &env(0, Arc::new(SimClock::new(0)), host.fs.clone()),
        Path::new(DATA),
    );
    let mut summary = summary.lock().expect("not poisoned");
    for bit in flipped {
        let fate = match &bit {
            FlippedBit::Replaced => "replaced",
            FlippedBit::Stays { path, is_read, .. } => {
                let names = |remarks: &[Remark]| remarks.iter().any(|remark| remark.path == *path);
                match (names(&report.findings), names(&report.notes)) {
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

/// Gives a host that is down an empty disk.
pub fn wipe(host: &Host) {
    // An error means that nothing is there yet.
    let _ = host.fs.remove_dir_all(Path::new(DATA));
    let _ = host.fs.sync_dir(Path::new("/"));
    host.fs.crash();
}
