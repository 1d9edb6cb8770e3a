//! Processes of the product's binary, as users run them.

use std::io::{BufRead, BufReader, Read};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// The time limit for a command to start or to end.
const PATIENCE: Duration = Duration::from_secs(60);

/// The path of the binary.
pub fn binary() -> PathBuf {
    beside("sextant")
}

/// Returns the path of a binary of the workspace: tests are built into `target/debug/deps`, and
/// binaries one directory above.
pub fn beside(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("the path of this test");
    let dir = test.ancestors().nth(2).expect("the target directory");
    let binary = dir.join(name);
    assert!(binary.exists(), "{} is not built: cargo build --bin {name}", binary.display());
    binary
}

/// Returns a free address, another one at each call. Its port is outside the range of outgoing
/// connections and of listeners on any port, and each process begins at another port, so that no
/// other process takes it.
pub fn free_address() -> SocketAddr {
    const PORTS: std::ops::Range<u32> = 10_000..30_000;
    static BEGIN: LazyLock<AtomicU32> = LazyLock::new(|| AtomicU32::new(fastrand::u32(PORTS)));
    loop {
        let n = BEGIN.fetch_add(1, Ordering::Relaxed);
        let port = PORTS.start + n % PORTS.len() as u32;
        let address = SocketAddr::from(([127, 0, 0, 1], port as u16));
        if TcpListener::bind(address).is_ok() {
            return address;
        }
    }
}

/// Returns a command that runs the binary without certificates, on loopback addresses.
pub fn sextant() -> Command {
    let mut command = Command::new(binary());
    command.stdin(Stdio::null()).env_remove("SEXTANT_SQL").env("SEXTANT_INSECURE", "1");
    command
}

/// Runs a command to its end; kills it and panics after a time limit.
pub fn output(command: &mut Command) -> Output {
    let mut child =
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary starts");
    let status = wait(&mut child);
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let read = child.stdout.take().expect("piped").read_to_end(&mut stdout);
    read.and(child.stderr.take().expect("piped").read_to_end(&mut stderr)).expect("its output");
    Output { status, stdout, stderr }
}

fn wait(child: &mut Child) -> ExitStatus {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(status) = child.try_wait().expect("a child") {
            return status;
        }
        if Instant::now() > deadline {
            let _gone = child.kill();
            panic!("the process did not end within {PATIENCE:?}");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Starts a command and waits for its first line, which reports that it is ready; the line is empty
/// if the process ended without one.
pub fn spawn_ready(command: &mut Command) -> (Child, String) {
    let mut child = command.stdout(Stdio::piped()).spawn().expect("the binary starts");
    let stdout = child.stdout.take().expect("piped");
    let (line, lines) = std::sync::mpsc::channel();
    // A missing line must not block the test for ever.
    std::thread::spawn(move || {
        let mut text = String::new();
        let _ended = BufReader::new(stdout).read_line(&mut text);
        let _nobody = line.send(text);
    });
    let ready = lines.recv_timeout(PATIENCE).unwrap_or_default();
    (child, ready)
}

/// A running `sextant dev`, which is killed on drop.
pub struct Dev {
    child: Child,
    addresses: [SocketAddr; 3],
    ready: String,
}

/// Returns the command of `sextant dev` on a data directory and free ports.
pub fn dev(data: &Path) -> Command {
    let mut command = sextant();
    command.arg("dev").arg("--data").arg(data);
    command.args(["--sql-port", "0", "--grpc-port", "0", "--http-port", "0"]);
    command
}

impl Dev {
    /// Starts the process and waits for the line with the addresses of its ports.
    pub fn start(data: &Path) -> Self {
        Self::start_by(&mut dev(data))
    }

    /// Starts the process of a command like [`dev`], and waits for the line with the addresses of
    /// its ports.
    pub fn start_by(command: &mut Command) -> Self {
        let (mut child, ready) = spawn_ready(command);
        let Some(addresses) = addresses(&ready) else {
            let _gone = child.kill();
            panic!("sextant dev printed {ready:?}, not where it serves");
        };
        Self { child, addresses, ready }
    }

    /// Returns the value of a word `name=value` in the line that the process has printed.
    pub fn word(&self, name: &str) -> Option<&str> {
        self.ready.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
    }

    /// The number of the process.
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// The address of the SQL port.
    pub fn sql_address(&self) -> SocketAddr {
        self.addresses[0]
    }

    /// The address of the gRPC port.
    pub fn grpc_address(&self) -> SocketAddr {
        self.addresses[1]
    }

    /// The address of the HTTP port.
    pub fn http_address(&self) -> SocketAddr {
        self.addresses[2]
    }

    /// Kills the process with SIGKILL.
    pub fn kill(mut self) {
        self.child.kill().expect("a running process");
        self.child.wait().expect("a child");
    }

    /// Stops the process with SIGTERM and waits for its end.
    pub fn terminate(self) -> ExitStatus {
        self.ask_to_stop();
        self.ended()
    }

    /// Sends SIGTERM.
    pub fn ask_to_stop(&self) {
        let id = self.child.id().to_string();
        let sent = Command::new("sh").args(["-c", "kill -TERM \"$0\"", &id]).status();
        assert!(sent.expect("sh").success(), "sending SIGTERM");
    }

    /// Waits for the end of the process.
    pub fn ended(mut self) -> ExitStatus {
        wait(&mut self.child)
    }
}

impl Drop for Dev {
    fn drop(&mut self) {
        let _ended_before = self.child.kill();
        let _ended_before = self.child.wait();
    }
}

/// Returns the addresses in `ready sql=HOST:PORT grpc=HOST:PORT http=HOST:PORT auth=KIND`, which
/// may have more words.
pub fn addresses(line: &str) -> Option<[SocketAddr; 3]> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [ready, words @ ..] = &words[..] else { return None };
    let address = |(word, name): (&&str, &str)| {
        word.strip_prefix(name)?.strip_prefix('=')?.parse::<SocketAddr>().ok()
    };
    let all: Option<Vec<_>> = words.iter().zip(["sql", "grpc", "http"]).map(address).collect();
    let has_auth = words.get(3).is_some_and(|word| word.starts_with("auth="));
    all.filter(|_| *ready == "ready" && has_auth)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ready_line_is_read_by_the_letter() {
        let line = "ready sql=127.0.0.1:1 grpc=127.0.0.1:2 http=127.0.0.1:3 auth=trust\n";
        assert_eq!(addresses(line).expect("addresses")[2].port(), 3);
        let short = line.replace(" auth=trust", "");
        for wrong in ["", "ready", "ready sql=127.0.0.1:1 auth=trust", &short, &line[6..]] {
            assert!(addresses(wrong).is_none(), "{wrong}");
        }
    }
}
