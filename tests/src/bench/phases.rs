//! The phases of one engine's run, and the lines that it prints.
//!
//! | figure | meaning |
//! |---|---|
//! | `build` | documents per second, including the final sync |
//! | `full_scan`, `range_100` | entries per second, and scans per second, right after the build |
//! | `update` | documents per second that get a new key |
//! | `…_after_update` | the same scans right after the update, before any background work |
//! | `…_compacted` | the same scans after a full compaction |
//! | `disk_bytes_per_entry` | all files of the forward and the back index, compacted |
//! | `bulk_build` | documents per second through the backfill path (Sextant only) |
//! | `peak_mb` | the peak memory of the process, in MiB |
//!
//! The run fails if a full scan misses an entry.

use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::workload::{Documents, SCANS, scan_from};
use super::{Engine, Outcome, open, sextant::Sextant};

/// A measured figure.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Line {
    /// The name of the engine.
    pub engine: String,
    /// The name of the figure.
    pub bench: String,
    /// The rate in operations per second, for figures that are rates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_s: Option<f64>,
    /// The value of any other figure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// The number of entries in the index.
    pub entries: u64,
}

/// The settings of one engine's run.
pub struct Run {
    /// The name of the engine.
    pub engine: String,
    /// The number of documents; each has one entry.
    pub entries: u64,
    /// The engine's memory limit.
    pub memory_bytes: u64,
    /// An empty directory for the engine's files.
    pub dir: PathBuf,
    /// The names of the figures to measure; empty for all.
    pub only: Vec<String>,
}

impl Run {
    /// True if a figure is to be measured.
    fn wants(&self, bench: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == bench)
    }

    fn wants_any_ending(&self, end: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only.ends_with(end))
    }

    fn print(&self, bench: &str, per_s: Option<f64>, value: Option<f64>) -> Outcome<()> {
        let (engine, entries) = (self.engine.clone(), self.entries);
        let line = Line { engine, bench: bench.to_owned(), per_s, value, entries };
        let mut out = std::io::stdout().lock();
        writeln!(out, "{}", serde_json::to_string(&line)?)?;
        Ok(out.flush()?)
    }

    /// Runs `work`, which performs `count` operations, and prints the rate.
    #[allow(clippy::disallowed_methods, reason = "the bench measures real time")]
    fn time(&self, bench: &str, count: u64, work: impl FnOnce() -> Outcome<()>) -> Outcome<()> {
        let begun = Instant::now();
        work()?;
        let per_s = count as f64 / begun.elapsed().as_secs_f64();
        if self.wants(bench) { self.print(bench, Some(per_s.round()), None) } else { Ok(()) }
    }

    fn scans(&self, engine: &mut dyn Engine, suffix: &str) -> Outcome<()> {
        let (full, range) = (format!("full_scan{suffix}"), format!("range_100{suffix}"));
        if self.wants(&full) {
            self.time(&full, self.entries, || {
                let found = engine.scan_all()?;
                let complete = found == self.entries;
                complete.then_some(()).ok_or_else(|| {
                    format!("{full} found {found} entries of {}", self.entries).into()
                })
            })?;
        }
        if self.wants(&range) {
            self.time(&range, SCANS, || {
                (0..SCANS).try_for_each(|n| {
                    let found = engine.scan_100(scan_from(n))?;
                    // A scan that begins close to the end returns fewer.
                    let complete =
                        found == 100 || scan_from(n)[0] == 0xff || self.entries < 100_000;
                    complete.then_some(()).ok_or_else(|| format!("{range} found {found}").into())
                })
            })?;
        }
        Ok(())
    }

    /// Runs all phases except the bulk build.
    pub fn run(&self) -> Outcome<()> {
        let mut engine = open(&self.engine, &self.dir, self.memory_bytes)?;
        self.time("build", self.entries, || engine.write(Documents::all(self.entries), false))?;
        self.scans(&mut *engine, "")?;
        if self.wants("update") || self.wants_any_ending("_after_update") {
            let updated = Documents::updated(self.entries);
            self.time("update", updated.left(), || engine.write(updated, true))?;
            self.scans(&mut *engine, "_after_update")?;
        }
        if self.wants("disk_bytes_per_entry") || self.wants_any_ending("_compacted") {
            engine.compact()?;
            self.scans(&mut *engine, "_compacted")?;
            if self.wants("disk_bytes_per_entry") {
                let bytes = disk_bytes(&self.dir)? as f64 / self.entries as f64;
                self.print("disk_bytes_per_entry", None, Some((bytes * 10.0).round() / 10.0))?;
            }
        }
        self.print_peak()
    }

    /// Runs the bulk build, through the backfill path.
    pub fn run_bulk_build(&self) -> Outcome<()> {
        let mut engine = Sextant::open(&self.dir, self.memory_bytes)?;
        self.time("bulk_build", self.entries, || engine.build(Documents::all(self.entries)))?;
        let found = engine.scan_all()?;
        if found != self.entries {
            return Err(format!("bulk_build: {found} entries of {}", self.entries).into());
        }
        self.print_peak()
    }

    #[allow(clippy::disallowed_methods, reason = "the kernel tells it in a file")]
    fn print_peak(&self) -> Outcome<()> {
        let status = std::fs::read_to_string("/proc/self/status")?;
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = peak.and_then(|peak| peak.split_whitespace().next());
        let kib: f64 = kib.ok_or("no VmHWM in /proc/self/status")?.parse()?;
        if self.wants("peak_mb") {
            self.print("peak_mb", None, Some((kib / 1024.0).round()))?;
        }
        Ok(())
    }
}

/// Returns the size of all files below a directory, in bytes.
fn disk_bytes(dir: &Path) -> Outcome<u64> {
    let mut bytes = 0;
    for found in std::fs::read_dir(dir)? {
        let found = found?;
        let metadata = found.metadata()?;
        bytes += match metadata.is_dir() {
            true => disk_bytes(&found.path())?,
            false => metadata.blocks() * 512,
        };
    }
    Ok(bytes)
}
