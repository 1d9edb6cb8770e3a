//! The documents that a commit has looked up before it is numbered.
//!
//! While a group is numbered, all other writers of the bucket wait. The many look-ups of a large
//! commit would delay them. So its documents are looked up before, at certain positions of the
//! bucket, and only those that were changed after these positions are looked up again.

use proto::model::cut::Cut;
use proto::model::ids::hash_id;

use super::transaction::LastChange;

/// The number of changes above which a commit looks its documents up before it is numbered.
pub const LOOK_UP_ABOVE: usize = 1_000;

/// The documents of a commit as of certain positions.
pub struct LookedUp {
    /// The positions of the look-up.
    pub ends: Cut,
    /// True for each document that existed, for the changes whose outcome depends on that.
    pub exists: Vec<bool>,
    /// The hash of each change's id, and the index of the change, ordered by hash.
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
