//! Keeps the commits of producers whole: an epoch has all parts of such a commit or none ([`proto::model::pushed_commit`]).
//!
//! SYNC names the commits that no epoch has, with all of their parts, so a report with one part names all the others. A chosen cut that
//! lacks a part of a commit moves back to before that commit. A bucket whose cut would move back to the previous epoch gets no epoch.

use proto::model::pushed_commit::keep_whole;
use proto::plant::{self, Plant};

use crate::leader::copies::joint::ChosenCuts;
use crate::leader::epochs::stability::Stability;
use crate::state::StateContext;
use crate::state::epochs::history::advance;

/// Moves cuts back until no commit of a producer is split.
pub(in crate::leader) fn keep_pushed_whole(
    stability: &Stability,
    state: &StateContext,
    chosen: &mut ChosenCuts,
) {
    if plant::is(Plant::PushedPartLeftOut) {
        return;
    }
    chosen.retain(|bucket, cut| {
        let Some(known) = state.bucket(*bucket).filter(|_| stability.has_pushed(*bucket)) else {
            return true;
        };
        let published = &known.epochs.last().cut;
        keep_whole(stability.pushed(*bucket), (published, known.logs), cut);
        !advance(published, cut).is_empty()
    });
}

#[cfg(test)]
#[path = "pushed_commits_tests.rs"]
mod tests;
