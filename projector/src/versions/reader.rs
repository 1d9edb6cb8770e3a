//! Reads the rows of a version that belong to this projector's partitions.

use std::path::Path;
use std::sync::Arc;

use proto::env::FileSystem;
use proto::model::assignment::VbucketSet;
use proto::model::data_set::{Files, FilesRead};
use proto::model::ids::{Seqno, VbucketId, vbucket_of};
use proto::{Error, ErrorCode, Result};

use super::files::pattern::{FileToRead, find_files};
use super::files::{RowRules, Rows, open_rows};
use crate::source::StoredDocument;

/// Rows that are looked at for one piece, in bytes. A projector may have a small part of the partitions.
const LOOK_AT_BYTES: usize = 8 << 20;
/// The memory of a row besides its id and document.
const ROW_OVERHEAD_BYTES: usize = 64;

/// The rows of some partitions of a version.
pub struct VersionReader {
    fs: Arc<dyn FileSystem>,
    rules: RowRules,
    files: std::vec::IntoIter<FileToRead>,
    /// The file that is being read.
    open: Option<(FileToRead, Box<dyn Rows>)>,
    wanted: VbucketSet,
    /// The number of rows of each partition so far.
    rows: Vec<u64>,
    /// Everything that was read so far, the rows of other partitions too.
    read: FilesRead,
}

/// Some rows.
#[derive(Debug, Default)]
pub struct Piece {
    /// In the order of the files.
    pub rows: Vec<StoredDocument>,
    /// True if no more come.
    pub is_last: bool,
}

impl VersionReader {
    /// A reader of the wanted ones of so many partitions.
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
        let read = FilesRead { files: found.len() as u32, ..FilesRead::default() };
        let found = found.into_iter();
        let rules = RowRules { id: files.id.clone(), document_bytes_max };
        let rows = vec![0; usize::from(partitions)];
        Ok(Self { fs, rules, files: found, open: None, wanted, rows, read })
    }

    /// The number of rows of a partition so far.
    pub fn rows_of(&self, partition: VbucketId) -> u64 {
        self.rows[usize::from(partition.0)]
    }

    /// Everything that was read so far.
    pub fn read(&self) -> FilesRead {
        self.read
    }

    /// The next rows, about the given number of bytes. An error names file and place.
    pub fn next_piece(&mut self, bytes_max: usize) -> Result<Piece> {
        let mut piece = Piece::default();
        let (mut bytes, mut looked_at) = (0, 0);
        while bytes < bytes_max && looked_at < LOOK_AT_BYTES {
            let Some((file, rows)) = &mut self.open else {
                match self.files.next() {
                    Some(file) => self.begin(file)?,
                    None => {
                        piece.is_last = true;
                        return Ok(piece);
                    }
                }
                continue;
            };
            let next = rows.next_row().map_err(|mut error| {
                error.message = format!("{} {}", file.name, error.message);
                error
            })?;
            let Some(row) = next else {
                self.open = None;
                continue;
            };
            let partition = vbucket_of(&row.id, self.rows.len() as u16);
            let row_bytes = row.id.len() + row.document.len() + ROW_OVERHEAD_BYTES;
            looked_at += row_bytes;
            self.read.add(&row.id, &row.document);
            let number = &mut self.rows[usize::from(partition.0)];
            *number += 1;
            if self.wanted.contains(partition) {
                bytes += row_bytes;
                let (id, document, seqno) = (row.id, row.document, Seqno(*number));
                piece.rows.push(StoredDocument { id, seqno, document });
            }
        }
        Ok(piece)
    }

    fn begin(&mut self, file: FileToRead) -> Result<()> {
        let rows =
            open_rows(&*self.fs, &file, &self.rules).map_err(|error| error.context(&file.name))?;
        self.open = Some((file, rows));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proto::env::{Env, OpenMode};

    use super::*;

    fn put(env: &Env, path: &Path, text: &str) {
        let file = env.fs.open(path, OpenMode::Create).expect("created");
        file.write_all_at(text.as_bytes(), 0).expect("written");
    }

    #[test]
    fn rows_are_numbered_within_their_partition_whatever_else_is_wanted() {
        let (dir, env) = (tempfile::tempdir().expect("a directory"), Env::real());
        let lines = |n: std::ops::Range<u32>| -> String {
            n.map(|n| format!("{{\"id\":{}}}\n", n % 70)).collect()
        };
        put(&env, &dir.path().join("a1.jsonl"), &lines(0..50));
        put(&env, &dir.path().join("a2.jsonl"), &lines(50..100));
        let read = |wanted: &[u16], bytes| {
            let files = Files { pattern: "a*.jsonl".into(), id: "id".into() };
            let wanted = (wanted.iter().copied().map(VbucketId).collect(), 4);
            let fs = Arc::clone(&env.fs);
            let mut reader =
                VersionReader::new(fs, Some(dir.path()), &files, wanted, 100).expect("files");
            let mut all = Vec::new();
            loop {
                let piece = reader.next_piece(bytes).expect("rows");
                all.extend(piece.rows);
                if piece.is_last {
                    let counts = (0..4).map(|p| reader.rows_of(VbucketId(p)));
                    return (all, counts.collect::<Vec<_>>(), reader.read());
                }
            }
        };
        let (all, counts, whole) = read(&[0, 1, 2, 3], 1);
        assert_eq!((all.len(), counts.iter().sum::<u64>()), (100, 100));
        assert_eq!((whole.files, whole.rows), (2, 100));
        for partition in 0..4 {
            let of = |row: &&StoredDocument| vbucket_of(&row.id, 4) == VbucketId(partition);
            let expected: Vec<_> = all.iter().filter(of).cloned().collect();
            let numbers: Vec<u64> = expected.iter().map(|row| row.seqno.0).collect();
            assert_eq!(numbers, (1..=counts[usize::from(partition)]).collect::<Vec<_>>());
            let (alone, counts_alone, read) = read(&[partition], 1 << 20);
            assert_eq!(alone, expected, "the same for each holder");
            assert_eq!((&counts_alone, read), (&counts, whole), "whatever a holder wants");
        }
    }

    #[test]
    fn an_error_names_the_file_and_the_place() {
        let (dir, env) = (tempfile::tempdir().expect("a directory"), Env::real());
        put(&env, &dir.path().join("a.jsonl"), "{\"id\":1}\n");
        put(&env, &dir.path().join("b.jsonl"), "{\"id\":1}\n{\"x\":1}\n");
        let files = Files { pattern: "*.jsonl".into(), id: "id".into() };
        let wanted = || (VbucketSet::all(1), 1);
        let new = |dir| VersionReader::new(Arc::clone(&env.fs), dir, &files, wanted(), 100);
        let error = new(Some(dir.path())).expect("files").next_piece(1 << 20).expect_err("bad");
        assert!(error.message.starts_with("b.jsonl line 2: "), "{error}");
        let error = new(None).err().expect("no directory");
        assert!(error.hint.is_some_and(|hint| hint.contains("--files-dir")));
    }
}
