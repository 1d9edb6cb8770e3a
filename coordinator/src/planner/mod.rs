//! The planner: chooses the nodes of slices.
//!
//! [`place`] chooses the nodes of a new index. [`plan`] moves slices of indexes that serve scans.
//! Both are pure functions of their arguments.
//!
//! The load of a slice is its entries and bytes, not its scans. A plan never swaps two slices,
//! since each slice has at most one move.

mod draft;
mod place;
mod rebalance;
mod view;

pub use place::{NodeLoad, check_enough, choose_node, place_slices, replace_copy};
pub use rebalance::{Goal, plan};
pub use view::{ClusterView, Health, IndexView, NodeView, SliceView};
