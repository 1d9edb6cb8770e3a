//! Keeps the commits of producers whole: an epoch has all parts of such a commit or none ([`proto::model::pushed`]).
//!
//! SYNC names the commits that no epoch has, with all of their parts, so any report with a part tells of the others. A chosen cut falls to
//! before a commit of which it lacks a part. A bucket for which nothing is left gets no epoch.

use proto::model::pushed::keep_whole;
use proto::plant::{self, Plant};

use super::joint::Chosen;
use super::stability::Stability;
use crate::state::StateContext;
use crate::state::epoch_history::advance;

/// Lets cuts fall until no commit of a producer is split.
pub(super) fn keep_pushed_whole(stability: &Stability, state: &StateContext, chosen: &mut Chosen) {
    if plant::is(Plant::PushedPartLeftOut) {
        return;
    }
    chosen.retain(|bucket, cut| {
        let Some(known) = state.bucket(*bucket).filter(|_| stability.has_pushed(*bucket)) else {
            return true;
        };
        let published = &known.epochs.last().cut;
        keep_whole(stability.pushed(*bucket), (published, &known.logs), cut);
        !advance(published, cut).is_empty()
    });
}

#[cfg(test)]
#[path = "pushed_tests.rs"]
mod tests;
