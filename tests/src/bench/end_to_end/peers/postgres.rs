//! PostgreSQL in a temporary directory.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use tokio_postgres::Config;

use super::super::super::Outcome;
use super::super::cpu::Processes;
use super::super::documents::Document;
use super::super::figures::POSTGRESQL;
use super::process::{free_port, run};
use super::{EIGHT_SLICES, Index, Parameter, Peer, Target};

/// The folder in which Debian and Ubuntu install PostgreSQL, with a folder for each major version.
const VERSIONS: &str = "/usr/lib/postgresql";
/// The user that runs the server if this process runs as root, since PostgreSQL refuses to run as
/// root.
const USER: &str = "postgres";
/// The settings of the server: memory as on a dedicated server. Durability has its default: each
/// commit is synced.
const SETTINGS: &str = "shared_buffers = 1GB\nmax_wal_size = 4GB\nmaintenance_work_mem = 512MB\n\
                        max_connections = 200\nlisten_addresses = '127.0.0.1'\n";

/// A running PostgreSQL.
pub struct Postgres {
    version: String,
    target: Target,
    /// The server, which ends with this value.
    _server: Server,
}

/// The programs and the directory of a server, which is stopped on drop.
struct Server {
    programs: PathBuf,
    /// The parent of the server's data directory, which belongs to PostgreSQL's user.
    dir: PathBuf,
    is_root: bool,
}

impl Postgres {
    /// Creates and starts a server below `parent`, which any user may enter.
    pub fn start(parent: &Path) -> Outcome<Self> {
        let server = Server {
            programs: programs()?,
            dir: parent.join("postgres"),
            is_root: run(Command::new("id").arg("-u"))? == "0",
        };
        let port = free_port()?;
        server.start(port)?;
        let postmaster = std::fs::read_to_string(server.dir.join("data/postmaster.pid"))?;
        let postmaster: u32 = postmaster.lines().next().unwrap_or_default().parse()?;
        let version = run(Command::new(server.programs.join("postgres")).arg("--version"))?;
        let version = version.trim_start_matches("postgres (PostgreSQL) ").to_owned();
        let mut config = Config::new();
        config.host("127.0.0.1").port(port).user(USER).dbname("postgres");
        let target = Target { config, grpc: None, processes: Processes::Family(postmaster) };
        Ok(Self { version, target, _server: server })
    }
}

impl Server {
    fn start(&self, port: u16) -> Outcome<()> {
        std::fs::create_dir_all(&self.dir)?;
        if self.is_root {
            let known = run(Command::new("id").args(["-u", USER]));
            known
                .map_err(|_| format!("PostgreSQL does not run as root: create the user {USER}"))?;
            run(Command::new("chown").arg(USER).arg(&self.dir))?;
        }
        std::fs::set_permissions(&self.dir, std::fs::Permissions::from_mode(0o700))?;
        self.run("initdb", &format!("-D data -A trust -U {USER}"))?;
        let mut file = std::fs::OpenOptions::new();
        let mut file = file.append(true).open(self.dir.join("data/postgresql.conf"))?;
        writeln!(file, "{SETTINGS}port = {port}")?;
        writeln!(file, "unix_socket_directories = '{}'", self.dir.display())?;
        drop(file);
        self.run("pg_ctl", "-D data -l log -w start")
    }

    /// Runs a program of PostgreSQL in the server's directory. Its output is written to a file,
    /// since the server inherits it.
    fn run(&self, program: &str, arguments: &str) -> Outcome<()> {
        let (dir, program) = (quoted(&self.dir), quoted(&self.programs.join(program)));
        let script = format!("cd {dir} && {program} {arguments} >>output 2>&1");
        let mut command = Command::new(if self.is_root { "su" } else { "sh" });
        if self.is_root {
            command.arg(USER);
        }
        run(command.arg("-c").arg(script).current_dir("/")).map_err(|error| {
            let told = |name| std::fs::read_to_string(self.dir.join(name)).unwrap_or_default();
            format!("{error}\n{}{}", told("output"), told("log"))
        })?;
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.dir.join("data/postmaster.pid").exists()
            && let Err(error) = self.run("pg_ctl", "-D data -m immediate stop")
        {
            eprintln!("stop PostgreSQL in {}: {error}", self.dir.display());
        }
    }
}

/// Returns a path quoted for the shell.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', "'\\''"))
}

/// Returns the directory of the programs: of the newest version, or the one in the PATH.
fn programs() -> Outcome<PathBuf> {
    let versions = std::fs::read_dir(VERSIONS).into_iter().flatten().flatten();
    let version = |name: &std::ffi::OsStr| name.to_str()?.parse::<u32>().ok();
    let newest = versions
        .filter(|found| found.path().join("bin/initdb").exists())
        .max_by_key(|found| version(&found.file_name()));
    let installed = newest.map(|found| found.path().join("bin"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let in_path = || std::env::split_paths(&path).find(|dir| dir.join("initdb").exists());
    let found = installed.or_else(in_path);
    let missing = format!("no PostgreSQL in {VERSIONS} or the PATH: install the server");
    found.ok_or_else(|| missing.into())
}

impl Peer for Postgres {
    fn name(&self) -> &'static str {
        POSTGRESQL
    }

    fn version(&self) -> &str {
        &self.version
    }

    fn target(&self) -> &Target {
        &self.target
    }

    fn create_bucket(&self, bucket: &str) -> String {
        format!("CREATE TABLE {bucket} (id text PRIMARY KEY, n int8, city text, pad text)")
    }

    fn drop_bucket(&self, bucket: &str) -> String {
        format!("DROP TABLE IF EXISTS {bucket}")
    }

    /// Returns the statement of an index that includes the id, so that a range reads only the
    /// index, as at Sextant.
    fn create_index(&self, bucket: &str, index: Index) -> String {
        format!("CREATE INDEX {bucket}_{} ON {bucket} (n) INCLUDE (id)", index.suffix)
    }

    fn read_indexes(&self) -> &'static [Index] {
        &[EIGHT_SLICES]
    }

    fn relation(&self, bucket: &str, _index: Index) -> String {
        bucket.to_owned()
    }

    fn copy_in(&self, bucket: &str) -> String {
        format!("COPY {bucket} FROM STDIN")
    }

    fn line(&self, document: &Document) -> String {
        document.tabbed()
    }

    fn upsert(&self, bucket: &str) -> String {
        format!(
            "INSERT INTO {bucket} VALUES ($1, $2, $3, $4) ON CONFLICT (id) \
             DO UPDATE SET n = excluded.n, city = excluded.city, pad = excluded.pad"
        )
    }

    fn upsert_parameters(&self) -> fn(&Document) -> Vec<Parameter> {
        |document| {
            let Document { id, n, city, pad } = document.clone();
            vec![Box::new(id), Box::new(n), Box::new(city), Box::new(pad)]
        }
    }

    fn see_everything(&self) -> &'static str {
        ""
    }

    /// Returns VACUUM, which writes the visibility map that index-only scans need.
    fn after_load(&self, bucket: &str) -> Vec<String> {
        vec![format!("VACUUM (ANALYZE) {bucket}"), "CHECKPOINT".into()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_one_word_of_a_shell() {
        assert_eq!(quoted(Path::new("/tmp/it's a dir")), "'/tmp/it'\\''s a dir'");
    }
}
