//! Executes `--skip-epochs`: the cluster continues after its coordinator was restored from an
//! older copy.
//!
//! Nodes, tokens and routers then know numbers that this log has not given yet: epochs, revisions
//! of indexes, catalogs, buckets, indexes and moves. The command continues above all of them,
//! from one bound that is [`SKIP`] above all numbers that were reported to the leader and above
//! all numbers in this state.
//!
//! - Each bucket begins a rollback to zero. Nodes may have applied epochs that this state does
//!   not know, or the same numbers with other cuts. So there is no past epoch on which all nodes
//!   agree. All slices are rebuilt from the source, which has lost nothing. The only epoch of a
//!   version of a data set is always equal, and stays.
//! - Catalogs and revisions of indexes continue above the bound, so that nodes accept them again.
//! - An embedded bucket continues with its leader alone, under a new term. The copies in an older
//!   state may have left since then, and such a projector lacks mutations that were acknowledged
//!   later. The leading coordinator lets copies join again.
//! - Users continue above the bound as well, so that routers accept them again. No number of a
//!   user, a token or a password is given twice. Otherwise a session from the lost time could be
//!   taken for another user's. Users that were dropped after the copy exist again.
//! - Numbers of buckets that were made after the copy are never given again. These buckets were
//!   not dropped, so projectors keep their documents
//!   ([`Catalog::dropped_buckets`](proto::model::catalog::Catalog::dropped_buckets)).

use proto::model::ids::{BucketId, Epoch};
use proto::model::rollback::{NewestNumbers, SKIP};
use proto::rpc::command::{Outcome, SkipEpochs};
use proto::{Error, Result};

use crate::state::consequence::Consequence;
use crate::state::context::StateContext;
use crate::state::decisions::Decisions;
use crate::state::effect::{Apply, Change, Effect};

impl Apply for SkipEpochs {
    fn apply(&self, state: &mut StateContext, decided: &Decisions) -> Change {
        let to = bound_of(state, &decided.newest)?;
        state.carry_out(&Consequence::NumbersSkipped(to));
        let reporting = state.buckets.all().values().filter(|info| info.source.reports_position());
        let buckets: Vec<BucketId> = reporting.map(|info| info.id).collect();
        for bucket in buckets {
            state.epochs.set_skips_to(bucket, Epoch(to));
            let (logs, failover) = (None, None);
            state.carry_out(&Consequence::RollbackBegun { bucket, logs, failover });
        }
        Ok((Outcome::Done, vec![Effect::CatalogChanged, Effect::UsersChanged]))
    }
}

/// Returns the bound above which all further numbers begin; an error if it would be too large.
fn bound_of(state: &StateContext, known: &NewestNumbers) -> Result<u64> {
    let epochs = state.epochs.all().values().map(|known| known.history.last().epoch.0);
    let (now, users) = (state.clock.now(), state.users.current());
    let last = [state.buckets.last().0, state.indexes.last().0, state.moves.last().0];
    let own = [state.clock.cas(), now.revision, users.last_user.0, users.last_token.0];
    let newest = epochs.chain(last).chain(own).chain([known.epoch.0, known.catalog_cas]);
    let newest = newest.max().unwrap_or_default();
    newest
        .checked_add(SKIP)
        .ok_or_else(|| Error::internal("no number is left above the known ones"))
}

#[cfg(test)]
#[path = "skip_tests.rs"]
mod tests;
