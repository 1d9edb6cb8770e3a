//! The memory of a bucket about the open commits of its producer, besides its record ([`super::pushed`]).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use proto::model::commits::TransactionEvent;
use proto::model::ids::ProducerTransactionId;
use proto::model::pushed::OpenCommits;
use tokio::time::Instant;

/// The memory of a bucket about open commits, besides its record.
pub(super) struct PushedState {
    /// Since when this process knows of them.
    known_since: BTreeMap<ProducerTransactionId, Instant>,
    /// Those of which all parts are durable.
    pub(super) complete: BTreeSet<ProducerTransactionId>,
}

impl PushedState {
    /// The state at the start of a process.
    pub fn of(open: &OpenCommits) -> Self {
        let since = open.iter().map(|commit| (commit.transaction, Instant::now()));
        Self { known_since: since.collect(), complete: BTreeSet::new() }
    }

    /// Notes what is about to be published.
    pub fn note(&mut self, events: &[TransactionEvent]) {
        for event in events {
            match event {
                TransactionEvent::Pushed(commit) => {
                    self.known_since.entry(commit.transaction).or_insert_with(Instant::now);
                    self.complete.remove(&commit.transaction);
                }
                TransactionEvent::PushedSettled(transaction) => {
                    self.known_since.remove(transaction);
                    self.complete.remove(transaction);
                }
                _ => {}
            }
        }
    }

    /// How long this process knows of an open commit.
    pub fn age(&self, transaction: ProducerTransactionId, now: Instant) -> Duration {
        let since = self.known_since.get(&transaction);
        since.map_or(Duration::ZERO, |since| now.duration_since(*since))
    }
}
