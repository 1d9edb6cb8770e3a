//! The rows of a version's files that belong to some partitions, in chunks.

use std::path::Path;
use std::sync::Arc;

use proto::Result;
use proto::env::FileSystem;
use proto::model::assignment::VbucketSet;
use proto::model::data_set::Files;
use proto::model::ids::{Seqno, vbucket_of};

use super::files::pattern::{FileToRead, find_files};
use super::files::{RowRules, Rows, open_rows};
use crate::source::StoredDocument;

/// About the bytes of a chunk.
const CHUNK_BYTES: usize = 4 << 20;
/// The most rows that are read for a chunk: most of them may belong to others.
const CHUNK_ROWS: usize = 50_000;
/// The memory that a document takes besides its text and its id.
const DOCUMENT_BYTES: usize = 64;

/// Reads the rows of all files, one after another.
pub struct VersionReader {
    fs: Arc<dyn FileSystem>,
    rules: RowRules,
    /// The files that are left, the next one last.
    files: Vec<FileToRead>,
    /// The file that is being read, with its name.
    open: Option<(String, Box<dyn Rows>)>,
    partitions: VbucketSet,
    /// The number of rows so far of each partition.
    rows: Vec<u64>,
}

/// Documents of the wanted partitions, in the order of their rows.
pub struct Chunk {
    /// The documents.
    pub documents: Vec<StoredDocument>,
    /// True if no file has any more.
    pub is_last: bool,
}

impl VersionReader {
    /// Finds the files. `vbuckets` is the number of partitions of the version, and `partitions` are the wanted ones.
    pub fn new(
        fs: Arc<dyn FileSystem>,
        dir: &Path,
        files: &Files,
        document_bytes_max: usize,
        (vbuckets, partitions): (u16, VbucketSet),
    ) -> Result<Self> {
        let mut found = find_files(&*fs, dir, &files.pattern)?;
        found.reverse();
        let rules = RowRules { id: files.id.clone(), document_bytes_max };
        let rows = vec![0; usize::from(vbuckets)];
        Ok(Self { fs, rules, files: found, open: None, partitions, rows })
    }

    /// The number of rows of each partition so far.
    pub fn rows(&self) -> &[u64] {
        &self.rows
    }

    /// The next documents. An error names the file and the place in it.
    pub fn next_chunk(&mut self) -> Result<Chunk> {
        let (mut documents, mut bytes) = (Vec::new(), 0);
        for _ in 0..CHUNK_ROWS {
            if bytes >= CHUNK_BYTES {
                break;
            }
            let Some((name, rows)) = &mut self.open else {
                let Some(next) = self.files.pop() else {
                    return Ok(Chunk { documents, is_last: true });
                };
                let opened = open_rows(&*self.fs, &next, &self.rules);
                self.open = Some((next.name.clone(), opened.map_err(|e| e.context(next.name))?));
                continue;
            };
            let Some(row) = rows.next_row().map_err(|error| error.context(name.clone()))? else {
                self.open = None;
                continue;
            };
            let partition = vbucket_of(&row.id, self.rows.len() as u16);
            let number = &mut self.rows[usize::from(partition.0)];
            *number += 1;
            if self.partitions.contains(partition) {
                bytes += row.id.len() + row.document.len() + DOCUMENT_BYTES;
                let (id, seqno, document) = (row.id, Seqno(*number), row.document);
                documents.push(StoredDocument { id, seqno, document });
            }
        }
        Ok(Chunk { documents, is_last: false })
    }
}
