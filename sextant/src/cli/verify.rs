//! `sextant verify`: checks all files of the indexers and projectors in a directory.

use std::path::{Path, PathBuf};

use proto::env::Env;
use proto::{Error, ErrorCode, Result};
use serde::Serialize;
use storage::verify::{Report, check_format, is_data_dir, verify};

use super::client::print_text;

/// `sextant verify`
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The data directory of an indexer or a projector, or of `sextant dev`
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// Print JSON, one object per node
    #[arg(long)]
    json: bool,
}

/// The report about one node, with the directory of the node.
#[derive(Serialize)]
struct NodeReport<'a> {
    dir: &'a Path,
    #[serde(flatten)]
    report: &'a Report,
}

/// Checks all files. Returns an error for damage, after everything is printed.
pub async fn run(args: Args) -> Result<()> {
    let env = Env::real();
    let inside = env.clone();
    env.blocking(move || run_blocking(&inside, &args)).await
}

/// Checks the files of each node and prints the reports. Blocks the thread.
fn run_blocking(env: &Env, args: &Args) -> Result<()> {
    let mut findings = 0;
    for dir in nodes(env, &args.data)? {
        let _lock = lock(env, &dir)?;
        let report = match projector::is_source_dir(env, &dir) {
            true => {
                projector::check_source_format(env, &dir)?;
                projector::verify_source(env, &dir)
            }
            false => {
                check_format(env, &dir)?;
                verify(env, &dir)
            }
        };
        findings += report.findings.len();
        if args.json {
            let line = serde_json::to_string(&NodeReport { dir: &dir, report: &report })
                .map_err(|error| Error::internal(error.to_string()))?;
            print_text(&(line + "\n"))?;
        } else {
            print_text(&text(&dir, &report))?;
        }
    }
    match findings {
        0 => Ok(()),
        _ => Err(Error::new(
            ErrorCode::Corrupt,
            format!("damaged or missing below {}: {findings}", args.data.display()),
        )
        .with_hint(
            "a replica or a new build replaces the slices of an indexer: remove its directory; a bucket with a copy on \
             another projector heals by itself; otherwise restore the directory of the projector, or see `sextant source recover --help`",
        )),
    }
}

/// Returns true if a directory belongs to an indexer or a projector.
fn is_node(env: &Env, dir: &Path) -> bool {
    is_data_dir(env, dir) || projector::is_source_dir(env, dir)
}

/// Returns `data` if it is the directory of an indexer or a projector; otherwise the directories
/// of indexers and projectors that `data` contains.
pub(super) fn nodes(env: &Env, data: &Path) -> Result<Vec<PathBuf>> {
    if is_node(env, data) {
        return Ok(vec![data.to_path_buf()]);
    }
    let listed = env.fs.list(data).map_err(|error| {
        Error::from(error).context(format!("read the directory {}", data.display()))
    })?;
    let dirs: Vec<PathBuf> = listed.into_iter().filter(|dir| is_node(env, dir)).collect();
    if dirs.is_empty() {
        let message =
            format!("{} is not the data directory of an indexer or a projector", data.display());
        return Err(Error::new(ErrorCode::InvalidParameter, message)
            .with_hint("use the --data of the node or of `sextant dev`"));
    }
    Ok(dirs)
}

/// Locks the directory so that no node starts during the check. Returns `None` for a copy of a
/// directory, which has no lock file.
fn lock(env: &Env, dir: &Path) -> Result<Option<Box<dyn Send + Sync>>> {
    if !env.fs.exists(&dir.join("LOCK")) {
        return Ok(None);
    }
    match env.fs.lock_dir(dir) {
        Ok(lock) => Ok(Some(lock)),
        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
            Err(Error::from(error).with_hint("stop the node first, or verify a copy"))
        }
        // A read-only copy cannot be locked, and no node can start in it.
        Err(_) => Ok(None),
    }
}

/// Returns the text of a report about a directory.
fn text(dir: &Path, report: &Report) -> String {
    let mut text = format!(
        "{}: {} log segments with {} records, {} manifests, {} fragments with {} rows, {} bytes\n",
        dir.display(),
        report.log_segments,
        report.log_records,
        report.manifests,
        report.fragments,
        report.rows,
        report.bytes,
    );
    for (kind, remarks) in [("note", &report.notes), ("damaged", &report.findings)] {
        for remark in remarks {
            let (path, message) = (remark.path.display().to_string(), &remark.message);
            // The error already names its file.
            match message.contains(&path) {
                true => text += &format!("{kind}: {message}\n"),
                false => text += &format!("{kind}: {path}: {message}\n"),
            }
        }
    }
    if report.findings.is_empty() {
        text += "no damage found\n";
    }
    text
}

#[cfg(test)]
mod tests {
    use proto::env::OpenMode;
    use proto::env::sim::world;

    use super::*;

    const MANIFEST: &[u8] = include_bytes!("../../../indexer/storage/testdata/index-7.3.manifest");

    fn put(env: &Env, path: &str, bytes: &[u8]) {
        let path = Path::new(path);
        env.fs.create_dir_all(path.parent().unwrap()).unwrap();
        env.fs.open(path, OpenMode::Create).unwrap().write_all_at(bytes, 0).unwrap();
    }

    fn verify_data(env: &Env, data: &str) -> Result<()> {
        run_blocking(env, &Args { data: data.into(), json: false })
    }

    #[test]
    fn all_indexers_in_a_directory_are_checked_and_missing_files_are_an_error() {
        let (env, _, _) = world(1);
        put(&env, "data/indexer-1/VERSION", b"sextant indexer, format 1\n");
        put(&env, "data/indexer-2/VERSION", b"sextant indexer, format 1\n");
        put(&env, "data/projector-1/VERSION", b"sextant projector, format 9\n");
        assert_eq!(verify_data(&env, "data"), Ok(()));
        // The manifest names missing fragments.
        put(&env, "data/indexer-2/manifests/index-7.3.manifest", MANIFEST);
        assert_eq!(verify_data(&env, "data").unwrap_err().code, ErrorCode::Corrupt);
        assert_eq!(verify_data(&env, "data/indexer-2").unwrap_err().code, ErrorCode::Corrupt);
        assert_eq!(verify_data(&env, "data/indexer-1"), Ok(()));
    }

    #[test]
    fn a_directory_of_another_format_is_refused_and_not_called_damaged() {
        let (env, _, _) = world(1);
        put(&env, "data/indexer-1/VERSION", b"sextant indexer data 7\n");
        put(&env, "data/projector-1/VERSION", b"sextant documents 8\n");
        put(&env, "data/projector-1/source.1", b"of another format");
        for (dir, found) in [
            ("data/indexer-1", "sextant indexer data 7"),
            ("data/projector-1", "sextant documents 8"),
            ("data", "sextant indexer data 7"),
        ] {
            let refused = verify_data(&env, dir).unwrap_err();
            assert_eq!(refused.code, ErrorCode::Version);
            assert!(refused.message.contains(found), "{refused}");
        }
    }

    #[test]
    fn a_directory_that_is_in_use_or_has_no_indexer_is_refused() {
        let (env, _, _) = world(1);
        put(&env, "data/projector-1/VERSION", b"sextant projector, format 9\n");
        assert_eq!(verify_data(&env, "data").unwrap_err().code, ErrorCode::InvalidParameter);
        put(&env, "data/indexer-1/VERSION", b"sextant indexer, format 1\n");
        put(&env, "data/indexer-1/LOCK", b"");
        let lock = env.fs.lock_dir(Path::new("data/indexer-1")).unwrap();
        assert_eq!(verify_data(&env, "data").unwrap_err().code, ErrorCode::Io);
        drop(lock);
        assert_eq!(verify_data(&env, "data"), Ok(()));
    }
}
