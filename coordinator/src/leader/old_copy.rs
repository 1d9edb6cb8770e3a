//! Recognizes a coordinator whose data directory is an older copy of itself.
//!
//! Such a log gives numbers again that other processes know already: epochs (I6), catalogs, buckets and indexes. Nothing in the log
//! shows that, but the heartbeats do: an indexer has applied an epoch that the state does not have, or a process has
//! taken over a newer catalog. Then no epoch is published and no definition changes, until an operator restores a newer
//! copy or starts a member with `--skip-epochs` (the state's `skip`).
//!
//! The leader's own copy of the state may lack the last commands for a moment after an election, so only evidence that
//! stays for a while is logged. It is acted upon at once.
//!
//! A coordinator with several members cannot fall behind this way, since a majority has every command. A lone one publishes
//! no epoch before the indexers of the bucket have reported, and changes no definition before all indexers and projectors
//! have, or have been silent for [`SILENT_MS_MAX`].

use proto::model::ids::Epoch;
use proto::model::index::IndexState;
use proto::model::node::Role;
use proto::model::rollback::NewestKnown;
use proto::{Error, ErrorCode};

use super::heartbeats::{Heartbeats, SILENT_MS_MAX};
use crate::state::{BucketState, StateContext};

/// The begin of the evidence for an older copy.
#[derive(Debug, Default)]
pub(super) struct OldCopy {
    since_ms: Option<u64>,
    logged: bool,
}

/// The way out of an older copy.
const WAY_OUT: &str = "restore the newest copy of the coordinator's data directory; if there is none, start the coordinator once with \
                       --skip-epochs: all indexes are rebuilt from the documents, and what was defined since the copy is lost";

impl OldCopy {
    /// True if the evidence has stayed for so long that it is no moment of a new leader.
    pub(super) fn is_lasting(&self) -> bool {
        self.logged
    }

    /// Looks for evidence. Returns true if there is some.
    pub(super) fn look(
        &mut self,
        state: &StateContext,
        heartbeats: &Heartbeats,
        now_ms: u64,
    ) -> bool {
        let Some(evidence) = evidence(state, heartbeats) else {
            *self = Self::default();
            return false;
        };
        let since_ms = *self.since_ms.get_or_insert(now_ms);
        if !self.logged && now_ms.saturating_sub(since_ms) >= SILENT_MS_MAX {
            self.logged = true;
            tracing::error!("{}", error(&evidence, true));
        }
        true
    }
}

/// The error of a call that an older copy refuses; a caller may try again as long as the evidence may be gone in a moment.
pub(super) fn error(evidence: &str, is_lasting: bool) -> Error {
    let what = format!("the coordinator was restored from an older copy: {evidence}");
    let code = if is_lasting { ErrorCode::OlderCopy } else { ErrorCode::Unavailable };
    Error::new(code, what).with_hint(WAY_OUT)
}

/// The evidence that this coordinator is an older copy, if there is any.
pub(super) fn evidence(state: &StateContext, heartbeats: &Heartbeats) -> Option<String> {
    let of_buckets = state.buckets().find_map(|(_, bucket)| newer_epoch(bucket, heartbeats));
    of_buckets.or_else(|| newer_catalog(state, heartbeats))
}

/// Describes an epoch of a bucket that a node has applied and the state does not have.
fn newer_epoch(bucket: &BucketState, heartbeats: &Heartbeats) -> Option<String> {
    let known = bucket.epochs.last().epoch;
    let (applied, node) = heartbeats.newest_applied(bucket.info.id)?;
    (applied > known).then(|| {
        format!(
            "bucket \"{}\" gets no new epochs, because node {node} has applied epoch {applied} and the newest that \
             this coordinator knows is {known}",
            bucket.info.name
        )
    })
}

fn newer_catalog(state: &StateContext, heartbeats: &Heartbeats) -> Option<String> {
    let known = state.catalog_cas();
    let told = heartbeats.nodes.iter().map(|(node, last)| (last.heartbeat.catalog_cas, *node));
    let (newest, node) = told.max()?;
    (newest > known).then(|| {
        format!("node {node} has seen change {newest} of the catalog, and the newest that this coordinator knows is {known}")
    })
}

/// The newest numbers that processes have reported.
pub(super) fn newest_known(heartbeats: &Heartbeats) -> NewestKnown {
    let beats = || heartbeats.nodes.values().map(|last| &last.heartbeat);
    let applied = beats().flat_map(|beat| &beat.buckets).map(|progress| progress.applied);
    let leased = beats().flat_map(|beat| &beat.leases).map(|(_, epoch)| *epoch);
    NewestKnown {
        epoch: applied.chain(leased).max().unwrap_or(Epoch(0)),
        catalog_cas: beats().map(|beat| beat.catalog_cas).max().unwrap_or(0),
    }
}

/// True if each indexer with slices of a bucket has reported in this term, or was silent for too long.
pub(super) fn have_reported(
    state: &StateContext,
    heartbeats: &Heartbeats,
    bucket: &BucketState,
    now_ms: u64,
) -> bool {
    let indexes = state.indexes().map(|record| &record.info);
    let fed = indexes.filter(|i| i.bucket == bucket.info.id && i.state != IndexState::Pending);
    let mut hosts = fed.flat_map(|index| index.topology.placement.iter().flatten());
    heartbeats.term_ms(now_ms) >= SILENT_MS_MAX
        || hosts.all(|node| heartbeats.nodes.contains_key(node))
}

/// True if all indexers and projectors have reported in this term, or some were silent for too long.
pub(super) fn all_have_reported(
    state: &StateContext,
    heartbeats: &Heartbeats,
    now_ms: u64,
) -> bool {
    let mut nodes = state.nodes().filter(|n| matches!(n.role, Role::Indexer | Role::Projector));
    heartbeats.term_ms(now_ms) >= SILENT_MS_MAX
        || nodes.all(|node| heartbeats.nodes.contains_key(&node.id))
}

#[cfg(test)]
#[path = "old_copy_tests.rs"]
mod tests;
