//! Small file systems in memory, which a test can fill.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The size option of the file system: enough for the data of a member, and quickly filled.
const SIZE: &str = "size=192m";

/// A small file system, which is unmounted on drop.
#[derive(Debug)]
pub struct SmallDisk {
    dir: PathBuf,
}

impl SmallDisk {
    /// Mounts a file system on a directory; an error if this machine does not allow it.
    pub fn mount(dir: &Path) -> Result<Self, String> {
        std::fs::create_dir_all(dir).map_err(|error| error.to_string())?;
        let mount = ["-t", "tmpfs", "-o", SIZE, "sextant-chaos"];
        let ran = Command::new("mount").args(mount).arg(dir).output();
        let ran = ran.map_err(|error| format!("mount: {error}"))?;
        match ran.status.success() {
            true => Ok(Self { dir: dir.to_owned() }),
            false => Err(String::from_utf8_lossy(&ran.stderr).trim().to_owned()),
        }
    }

    fn ballast(&self) -> PathBuf {
        self.dir.join("ballast")
    }

    /// Fills the file system to the last byte.
    pub fn fill(&self) {
        let Ok(mut file) = std::fs::File::create(self.ballast()) else { return };
        for piece in [1 << 20, 4 << 10, 1] {
            let zeros = vec![0u8; piece];
            while file.write_all(&zeros).is_ok() {}
        }
    }

    /// Frees the space that [`Self::fill`] has taken.
    pub fn empty(&self) {
        // The file is absent if the disk was never filled.
        let _gone = std::fs::remove_file(self.ballast());
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // A lazy unmount, because a killed process may not have been reaped yet.
        let _unmounted = Command::new("umount").arg("-l").arg(&self.dir).output();
    }
}
