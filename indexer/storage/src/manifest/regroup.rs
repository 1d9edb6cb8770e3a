//! Column groups, and how a change of them keeps the order of versions.
//!
//! A slice's columns (the entry itself, the included values, the back index) are divided into groups;
//! each group has its own list of fragments. When columns move between groups, the lists are made
//! anew:
//!
//! 1. All lists are merged into one order of the slice's fragments, in which each list keeps its own.
//!    So each *column* keeps its chain: the fragments that count for it, in the order of its versions.
//! 2. Each new group takes, in that order, the fragments that counted for one of its columns, restricted
//!    to these.
//!
//! The restriction is what makes it right. A fragment may hold values of a column that moved away and
//! were merged elsewhere since: they are older than they look, or erased, and must never count again,
//! whatever group the column comes to. Two traces that go wrong without it are tests.
//!
//! **The merge never meets a cycle**: all lists of a slice are parts of one common order of its
//! fragments. A new fragment goes to the end of that order; a bulk-built one to its beginning. A merge
//! puts its output where its last input is: its inputs are neighbours in one list, so what precedes
//! them there precedes the output, and what follows, follows; no other list has it. Dropping items
//! changes no order. And a change of groups takes all its lists from one order. (That is why it merges
//! the lists of *all* groups, and not for each new group those that it takes columns from: two groups
//! might then order the same fragments differently, merges would weld these orders into new fragments,
//! and a later change could find a circle.) A circle in a file is damage, and told.

use proto::Result;

use crate::manifest::lists::{ListItem, SliceLists};
use crate::manifest::order::common_order;
use crate::rows::columns::Columns;

/// The lists of a slice for another division of its columns. What counted for a column that no new
/// group has is gone. `Corrupt` if the lists have no common order.
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
