//! Flipped bits in the files of a history: the store must then name the damaged file or return the
//! right rows.
//!
//! One more outcome is allowed: the store may take the last write for a torn write and drop it. The
//! store then has only older epochs, which must be correct. The result counts these cases.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use proto::env::sim::SimFs;
use proto::env::{Env, FileSystem, OpenMode};
use proto::model::ids::Epoch;
use proto::{Error, ErrorKind, Result};
use storage::SliceStore;

use super::compare::{Depth, Finding, Pair, Verdict};
use super::driver::{Driver, failed, wrong};
use super::{BUCKET, open_whole};

/// The number of bytes at both ends of a file whose bits are always flipped: magic numbers,
/// versions, footers.
const ENDS: usize = 12;

/// The counts of outcomes of flipped bits.
#[derive(Clone, Copy, Debug, Default)]
pub struct Flips {
    /// The number of flipped bits.
    pub bits: u64,
    /// The number of flips after which an error named the file.
    pub named: u64,
    /// The number of flips after which all rows were right.
    pub harmless: u64,
    /// The number of flips after which the last writes were dropped as torn.
    pub torn: u64,
}

/// A file and its bytes.
type Saved = (PathBuf, Vec<u8>);

impl Driver {
    /// Runs the history, flushes all of it, and flips each bit of at least `bytes_per_file` bytes
    /// of every file in turn.
    pub async fn flip_bits(
        &mut self,
        bytes_per_file: usize,
    ) -> std::result::Result<Flips, Finding> {
        self.run().await?;
        self.store().flush().await.map_err(failed)?;
        self.close().await;
        let files = saved(&self.fs, &self.dir).map_err(failed)?;
        let mut flips = Flips::default();
        for (path, bytes) in &files {
            let sampled = (0..bytes_per_file).map(|_| self.random.usize(0..bytes.len().max(1)));
            let mut places: Vec<usize> =
                (0..ENDS).chain(bytes.len().saturating_sub(ENDS)..bytes.len()).collect();
            places.extend(sampled);
            places.retain(|place| *place < bytes.len());
            places.sort_unstable();
            places.dedup();
            for bit in places.into_iter().flat_map(|place| (0..8).map(move |bit| place * 8 + bit)) {
                self.flip(&files, path, bit as u64, &mut flips).await?;
            }
        }
        Ok(flips)
    }

    async fn flip(&mut self, files: &[Saved], path: &Path, bit: u64, flips: &mut Flips) -> Verdict {
        let fs = restored(files, self.plan.seed).map_err(failed)?;
        fs.flip_bit(path, bit).map_err(|error| failed(error.into()))?;
        let env = Env { fs: Arc::new(fs), ..self.env.clone() };
        flips.bits += 1;
        let place = format!("bit {} of byte {} of {}", bit % 8, bit / 8, path.display());
        let verdict = match open_whole(&env, &self.dir, self.plan.memory_bytes).await {
            Ok(store) => self.check_damaged(&store, flips),
            Err(error) => Err(Finding::Failed(error)),
        };
        for _ in 0..4 {
            tokio::task::yield_now().await;
        }
        match verdict {
            Err(Finding::Failed(error)) if names(&error, path) => {
                flips.named += 1;
                Ok(())
            }
            verdict => verdict.map_err(|finding| finding.at(&place)),
        }
    }

    /// Compares everything that a damaged store returns.
    fn check_damaged(&mut self, store: &Arc<dyn SliceStore>, flips: &mut Flips) -> Verdict {
        let horizon = self.refusable_below();
        let pair = Pair { real: store, model: &self.model, horizon };
        let applied = store.applied().into_iter().find(|mark| mark.bucket == BUCKET);
        let applied = applied.map_or(Epoch(0), |mark| mark.epoch);
        let newest = self.marks.last().map_or(Epoch(0), |mark| mark.epoch);
        let whole = applied == newest && pair.inventory().is_ok();
        for known in self.indexes.values() {
            let has = |store: &dyn SliceStore| -> Vec<_> {
                let all = store.progress().into_iter().filter(|of| of.floor.is_some());
                all.map(|of| of.slice).filter(|of| of.local_index() == known.shape.id).collect()
            };
            if !whole && has(&**store) != has(&self.model) {
                continue;
            }
            for mark in self.marks.iter().filter(|mark| mark.epoch <= applied) {
                pair.at(known, mark.epoch, Depth::Glance, &mut self.random)?;
            }
        }
        match whole {
            true => flips.harmless += 1,
            false if applied > newest => {
                return wrong(format!("shows epoch {applied}, the newest was {newest}"));
            }
            false => flips.torn += 1,
        }
        Ok(())
    }
}

/// True if an error names this file as damaged.
fn names(error: &Error, path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
    error.code.kind() == ErrorKind::Operator
        && name.is_some_and(|name| error.message.contains(&name))
}

/// Returns all files below a directory.
fn saved(fs: &SimFs, dir: &Path) -> Result<Vec<Saved>> {
    let mut files = Vec::new();
    for path in fs.list(dir)? {
        match fs.open(&path, OpenMode::Read) {
            Ok(file) => {
                let mut bytes = vec![0; file.len()? as usize];
                file.read_exact_at(&mut bytes, 0)?;
                files.push((path, bytes));
            }
            Err(_) => files.extend(saved(fs, &path)?),
        }
    }
    Ok(files)
}

/// Returns a file system with exactly these files, all durable.
fn restored(files: &[Saved], seed: u64) -> Result<SimFs> {
    let fs = SimFs::new(seed);
    for (path, bytes) in files {
        let dir = path.parent().unwrap_or(Path::new("/"));
        proto::env::create_dir_durably(&fs, dir)?;
        let file = fs.open(path, OpenMode::CreateNew)?;
        file.write_all_at(bytes, 0)?;
        file.sync()?;
        fs.sync_dir(dir)?;
    }
    Ok(fs)
}
