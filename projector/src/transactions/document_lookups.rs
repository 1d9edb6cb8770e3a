//! The result of looking up the documents of a large commit before it is numbered.
//!
//! While a group is numbered, all other writers of the bucket wait, and the many look-ups of a
//! large commit would delay them. So its documents are looked up earlier, as of some positions of
//! the bucket. When the commit is numbered, only the documents that were changed after these
//! positions are looked up again.

use proto::model::cut::Cut;
use proto::model::ids::hash_id;

use super::transaction::LastChange;

/// The number of changes above which a commit looks up its documents before it is numbered.
pub const LOOK_UP_ABOVE: usize = 1_000;

/// The result of looking up the documents of a commit, as of some positions of the bucket.
pub struct DocumentLookUps {
    /// The positions of the bucket at the look-up.
    pub ends: Cut,
    /// For each change, true if its document existed. Meaningful only for changes whose effect
    /// depends on that.
    pub exists: Vec<bool>,
    /// The hash of each changed document's id, with the index of the change, ordered by hash.
    by_hash: Vec<(u64, u32)>,
}

impl DocumentLookUps {
    /// Creates the result of a look-up of the documents of `changes`, as of the positions `ends`.
    pub fn new(ends: Cut, exists: Vec<bool>, changes: &[LastChange]) -> Self {
        let hashes = changes.iter().map(|changed| hash_id(&changed.mutation.id));
        let mut by_hash: Vec<_> = hashes.zip(0..).collect();
        by_hash.sort_unstable();
        Self { ends, exists, by_hash }
    }

    /// Returns the index of the change of a document; `None` if the commit does not change the
    /// document.
    pub fn change_of(&self, id: &str, changes: &[LastChange]) -> Option<usize> {
        let hash = hash_id(id);
        let from = self.by_hash.partition_point(|(other, _)| *other < hash);
        let same = self.by_hash[from..].iter().take_while(|(other, _)| *other == hash);
        let mut found = same.map(|(_, at)| *at as usize);
        found.find(|at| *changes[*at].mutation.id == *id)
    }
}
