//! Finds the files that a pattern selects, and their formats.

use std::path::{Path, PathBuf};

use proto::env::FileSystem;
use proto::{Error, ErrorCode, Result};

/// The list of the endings that a file may have, for error messages.
const ENDINGS: &str = ".jsonl, .ndjson, .csv (each also with .zst behind it), or .parquet";

/// The format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A JSON object in each line.
    JsonLines {
        /// True if the file is compressed by zstd.
        is_compressed: bool,
    },
    /// Records after a header.
    Csv {
        /// True if the file is compressed by zstd.
        is_compressed: bool,
    },
    /// Parquet, which has its own compression.
    Parquet,
}

impl Format {
    /// Returns the format that the ending of a file name means; `None` if the ending is unknown.
    pub fn of_name(name: &str) -> Option<Self> {
        let (text, is_compressed) = match name.strip_suffix(".zst") {
            Some(text) => (text, true),
            None => (name, false),
        };
        match text.rsplit_once('.')?.1 {
            "jsonl" | "ndjson" => Some(Self::JsonLines { is_compressed }),
            "csv" => Some(Self::Csv { is_compressed }),
            "parquet" if !is_compressed => Some(Self::Parquet),
            _ => None,
        }
    }
}

/// A file from which a version of a data set is loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileToRead {
    /// The path of the file.
    pub path: PathBuf,
    /// The name of the file below the directory of files, for errors.
    pub name: String,
    /// The format of the file.
    pub format: Format,
}

/// Returns the files that a pattern selects, in the order of their names. An error if there are
/// none.
pub fn find_files(fs: &dyn FileSystem, dir: &Path, pattern: &str) -> Result<Vec<FileToRead>> {
    let (above, last) = split(pattern)?;
    let within = match above {
        Some(above) => dir.join(above),
        None => dir.to_path_buf(),
    };
    let none = |why: &str| {
        let what = format!("no file of {pattern:?} is in the directory {}{why}", dir.display());
        Error::new(ErrorCode::InvalidParameter, what)
            .with_hint("each projector reads the files below its own files_dir")
    };
    let mut names = match fs.list(&within) {
        Ok(found) => found.into_iter().filter_map(|path| name_if_matching(&path, last)).collect(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(none(&format!(": {error}"))),
    };
    names.sort();
    if names.is_empty() {
        return Err(none(""));
    }
    let file = |last: String| {
        let name = above.map_or_else(|| last.clone(), |above| format!("{above}/{last}"));
        let Some(format) = Format::of_name(&last) else {
            let what = format!("{name}: the ending tells no format; it must be {ENDINGS}");
            return Err(Error::new(ErrorCode::InvalidParameter, what));
        };
        let path = regular_file(fs, dir, (&within.join(&last), &name))?;
        Ok(FileToRead { path, name, format })
    };
    names.into_iter().map(file).collect()
}

/// Returns the path of a file with all symbolic links resolved. An error if the file is not a
/// regular file, or not below the directory of files: a user with write access to that directory
/// must not make the projector read other files.
fn regular_file(fs: &dyn FileSystem, dir: &Path, (path, name): (&Path, &str)) -> Result<PathBuf> {
    let bad = |why: &str, hint: &str| {
        let what = format!("{name} {why}");
        Err(Error::new(ErrorCode::InvalidParameter, what).with_hint(hint.to_owned()))
    };
    let leads = |path: &Path| fs.resolve(path).map_err(|error| Error::from(error).context(name));
    let (dir, file) = (leads(dir)?, leads(path)?);
    if !file.path.starts_with(&dir.path) {
        return bad(
            "leads out of the directory of files",
            "put the file itself there, or a link to one within the directory",
        );
    }
    if !file.is_file {
        return bad("is no regular file", "narrow the pattern, or remove what is no file of rows");
    }
    Ok(file.path)
}

/// Splits a pattern into its directories and its last component, which may have one `*`.
fn split(pattern: &str) -> Result<(Option<&str>, &str)> {
    let bad = |why: &str| {
        let what = format!("the pattern {pattern:?} {why}");
        Err(Error::new(ErrorCode::InvalidParameter, what).with_hint(
            "give a path below the projectors' files_dir, with at most one `*` in its last part: 'people/2026-*.jsonl'",
        ))
    };
    if pattern.starts_with('/') {
        return bad("is an absolute path");
    }
    for part in pattern.split('/') {
        match part {
            "" => return bad("has an empty part"),
            "." | ".." => return bad("leads through `.` or `..`"),
            part if part.contains(['\0', '\\']) => return bad("has a backslash or a zero byte"),
            _ => {}
        }
    }
    let (above, last) = match pattern.rsplit_once('/') {
        Some((above, last)) => (Some(above), last),
        None => (None, pattern),
    };
    if above.is_some_and(|above| above.contains('*')) {
        return bad("has a `*` that is not in its last part");
    }
    if last.matches('*').count() > 1 {
        return bad("has more than one `*`");
    }
    Ok((above, last))
}

/// Returns the name of a file if the last component of a pattern matches it.
fn name_if_matching(path: &Path, last: &str) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    let is_meant = match last.split_once('*') {
        None => name == last,
        Some((begin, end)) => {
            name.len() >= begin.len() + end.len()
                && name.starts_with(begin)
                && name.ends_with(end)
                // As in a shell: a name that begins with a dot is hidden.
                && (!name.starts_with('.') || begin.starts_with('.'))
        }
    };
    is_meant.then(|| name.to_owned())
}
