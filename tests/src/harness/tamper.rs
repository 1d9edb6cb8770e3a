//! Single faults in the files of a stopped process.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The contents of files by their paths below a directory.
pub type Files = BTreeMap<PathBuf, Vec<u8>>;

/// A kind of fault in a file.
#[derive(Clone, Copy, Debug)]
pub enum Fault {
    /// A flipped bit in the middle of the content.
    FlippedBit,
    /// A range of zeros.
    Zeroed,
    /// A file cut in the middle of its content.
    Cut,
    /// A file cut to length zero.
    CutToNothing,
    /// A removed file.
    Removed,
    /// An older copy in place of the file.
    OldCopy,
}

/// The faults of all kinds.
pub const FAULTS: [Fault; 6] = [
    Fault::FlippedBit,
    Fault::Zeroed,
    Fault::Cut,
    Fault::CutToNothing,
    Fault::Removed,
    Fault::OldCopy,
];

/// Returns the files below a directory.
pub fn read_files(dir: &Path) -> Files {
    let mut found = Files::new();
    let mut dirs = vec![dir.to_owned()];
    while let Some(next) = dirs.pop() {
        for entry in std::fs::read_dir(next).expect("a directory") {
            let path = entry.expect("an entry").path();
            match path.is_dir() {
                true => dirs.push(path),
                false => {
                    let bytes = std::fs::read(&path).expect("a file");
                    found.insert(path.strip_prefix(dir).expect("below").to_owned(), bytes);
                }
            }
        }
    }
    found
}

/// Writes files below a directory.
pub fn write_files(files: &Files, dir: &Path) {
    for (path, bytes) in files {
        let path = dir.join(path);
        std::fs::create_dir_all(path.parent().expect("a directory")).expect("it is created");
        std::fs::write(path, bytes).expect("it is written");
    }
}

/// Returns the files with a fault in one of them; `None` if the fault changes nothing.
pub fn damaged(files: &Files, old: &Files, path: &Path, fault: Fault) -> Option<Files> {
    let mut after = files.clone();
    let whole = files[path].clone();
    let content = whole.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    let mut bytes = whole.clone();
    match fault {
        Fault::FlippedBit => *bytes.get_mut(content / 2)? ^= 4,
        Fault::Zeroed => bytes[content / 3..content / 2].fill(0),
        Fault::Cut => bytes.truncate(content / 2),
        Fault::CutToNothing => bytes.clear(),
        Fault::Removed => {
            after.remove(path);
            return Some(after);
        }
        Fault::OldCopy => bytes = old.get(path)?.clone(),
    }
    let changes = bytes != whole;
    after.insert(path.to_owned(), bytes);
    changes.then_some(after)
}
