//! Where slices go.
//!
//! [`place`] chooses for a new index, [`plan`] for indexes that serve scans. Both are pure: what they are
//! given says all, and the same gives the same.

mod draft;
mod place;
mod rebalance;
mod view;

pub use place::{Load, check_enough, choose, place, replace_copy};
pub use rebalance::{Goal, plan};
pub use view::{ClusterView, Health, IndexView, NodeView, SliceView};
