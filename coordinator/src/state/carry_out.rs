//! Passes the consequence of a command to all sub-states: the only place where a command of one
//! family changes other families.

use super::consequence::Consequence;
use super::context::StateContext;
use super::effect::Effect;

impl StateContext {
    /// Applies a consequence to all sub-states, in a fixed order. Returns the effects outside of
    /// the state.
    pub(super) fn carry_out(&mut self, consequence: &Consequence) -> Vec<Effect> {
        if let Consequence::NumbersSkipped(above) = consequence {
            self.clock.continue_above(*above);
        }
        let now = self.clock.now();
        self.buckets.on(consequence);
        let ended = self.indexes.on(consequence, now);
        self.moves.on(consequence, ended);
        self.versions.on(consequence);
        self.copies.on(consequence);
        let published = self.epochs.on(consequence, now);
        let are_users_changed = self.users.on(consequence);
        let own = match consequence {
            Consequence::BucketDropped(bucket) => Some(Effect::BucketDropped(*bucket)),
            Consequence::HistoryAdopted { bucket, .. } => Some(Effect::HistoryChanged(*bucket)),
            _ => None,
        };
        let users = are_users_changed.then_some(Effect::UsersChanged);
        own.into_iter().chain(published.map(Effect::EpochPublished)).chain(users).collect()
    }
}
