//! Reads the files of a version: several parts in parallel, and their rows in the order of the
//! files.

use std::path::Path;
use std::sync::Arc;

use futures::{Stream, StreamExt, stream};
use proto::env::{Bulk, Env, FileSystem};
use proto::model::assignment::VbucketSet;
use proto::model::data_set::{Files, FilesRead};
use proto::model::ids::VbucketId;
use proto::{Error, ErrorCode, Result};

use super::files::pattern::{FileToRead, find_files};
use super::files::{Batch, Part, Parts, RowRules, open_parts};

/// The number of parts that are read in parallel. Each has some megabytes of rows in memory.
const READ_AT_ONCE: usize = 3;

/// A reader of the files of a version, which cuts them into parts.
pub struct VersionReader {
    fs: Arc<dyn FileSystem>,
    rules: Arc<RowRules>,
    count: usize,
    files: std::vec::IntoIter<FileToRead>,
    /// The file that is being cut into parts, with its name.
    open: Option<(Arc<str>, Box<dyn Parts>)>,
}

/// A part of a file, with all that a thread needs to read it.
struct PartOfFile {
    name: Arc<str>,
    part: Part,
    rules: Arc<RowRules>,
}

impl PartOfFile {
    fn read(self) -> Result<(Batch, Option<Self>)> {
        let Self { name, part, rules } = self;
        let (batch, rest) = part.read(&rules).map_err(|error| in_file(error, &name))?;
        Ok((batch, rest.map(|part| Self { name, part, rules })))
    }
}

async fn read(env: &Env, part: PartOfFile) -> Result<(Batch, Option<PartOfFile>)> {
    env.bulk(Bulk::Queued, move || part.read()).await
}

fn in_file(mut error: Error, name: &str) -> Error {
    error.message = format!("{name} {}", error.message);
    error
}

impl VersionReader {
    /// Creates a reader of the rows in the partitions `wanted`, for a version with `partitions`
    /// partitions.
    pub fn new(
        fs: Arc<dyn FileSystem>,
        dir: Option<&Path>,
        files: &Files,
        (wanted, partitions): (VbucketSet, u16),
        document_bytes_max: usize,
    ) -> Result<Self> {
        let dir = dir.ok_or_else(|| {
            let what = "the projector has no directory of files";
            Error::new(ErrorCode::InvalidParameter, what).with_hint(
                "start all projectors with --files-dir, or files_dir in the settings file",
            )
        })?;
        let found = find_files(&*fs, dir, &files.pattern)?;
        let (count, files_left) = (found.len(), found.into_iter());
        let rules = RowRules { id: files.id.clone(), document_bytes_max, partitions, wanted };
        Ok(Self { fs, rules: Arc::new(rules), count, files: files_left, open: None })
    }

    /// The number of files.
    pub fn files(&self) -> usize {
        self.count
    }

    /// Returns the rows of all files in batches, in order. Threads for bulk work read them. An
    /// error names the file and the place in it, and ends the batches. The first batches of
    /// several parts are read in parallel; further batches of a part are read when it is that
    /// part's turn.
    pub fn batches(self, env: &Env) -> impl Stream<Item = Result<Batch>> + Send {
        let (cutting, reading, resting) = (env.clone(), env.clone(), env.clone());
        let parts = stream::unfold(Some(self), move |reader| {
            let env = cutting.clone();
            async move {
                let mut reader = reader?;
                let cut = move || match reader.next_part().transpose()? {
                    Ok(part) => Some((Ok(part), Some(reader))),
                    Err(error) => Some((Err(error), None)),
                };
                env.bulk(Bulk::Queued, cut).await
            }
        });
        // An error waits for its turn like a batch, after the batches before it.
        let begin = move |part: Result<PartOfFile>| {
            let env = reading.clone();
            async move { read(&env, part?).await }
        };
        let with_rest = move |first: Result<(Batch, Option<PartOfFile>)>| {
            let (first, rest) = match first {
                Ok((batch, rest)) => (Ok(batch), rest),
                Err(error) => (Err(error), None),
            };
            let env = resting.clone();
            let rest = stream::try_unfold(rest, move |rest| {
                let env = env.clone();
                async move {
                    let Some(part) = rest else { return Ok(None) };
                    read(&env, part).await.map(Some)
                }
            });
            stream::once(std::future::ready(first)).chain(rest)
        };
        parts.map(begin).buffered(READ_AT_ONCE).flat_map(with_rest)
    }

    fn next_part(&mut self) -> Result<Option<PartOfFile>> {
        loop {
            let Some((name, parts)) = &mut self.open else {
                let Some(file) = self.files.next() else { return Ok(None) };
                let parts = open_parts(&*self.fs, &file, &self.rules)
                    .map_err(|error| error.context(&file.name))?;
                self.open = Some((file.name.into(), parts));
                continue;
            };
            match parts.next_part(&self.rules).map_err(|error| in_file(error, name))? {
                Some(part) => {
                    let (name, rules) = (Arc::clone(name), Arc::clone(&self.rules));
                    return Ok(Some(PartOfFile { name, part, rules }));
                }
                None => self.open = None,
            }
        }
    }
}

/// Counts the rows that were read, including rows of partitions that are not requested.
#[derive(Debug)]
pub struct RowCounter {
    /// The number of rows of each partition.
    pub rows: Vec<u64>,
    /// The summary of all rows that were read.
    pub read: FilesRead,
}

impl RowCounter {
    /// Creates a counter for this many files and partitions.
    pub fn new(files: usize, partitions: u16) -> Self {
        let read = FilesRead { files: files as u32, ..FilesRead::default() };
        Self { rows: vec![0; usize::from(partitions)], read }
    }

    /// Adds the rows of the next batch.
    pub fn add(&mut self, batch: &Batch) {
        self.read.add_rows(&batch.read());
        let counts = self.rows.iter_mut().zip(batch.counts());
        counts.for_each(|(rows, count)| *rows += u64::from(*count));
    }

    /// Returns the number of rows of a partition.
    pub fn rows_of(&self, partition: VbucketId) -> u64 {
        self.rows.get(usize::from(partition.0)).copied().unwrap_or_default()
    }
}

#[cfg(test)]
#[path = "reader_tests.rs"]
mod tests;
