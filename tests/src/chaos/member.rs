//! A member of the cluster: the arguments of its process, and the actions of an operator on it.

use std::fs::OpenOptions;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use super::disk::SmallDisk;

/// The hidden command of this program that runs a member.
pub const MEMBER: &str = "member";
/// The time limit for the end of a member after SIGTERM.
const STOP_WITHIN: Duration = Duration::from_secs(20);
/// The time from the start of a member until it handles SIGTERM.
const LISTENS_WITHIN: Duration = Duration::from_secs(3);

/// The role of a node on the command line.
pub fn role(id: u64) -> &'static str {
    match id {
        0..100 => "coordinator",
        100..200 => "projector",
        200..300 => "indexer",
        _ => "router",
    }
}

/// A member, whose process is killed on drop.
pub struct Member {
    id: u64,
    arguments: Vec<String>,
    data: PathBuf,
    log: PathBuf,
    child: Option<Child>,
    started: Instant,
    disk: Option<SmallDisk>,
    is_full: bool,
    /// True if the member's disk has been full since its start, which may be the reason for its
    /// end.
    was_full: bool,
}

impl Member {
    /// Returns a member that does not run yet. Its data directory may be a small disk.
    pub fn new(
        id: u64,
        mut arguments: Vec<String>,
        dir: &Path,
        log: PathBuf,
        disk: Option<SmallDisk>,
    ) -> Self {
        let data = dir.join("data");
        arguments.splice(..0, [role(id).to_owned(), "--id".into(), id.to_string()]);
        if role(id) != "router" {
            arguments.extend(["--data".into(), data.display().to_string()]);
        }
        Self {
            id,
            arguments,
            data,
            log,
            child: None,
            started: Instant::now(),
            disk,
            is_full: false,
            was_full: false,
        }
    }

    /// The role and node id of the member, as text.
    pub fn name(&self) -> String {
        format!("{} {}", role(self.id), self.id)
    }

    /// The data directory of the member.
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// Returns the output of the process up to now.
    pub fn printed(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.log).unwrap_or_default()).into_owned()
    }

    /// Starts the process unless it is running, with the existing data if there is any.
    pub fn run(&mut self) {
        if self.child.is_some() {
            return;
        }
        let log = OpenOptions::new().create(true).append(true).open(&self.log).expect("a log");
        let program = std::env::current_exe().expect("the path of this program");
        let mut command = Command::new(program);
        command.arg(MEMBER).args(&self.arguments).env("SEXTANT_INSECURE", "1");
        // The member ends when its standard input is closed, so that it never outlives this program.
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(log);
        self.child = Some(command.spawn().expect("a member starts"));
        self.started = Instant::now();
        self.was_full = self.is_full;
    }

    /// Kills the process with `kill -9`.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ended_before = child.kill();
            let _ended_before = child.wait();
        }
    }

    /// Sends SIGTERM and waits for the end; an error unless the exit is clean.
    pub async fn stop(&mut self) -> Result<(), String> {
        let begun = Instant::now();
        self.signal("TERM");
        let Some(child) = &mut self.child else { return Ok(()) };
        while begun.elapsed() < STOP_WITHIN {
            if let Some(status) = child.try_wait().expect("a child") {
                self.child = None;
                // A process that has just started has no signal handler yet.
                let at_once = status.signal().is_some() && begun - self.started < LISTENS_WITHIN;
                return match status.success() || at_once {
                    true => Ok(()),
                    false => Err(format!("{} ended with {status} on SIGTERM", self.name())),
                };
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        self.kill();
        Err(format!("{} does not end on SIGTERM", self.name()))
    }

    /// Sends SIGSTOP if `frozen`, otherwise SIGCONT.
    pub fn freeze(&self, frozen: bool) {
        self.signal(if frozen { "STOP" } else { "CONT" });
    }

    fn signal(&self, name: &str) {
        let Some(child) = &self.child else { return };
        let script = format!("kill -{name} \"$0\"");
        let mut command = Command::new("sh");
        command.args(["-c", &script, &child.id().to_string()]).stderr(Stdio::null());
        // The supervisor finds a member that has ended by itself.
        let _sent = command.status();
    }

    /// Returns the exit status if the process has ended without a command, and true if a full disk
    /// may be the reason.
    pub fn has_ended(&mut self) -> Option<(ExitStatus, bool)> {
        let status = self.child.as_mut()?.try_wait().expect("a child")?;
        self.child = None;
        Some((status, self.was_full))
    }

    /// True if the member has a small disk, which can be filled.
    pub fn has_small_disk(&self) -> bool {
        self.disk.is_some()
    }

    /// True if the member's disk is full.
    pub fn is_full(&self) -> bool {
        self.is_full
    }

    /// Fills the disk of the member.
    pub fn fill_disk(&mut self) {
        (self.is_full, self.was_full) = (true, true);
        self.disk.iter().for_each(SmallDisk::fill);
    }

    /// Frees the disk of the member, and starts it if it has stopped.
    pub fn empty_disk(&mut self) {
        self.is_full = false;
        self.disk.iter().for_each(SmallDisk::empty);
        self.run();
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.kill();
    }
}
