//! `--skip-epochs`: the cluster continues after its coordinator was restored from an older copy.
//!
//! Nodes, tokens and routers then know numbers that this log has not given yet: epochs, revisions of indexes, catalogs,
//! buckets, indexes and moves. The command continues above all of them, by one bound that is [`SKIP`] above all numbers that were reported
//! to the leader and above all numbers in this state.
//!
//! - Each bucket begins a rollback to zero. Nodes may have applied epochs that this state does not know, or the same numbers
//!   with other cuts, so no epoch of the past is one that all nodes agree on. All slices are rebuilt from the source, which
//!   has lost nothing. The only epoch of a version of a data set is always equal, and stays.
//! - Catalogs and revisions of indexes continue above the bound, so that nodes accept them again.
//! - An embedded bucket continues with its leader alone, under a new term. The copies of an older state may have left since then, and
//!   such a projector lacks what was acknowledged later. The leading coordinator lets copies join again.
//! - Users continue above the bound as well, so that routers accept them again. No number of a user, a token or a password is given
//!   twice, or a session of the lost time would be taken for one of these. Users that were dropped after the copy are there again.
//! - Numbers of buckets that were made after the copy are never given again. These buckets were not dropped, so projectors keep their
//!   documents ([`Catalog::dropped_buckets`](proto::model::catalog::Catalog::dropped_buckets)).

use std::sync::Arc;

use proto::model::ids::{BucketId, Epoch, TokenId, TopologyNo, UserId};
use proto::model::rollback::{NewestNumbers, SKIP};
use proto::rpc::command::Outcome;
use proto::{Error, Result};

use crate::state::context::StateContext;
use crate::state::effect::{Change, Effect};

impl StateContext {
    pub(in crate::state) fn skip_epochs(&mut self, known: &NewestNumbers) -> Change {
        let to = self.bound_of(known)?;
        (self.last_bucket, self.last_index, self.last_move) = (to, to, to);
        (self.cas, self.skips.above) = (to, to);
        let revision = self.revision();
        for record in self.indexes.values_mut().chain(self.generations.values_mut()) {
            record.change(revision, self.unix_ms, |info| {
                Arc::make_mut(&mut info.topology).number = TopologyNo(to);
            });
        }
        let reporting = self.buckets.iter().filter(|(_, bucket)| bucket.info.source.reports());
        let buckets: Vec<BucketId> = reporting.map(|(id, _)| *id).collect();
        for bucket in buckets {
            self.skips.epochs.insert(bucket, Epoch(to));
            self.begin_rollback(bucket);
        }
        self.leave_leaders_alone(to);
        let users = Arc::make_mut(&mut self.users);
        (users.last_user, users.last_token) = (UserId(to), TokenId(to));
        Ok((Outcome::Done, vec![Effect::CatalogChanged, Effect::UsersChanged]))
    }

    /// The number above which everything continues.
    fn bound_of(&self, known: &NewestNumbers) -> Result<u64> {
        let epochs = self.buckets.values().map(|bucket| bucket.epochs.last().epoch.0);
        let own = [self.cas, self.revision(), self.last_bucket, self.last_index];
        let users = [self.users.last_user.0, self.users.last_token.0];
        let newest = epochs.chain(own).chain(users);
        let newest = newest.chain([self.last_move, known.epoch.0, known.catalog_cas]);
        let newest = newest.max().unwrap_or_default();
        newest
            .checked_add(SKIP)
            .ok_or_else(|| Error::internal("no number is left above the known ones"))
    }
}

#[cfg(test)]
#[path = "skip_tests.rs"]
mod tests;
