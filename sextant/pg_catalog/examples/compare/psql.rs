//! Scripts for PostgreSQL's client `psql`, and the files that they write.

use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Returns a new folder for files that `psql` writes.
pub fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("compare-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

/// Runs a script of `psql`; an error of a statement does not end it.
pub fn script(text: &str, folder: &std::path::Path) {
    let file = folder.join("script.sql");
    std::fs::write(&file, text).expect("a script");
    let status = Command::new("psql")
        .args(["-X", "-q", "-f"])
        .arg(&file)
        .current_dir(folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.expect("psql");
}
