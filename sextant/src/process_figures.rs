//! Figures of the operating system about this process and about the disk with its data. Only the
//! HTTP port shows them, so the simulation does not provide them.

use std::path::{Path, PathBuf};

use serde::Serialize;

/// The number of clock ticks per second in `/proc`; it is a constant of Linux's interface.
const TICKS_PER_S: u64 = 100;

/// Figures of the operating system about this process. A figure is `None` if the system does not
/// report it.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct ProcessFigures {
    /// The memory in use, in bytes.
    pub memory_bytes: Option<u64>,
    /// The processor time of all threads since the start, in milliseconds.
    pub cpu_ms: Option<u64>,
    /// The number of open files and sockets.
    pub open_files: Option<u64>,
    /// The maximum of `open_files`.
    pub open_files_max: Option<u64>,
    /// The free space of the disk with the data directory, in bytes.
    pub disk_free_bytes: Option<u64>,
    /// The size of the disk with the data directory, in bytes.
    pub disk_size_bytes: Option<u64>,
}

impl ProcessFigures {
    /// Reads the figures. Blocks the thread for less than a millisecond.
    pub fn read(data: Option<&Path>) -> Self {
        let disk = data.and_then(|data| rustix::fs::statvfs(data).ok());
        Self {
            memory_bytes: memory_bytes(),
            cpu_ms: cpu_ms(),
            open_files: std::fs::read_dir("/proc/self/fd").ok().map(|files| files.count() as u64),
            open_files_max: rustix::process::getrlimit(rustix::process::Resource::Nofile).current,
            disk_free_bytes: disk.as_ref().map(|disk| disk.f_bavail * disk.f_frsize),
            disk_size_bytes: disk.as_ref().map(|disk| disk.f_blocks * disk.f_frsize),
        }
    }
}

/// Returns the memory in use, in bytes.
fn memory_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

/// Returns the processor time of all threads, in milliseconds.
fn cpu_ms() -> Option<u64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name of the program may contain spaces; it ends with the last parenthesis.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut times = fields.split_whitespace().skip(11).map_while(|field| field.parse::<u64>().ok());
    Some((times.next()? + times.next()?) * 1_000 / TICKS_PER_S)
}

/// The source of this process's figures: its data directory.
#[derive(Clone, Debug, Default)]
pub struct OwnProcess {
    /// The data directory, if there is one.
    pub data: Option<PathBuf>,
}

impl OwnProcess {
    /// Returns the present figures.
    pub fn figures(&self) -> ProcessFigures {
        ProcessFigures::read(self.data.as_deref())
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn all_figures_are_reported() {
        let figures = ProcessFigures::read(Some(Path::new("/")));
        assert!(figures.memory_bytes.is_some_and(|bytes| bytes > 1 << 20), "{figures:?}");
        assert!(figures.open_files.is_some_and(|files| files >= 3), "{figures:?}");
        assert!(figures.cpu_ms.is_some() && figures.open_files_max.is_some(), "{figures:?}");
        assert!(figures.disk_size_bytes >= figures.disk_free_bytes, "{figures:?}");
        assert!(figures.disk_free_bytes.is_some(), "{figures:?}");
        assert!(ProcessFigures::read(None).disk_size_bytes.is_none());
    }
}
