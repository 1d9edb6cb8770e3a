//! Change of column groups, which keeps the order of versions.
//!
//! A slice's columns (the entry itself, the included values, the back index) are divided into
//! groups, and each group has its own list of fragments. When columns move between groups, the
//! lists are rebuilt:
//!
//! 1. All lists are merged into one order of the slice's fragments that agrees with each list. So
//!    each *column* keeps its chain: the fragments that are read for it, in the order of their
//!    versions.
//! 2. Each new group takes, in that order, the fragments that were read for one of its columns,
//!    restricted to these columns.
//!
//! The restriction is essential. A fragment can hold values of a column that moved to another group
//! and were merged there since. Such values are outdated or deleted, and must never be read again,
//! whichever group the column moves to. Tests contain two histories that fail without the
//! restriction.
//!
//! **The merge of lists never finds a cycle**, because all lists of a slice are parts of one common
//! order of its fragments. A new fragment is added at the end of that order, a backfilled one at
//! the beginning. A compaction puts its output in the place of its last input. The inputs are
//! neighbours in one list, so all other fragments keep their order relative to the output, and no
//! other list has the output. A removal of items changes no order. A change of groups takes all new
//! lists from one order. For that reason it merges the lists of *all* old groups, not only of those
//! that share columns with a new group: otherwise two groups could order the same fragments
//! differently, compactions would fix both orders in new fragments, and a later change could find a
//! cycle. So a cycle in a file is damage, and an error.

use proto::Result;

use crate::manifest::lists::{ListItem, SliceLists};
use crate::manifest::order::common_order;
use crate::rows::columns::Columns;

/// Returns the lists of a slice for other column groups. Columns that are in no new group are
/// dropped. `Corrupt` if the lists have no common order.
pub fn regroup(lists: &SliceLists, new_groups: &[Columns]) -> Result<SliceLists> {
    let order = common_order(lists)?;
    let mut new_lists = SliceLists::new(new_groups);
    for node in order {
        for group in &mut new_lists.groups {
            let columns = node.columns.intersection(group.columns);
            if !columns.is_empty() {
                group.items.push(ListItem { columns, ..node.item.clone() });
            }
        }
    }
    new_lists.check()?;
    Ok(new_lists)
}
