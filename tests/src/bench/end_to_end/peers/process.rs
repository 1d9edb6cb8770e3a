//! Child processes of the benchmark.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::super::super::Outcome;
use crate::harness::process::spawn_ready;

/// A process that is killed on drop.
pub struct Running {
    child: Child,
}

impl Running {
    /// Starts a process that prints a line when it is ready; returns the process and the line. Its
    /// standard error is written to a file.
    pub fn start(command: &mut Command, log: &Path) -> Outcome<(Self, String)> {
        command.stdin(Stdio::null()).stderr(std::fs::File::create(log)?);
        let (child, ready) = spawn_ready(command);
        let running = Self { child };
        if !ready.starts_with("ready ") {
            let told = std::fs::read_to_string(log).unwrap_or_default();
            let program = PathBuf::from(command.get_program());
            return Err(format!("{} printed {ready:?}: {told}", program.display()).into());
        }
        Ok((running, ready))
    }

    /// The number of the process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ended_before = self.child.kill();
        let _ended_before = self.child.wait();
    }
}

/// Runs a command to its end; returns its output.
pub fn run(command: &mut Command) -> Outcome<String> {
    let out = command.stdin(Stdio::null()).output();
    let out = out.map_err(|error| format!("run {command:?}: {error}"))?;
    if !out.status.success() {
        let told = String::from_utf8_lossy(&out.stderr);
        return Err(format!("run {command:?}: {}: {told}", out.status).into());
    }
    Ok(String::from_utf8_lossy(&out.stdout).trim().to_owned())
}

/// Returns a free port; another process may take it before it is used.
pub fn free_port() -> Outcome<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}
