//! Which fragment files nobody can need any more.
//!
//! File ids grow and are never used twice, so age is a number. A file is garbage when no manifest names
//! it and none can come to name it. The second half is what members *check in* for: each says which of
//! the files it is writing, or has written and not yet put into a manifest, is the oldest; with none on
//! its way, the number that its next one will have. What is older than the oldest of all members is
//! never published, by anybody.
//!
//! A member that has not checked in may be publishing anything, so it blocks all deletion until it does,
//! or is removed. Removal *fences* it: its later check-ins are refused, and whoever took its word for
//! a manifest must refuse that too, since the files it names may be gone.
//!
//! The order on the caller's side: take the members' bound first, then list the directory, then read
//! the manifests. A file that was published in between is named by then; one that was not is above the
//! bound.

use std::collections::{BTreeMap, BTreeSet};

use proto::ids::NodeId;
use proto::{Error, ErrorCode, Result};

use super::manifest::FileId;

/// Who may publish files, and which.
#[derive(Clone, Debug, Default)]
pub struct Members {
    /// The oldest file that each may still publish; `None` until it has said so.
    oldest_pending: BTreeMap<NodeId, Option<FileId>>,
    removed: BTreeSet<NodeId>,
}

impl Members {
    /// A member is there, and blocks deletion until it checks in. One that was removed does not come
    /// back under the same number.
    pub fn join(&mut self, node: NodeId) -> Result<()> {
        if self.removed.contains(&node) {
            return Err(fenced(node));
        }
        self.oldest_pending.entry(node).or_insert(None);
        Ok(())
    }

    /// A member says which is the oldest file that it may still publish. This only grows.
    pub fn check_in(&mut self, node: NodeId, oldest_pending: FileId) -> Result<()> {
        if self.removed.contains(&node) {
            return Err(fenced(node));
        }
        let Some(said) = self.oldest_pending.get_mut(&node) else {
            return Err(Error::new(ErrorCode::Unknown, format!("node {node} is not a member")));
        };
        if let Some(before) = said.filter(|before| *before > oldest_pending) {
            return Err(Error::internal(format!(
                "node {node} may publish file {oldest_pending}, though it said {before} before"
            )));
        }
        *said = Some(oldest_pending);
        Ok(())
    }

    /// A member is gone for good: it blocks nothing any more, and nothing it says counts.
    pub fn remove_member(&mut self, node: NodeId) {
        self.oldest_pending.remove(&node);
        self.removed.insert(node);
    }

    /// Was a member removed? Its manifests are not to be believed.
    pub fn is_fenced(&self, node: NodeId) -> bool {
        self.removed.contains(&node)
    }

    /// No file below this one will be published; `None` while a member has not checked in, or nobody
    /// is there to say.
    pub fn bound(&self) -> Option<FileId> {
        let said: Option<Vec<FileId>> = self.oldest_pending.values().copied().collect();
        said?.into_iter().min()
    }
}

/// The files that can be deleted, of those on disk.
pub fn deletable(on_disk: &[FileId], named: &BTreeSet<FileId>, members: &Members) -> Vec<FileId> {
    let Some(bound) = members.bound() else { return Vec::new() };
    on_disk.iter().copied().filter(|file| *file < bound && !named.contains(file)).collect()
}

fn fenced(node: NodeId) -> Error {
    Error::new(ErrorCode::InvalidParameter, format!("node {node} was removed from the cluster"))
        .with_hint("start it with an empty data directory, as a new node")
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: NodeId = NodeId(1);
    const TWO: NodeId = NodeId(2);

    fn ids(ids: impl IntoIterator<Item = u64>) -> Vec<FileId> {
        ids.into_iter().map(FileId).collect()
    }

    /// Files 1 to 9, of which 2 and 5 are named.
    fn deleted(members: &Members) -> Vec<FileId> {
        deletable(&ids(1..10), &ids([2, 5]).into_iter().collect(), members)
    }

    #[test]
    fn what_is_named_or_may_be_published_stays() {
        let mut members = Members::default();
        members.join(ONE).unwrap();
        members.check_in(ONE, FileId(7)).unwrap();
        assert_eq!(deleted(&members), ids([1, 3, 4, 6]));
        members.check_in(ONE, FileId(10)).unwrap();
        assert_eq!(deleted(&members), ids([1, 3, 4, 6, 7, 8, 9]));
    }

    #[test]
    fn the_oldest_pending_file_of_all_members_counts() {
        let mut members = Members::default();
        members.join(ONE).unwrap();
        members.join(TWO).unwrap();
        members.check_in(ONE, FileId(9)).unwrap();
        members.check_in(TWO, FileId(4)).unwrap();
        assert_eq!(deleted(&members), ids([1, 3]));
    }

    #[test]
    fn a_member_that_has_not_checked_in_blocks_all_until_it_is_removed() {
        let mut members = Members::default();
        assert!(deleted(&members).is_empty(), "nobody is there to say what is pending");
        members.join(ONE).unwrap();
        members.check_in(ONE, FileId(9)).unwrap();
        members.join(TWO).unwrap();
        assert!(deleted(&members).is_empty());
        members.join(ONE).unwrap();
        members.remove_member(TWO);
        assert_eq!(deleted(&members), ids([1, 3, 4, 6, 7, 8]), "joining again forgets nothing");
    }

    #[test]
    fn a_removed_member_is_fenced() {
        let mut members = Members::default();
        members.join(ONE).unwrap();
        members.join(TWO).unwrap();
        members.check_in(ONE, FileId(9)).unwrap();
        members.remove_member(TWO);
        assert!(members.is_fenced(TWO) && !members.is_fenced(ONE));
        for refused in [members.check_in(TWO, FileId(3)), members.join(TWO)] {
            assert_eq!(refused.unwrap_err().code, ErrorCode::InvalidParameter);
        }
        assert_eq!(members.bound(), Some(FileId(9)));
    }

    #[test]
    fn a_member_cannot_go_back_behind_what_it_said() {
        let mut members = Members::default();
        assert_eq!(members.check_in(ONE, FileId(1)).unwrap_err().code, ErrorCode::Unknown);
        members.join(ONE).unwrap();
        members.check_in(ONE, FileId(5)).unwrap();
        members.check_in(ONE, FileId(5)).unwrap();
        assert!(members.check_in(ONE, FileId(4)).is_err());
        assert_eq!(members.bound(), Some(FileId(5)));
    }
}
