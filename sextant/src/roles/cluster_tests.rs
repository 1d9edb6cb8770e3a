//! A cluster in one process ends when one of its services does.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use proto::env::{File, FileSystem, OpenMode};
use proto::model::bucket::SourceKind;
use proto::rpc::command::{Command, CommandRequest};

use super::*;

/// Files whose writes fail from some moment on.
struct FullDisk {
    files: Arc<dyn FileSystem>,
    is_full: Arc<AtomicBool>,
}

struct FullFile {
    file: Arc<dyn File>,
    is_full: Arc<AtomicBool>,
}

impl FullFile {
    fn check(&self) -> io::Result<()> {
        match self.is_full.load(Ordering::Relaxed) {
            true => Err(io::ErrorKind::StorageFull.into()),
            false => Ok(()),
        }
    }
}

impl FileSystem for FullDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let file = self.files.open(path, mode)?;
        Ok(Arc::new(FullFile { file, is_full: Arc::clone(&self.is_full) }))
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.files.rename(from, to)
    }
    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.files.remove_file(path)
    }
    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        self.files.remove_dir_all(path)
    }
    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        self.files.create_dir_all(path)
    }
    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.files.sync_dir(path)
    }
    fn list(&self, path: &Path) -> io::Result<Vec<PathBuf>> {
        self.files.list(path)
    }
    fn exists(&self, path: &Path) -> bool {
        self.files.exists(path)
    }
    fn lock_dir(&self, path: &Path) -> io::Result<Box<dyn Send + Sync>> {
        self.files.lock_dir(path)
    }
}

impl File for FullFile {
    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        self.file.read_exact_at(buf, offset)
    }
    fn write_all_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        self.check()?;
        self.file.write_all_at(buf, offset)
    }
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }
    fn set_len(&self, len: u64) -> io::Result<()> {
        self.check()?;
        self.file.set_len(len)
    }
    fn sync(&self) -> io::Result<()> {
        self.check()?;
        self.file.sync()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_that_cannot_write_its_files_ends_the_cluster() {
    let (mut env, is_full) = (Env::real(), Arc::new(AtomicBool::new(false)));
    env.fs = Arc::new(FullDisk { files: Arc::clone(&env.fs), is_full: Arc::clone(&is_full) });
    let data = tempfile::tempdir().expect("a directory");
    let config = ClusterConfig {
        data_dir: data.path().to_owned(),
        coordinators: 1,
        indexers: 1,
        log_bytes_max: None,
        scans_max: None,
    };
    let cluster = Cluster::start(config, env).await.expect("a cluster");
    let quiet = tokio::time::timeout(Duration::from_millis(300), cluster.stopped()).await;
    assert!(quiet.is_err(), "all services run");
    is_full.store(true, Ordering::Relaxed);
    let command = Command::CreateBucket {
        name: "b".into(),
        vbuckets: 1,
        source: SourceKind::Embedded,
        projectors: 1,
        if_not_exists: false,
    };
    let coordinator = cluster.directory().coordinator();
    let proposed = coordinator.propose(CommandRequest { request: None, command });
    let _fails = tokio::time::timeout(Duration::from_secs(5), proposed).await;
    let stopped = tokio::time::timeout(Duration::from_secs(10), cluster.stopped()).await;
    let error = stopped.expect("the end of a service is noticed");
    assert!(error.message.contains("has stopped"), "{error}");
}
