//! Checks that the data directories of a cluster in one process belong to the same cluster,
//! unless an operator begins a new cluster.

use std::path::{Path, PathBuf};

use proto::env::{DirectoryIdentity, Env};
use proto::model::identity::ClusterId;
use proto::{Error, ErrorCode, Result};

/// The maximum number of old clusters that are stored in one data directory.
const ASIDE_MAX: u32 = 1_000;

/// Checks the directories of all nodes. With `--force-new-cluster`, moves directories that do not
/// form a complete cluster into a separate directory. Blocks the thread.
pub(super) fn prepare_directories(
    env: &Env,
    data_dir: &Path,
    coordinators: &[PathBuf],
    force_new_cluster: bool,
) -> Result<()> {
    let checked = check_clusters(env, data_dir, coordinators);
    if !force_new_cluster {
        return checked;
    }
    match checked {
        Ok(()) => {
            tracing::warn!(
                "--force-new-cluster has no effect: the data directory has a whole cluster, or none; start without the flag"
            );
            Ok(())
        }
        // A directory that cannot be read now may still be complete.
        Err(error) if error.code == ErrorCode::Io => Err(error),
        Err(error) => {
            let aside = move_nodes_aside(env, data_dir)?;
            check_clusters(env, data_dir, coordinators)?;
            eprintln!(
                "a new cluster begins ({}); the old files are in {}",
                error.message,
                aside.display()
            );
            Ok(())
        }
    }
}

/// Moves the directories of all nodes into a new directory in `data_dir`. Returns the path of the
/// new directory. If a crash interrupts this, the next start with the flag moves the remaining
/// directories.
fn move_nodes_aside(env: &Env, data_dir: &Path) -> Result<PathBuf> {
    let here = |error: std::io::Error| {
        Error::from(error).context(format!("moving the files in {} aside", data_dir.display()))
    };
    let free = (1..=ASIDE_MAX).map(|n| data_dir.join(format!("old-cluster-{n}")));
    let aside = free.into_iter().find(|dir| !env.fs.exists(dir)).ok_or_else(|| {
        let what = format!("{} has {ASIDE_MAX} old clusters already", data_dir.display());
        Error::new(ErrorCode::OverLimit, what).with_hint("move some of them elsewhere")
    })?;
    let nodes = env.fs.list(data_dir).map_err(here)?.into_iter().filter(|dir| is_node_dir(dir));
    env.fs.create_dir_all(&aside).map_err(here)?;
    for dir in nodes {
        let Some(name) = dir.file_name() else { continue };
        env.fs.rename(&dir, &aside.join(name)).map_err(here)?;
    }
    env.fs.sync_dir(&aside).map_err(here)?;
    env.fs.sync_dir(data_dir).map_err(here)?;
    Ok(aside)
}

/// Returns true for the name of a node's directory, such as `coordinator-1`, `projector-1` or
/// `indexer-3`.
fn is_node_dir(dir: &Path) -> bool {
    let name = dir.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let Some((role, number)) = name.rsplit_once('-') else { return false };
    ["coordinator", "projector", "indexer"].contains(&role) && number.parse::<u64>().is_ok()
}

/// Checks that a coordinator whose directory has any data also has its log. Without the log, the
/// coordinator would vote as if it had never confirmed a record, and records that a majority has
/// confirmed could be lost.
fn check_log(env: &Env, dir: &Path) -> Result<()> {
    let identity = DirectoryIdentity::read(&*env.fs, dir)?;
    let is_member = identity.is_some_and(|identity| identity.cluster.is_some());
    if !is_member || coordinator::has_log(&*env.fs, dir) {
        return Ok(());
    }
    let what =
        format!("{} has lost its log, and the other coordinators have theirs", dir.display());
    Err(Error::new(ErrorCode::Corrupt, what).with_hint(
        "restore this directory; if it is lost for good, start with another --data, or with --force-new-cluster, which moves the files \
         of all nodes aside and begins an empty cluster",
    ))
}

/// Checks that all directories belong to one cluster, and that each coordinator has its log if
/// other directories have data. Without a log, a new cluster would begin, although the data
/// belongs to another one.
fn check_clusters(env: &Env, data_dir: &Path, coordinators: &[PathBuf]) -> Result<()> {
    let mut found: Option<(PathBuf, ClusterId)> = None;
    let dirs = match env.fs.exists(data_dir) {
        true => env.fs.list(data_dir)?,
        false => Vec::new(),
    };
    for dir in dirs.into_iter().filter(|dir| is_node_dir(dir)) {
        let Some(DirectoryIdentity { cluster: Some(cluster), .. }) =
            DirectoryIdentity::read(&*env.fs, &dir)?
        else {
            continue;
        };
        match &found {
            Some((other, of)) if *of != cluster => {
                let (dir, other) = (dir.display(), other.display());
                let what =
                    format!("{dir} belongs to cluster {cluster}, but {other} to cluster {of}");
                return Err(Error::new(ErrorCode::InvalidParameter, what)
                    .with_hint(
                        "put each cluster into a directory of its own, or start with --force-new-cluster, which moves all of them \
                         aside and begins an empty cluster",
                    ));
            }
            Some(_) => {}
            None => found = Some((dir, cluster)),
        }
    }
    let Some((dir, cluster)) = found else { return Ok(()) };
    if coordinators.iter().any(|dir| coordinator::has_log(&*env.fs, dir)) {
        return coordinators.iter().try_for_each(|dir| check_log(env, dir));
    }
    let what = format!(
        "{} belongs to cluster {cluster}, but no coordinator in {} has a log: the catalog is lost",
        dir.display(),
        data_dir.display()
    );
    Err(Error::new(ErrorCode::Corrupt, what).with_hint(
        "restore the directory of a coordinator; if it is lost for good, start with another --data, or with --force-new-cluster, which \
         moves these files aside and begins an empty cluster",
    ))
}

#[cfg(test)]
#[path = "cluster_dirs_tests.rs"]
mod tests;
