//! The documents that a commit has looked up before its turn to be numbered.
//!
//! While a group is numbered, all other writers of the bucket wait. A large commit would delay them by its many look-ups. So it looks them
//! up before, at certain positions of the bucket, and in its turn only those that were changed after these positions again.

use proto::model::cut::Cut;
use proto::model::ids::hash_id;

use super::transaction::LastChange;

/// Commits of more changes than this look their documents up before their turn.
pub const LOOK_UP_ABOVE: usize = 1_000;

/// The documents of a commit as they were at certain positions.
pub struct LookedUp {
    /// The positions.
    pub ends: Cut,
    /// For each change whose outcome depends on it: true if the document was there.
    pub exists: Vec<bool>,
    /// The hash of each change's id, and the change, in the order of hashes.
    by_hash: Vec<(u64, u32)>,
}

impl LookedUp {
    /// Documents of some changes.
    pub fn new(ends: Cut, exists: Vec<bool>, changes: &[LastChange]) -> Self {
        let hashes = changes.iter().map(|changed| hash_id(&changed.mutation.id));
        let mut by_hash: Vec<_> = hashes.zip(0..).collect();
        by_hash.sort_unstable();
        Self { ends, exists, by_hash }
    }

    /// The change of a document.
    pub fn change_of(&self, id: &str, changes: &[LastChange]) -> Option<usize> {
        let hash = hash_id(id);
        let from = self.by_hash.partition_point(|(other, _)| *other < hash);
        let same = self.by_hash[from..].iter().take_while(|(other, _)| *other == hash);
        let mut found = same.map(|(_, at)| *at as usize);
        found.find(|at| *changes[*at].mutation.id == *id)
    }
}
