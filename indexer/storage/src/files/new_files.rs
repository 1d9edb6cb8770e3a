//! Ownership of new fragments from their write until a manifest names them.

use std::ops::Deref;

use crate::files::data_files::{DataFiles, NewFragment};

/// New fragments that no manifest names yet. Dropping this value deletes them, so that an error
/// before the write of the manifest leaves no file.
pub struct UnnamedFragments<'a> {
    files: &'a DataFiles,
    fragments: Vec<NewFragment>,
}

impl<'a> UnnamedFragments<'a> {
    /// Takes ownership of new fragments.
    pub fn new(files: &'a DataFiles, fragments: Vec<NewFragment>) -> Self {
        Self { files, fragments }
    }

    /// Adds further fragments.
    pub fn extend(&mut self, more: Vec<NewFragment>) {
        self.fragments.extend(more);
    }

    /// Returns the fragments, which the caller owns from now on and must delete itself. Must be
    /// called before the write of a manifest that names them: after an error that manifest may be
    /// on disk.
    pub fn into_fragments(mut self) -> Vec<NewFragment> {
        std::mem::take(&mut self.fragments)
    }
}

impl Deref for UnnamedFragments<'_> {
    type Target = [NewFragment];

    fn deref(&self) -> &[NewFragment] {
        &self.fragments
    }
}

impl Drop for UnnamedFragments<'_> {
    fn drop(&mut self) {
        self.files.discard(std::mem::take(&mut self.fragments));
    }
}
