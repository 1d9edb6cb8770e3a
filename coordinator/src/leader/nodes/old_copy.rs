//! Recognizes that the coordinator's data directory is an older copy of itself (restored from a
//! backup), and which calls must wait.
//!
//! The log of an older copy assigns numbers a second time that other processes already use:
//! epochs (I6), catalogs, buckets and indexes. Nothing in the log shows that, but the heartbeats
//! do: an indexer has applied an epoch that the state does not have, or a process has received a
//! newer catalog. This is called *evidence*. With evidence, no epoch is published and no
//! definition changes, until an operator restores a newer copy or starts a member with
//! `--skip-epochs` (the state's `skip`).
//!
//! The leader's own copy of the state may lack the last commands for a moment after an election.
//! So evidence is logged only if it lasts for a while, but calls are refused at once.
//!
//! A member that has followed or led an earlier term since its process began has every command
//! that a majority had then. Otherwise all members may be older copies. The first term is then
//! *held*: no epoch, no rollback and no definition before all indexers and projectors have
//! reported, or have been silent for `SILENT_MS_MAX`. A waiting scan gets no epoch either,
//! because an epoch of the copy may have a number that nodes know with another cut.
//!
//! Limits: a node that is silent for longer and returns later provides evidence then, but epochs
//! may have been published. The evidence of a catalog is its number alone, so it is lost once the
//! copy has made as many changes itself. Therefore, as long as there is evidence, only nodes that
//! are registered under the same address may join.

use proto::model::ids::Epoch;
use proto::model::node::Role;
use proto::model::rollback::NewestNumbers;
use proto::{Error, ErrorCode, Result};

use crate::leader::nodes::heartbeats::{Heartbeats, SILENT_MS_MAX};
use crate::state::{BucketView, StateContext};

/// The leader's knowledge about whether its own log is an older copy.
#[derive(Debug, Default)]
pub(in crate::leader) struct OldCopyDetection {
    /// True if epochs and definitions wait in this term until all nodes have reported.
    pub(in crate::leader) waits_for_reports: bool,
    /// The time of the first evidence.
    since_ms: Option<u64>,
    /// True once the evidence has lasted for [`SILENT_MS_MAX`] and was logged.
    logged: bool,
}

/// The advice for a coordinator that is an older copy of itself.
const WAY_OUT: &str = "restore the newest copy of the coordinator's data directory; if there is none, start the coordinator once with \
                       --skip-epochs: all indexes are rebuilt from the documents, and what was defined since the copy is lost";

impl OldCopyDetection {
    /// Returns true if the evidence has lasted so long that it cannot come from the short lag of
    /// a new leader.
    pub(in crate::leader) fn is_lasting(&self) -> bool {
        self.logged
    }

    /// Returns true as long as nodes may still report evidence, so that epochs and definitions
    /// wait.
    pub(in crate::leader) fn waits_for_more_reports(
        &self,
        state: &StateContext,
        heartbeats: &Heartbeats,
        now_ms: u64,
    ) -> bool {
        self.waits_for_reports && !all_have_reported(state, heartbeats, now_ms)
    }

    /// Searches the heartbeats for evidence, and logs evidence that lasts. Returns true if there
    /// is evidence, or if nodes may still report it.
    pub(in crate::leader) fn search_evidence(
        &mut self,
        state: &StateContext,
        heartbeats: &Heartbeats,
        now_ms: u64,
    ) -> bool {
        let Some(evidence) = old_copy_evidence(state, heartbeats) else {
            (self.since_ms, self.logged) = (None, false);
            return self.waits_for_more_reports(state, heartbeats, now_ms);
        };
        let since_ms = *self.since_ms.get_or_insert(now_ms);
        if !self.logged && now_ms.saturating_sub(since_ms) >= SILENT_MS_MAX {
            self.logged = true;
            tracing::error!("{}", error(&evidence, true));
        }
        true
    }
}

/// Returns the error for a call that the coordinator refuses because it is an older copy. A
/// caller may retry unless the evidence is lasting.
pub(in crate::leader) fn error(evidence: &str, is_lasting: bool) -> Error {
    let what = format!("the coordinator was restored from an older copy: {evidence}");
    let code = if is_lasting { ErrorCode::OlderCopy } else { ErrorCode::Unavailable };
    Error::new(code, what).with_hint(WAY_OUT)
}

/// Returns a text with the evidence that this coordinator is an older copy of itself; `None`
/// without evidence.
pub(in crate::leader) fn old_copy_evidence(
    state: &StateContext,
    heartbeats: &Heartbeats,
) -> Option<String> {
    let of_buckets = state
        .buckets()
        .find_map(|(id, bucket)| newer_epoch(bucket, state.skips_to(id), heartbeats));
    of_buckets.or_else(|| newer_catalog(state, heartbeats))
}

/// Returns a text about an epoch of a bucket that a node has applied and the state does not have;
/// `None` if there is no such epoch.
fn newer_epoch(bucket: BucketView<'_>, skips_to: Epoch, heartbeats: &Heartbeats) -> Option<String> {
    // A bucket of `--skip-epochs` continues above all of them once its rollback reaches that stage.
    let known = bucket.epochs.last().epoch.max(skips_to);
    let (applied, node) = heartbeats.newest_applied(bucket.info.id)?;
    (applied > known).then(|| {
        format!(
            "bucket \"{}\" gets no new epochs, because node {node} has applied epoch {applied} and the newest that \
             this coordinator knows is {known}",
            bucket.info.name
        )
    })
}

/// Returns a text about a catalog that a node has received and the state does not have; `None` if
/// there is no such catalog.
fn newer_catalog(state: &StateContext, heartbeats: &Heartbeats) -> Option<String> {
    let known = state.catalog_cas();
    let told = heartbeats.nodes.iter().map(|(node, last)| (last.heartbeat.catalog_cas, *node));
    let (newest, node) = told.chain(heartbeats.newest_stranger).max()?;
    (newest > known).then(|| {
        format!("node {node} has seen change {newest} of the catalog, and the newest that this coordinator knows is {known}")
    })
}

/// Returns the newest epoch and the newest catalog that processes have reported.
pub(in crate::leader) fn newest_reported_numbers(heartbeats: &Heartbeats) -> NewestNumbers {
    let applied = heartbeats.indexers().flat_map(|(_, report)| &report.buckets);
    let routers = heartbeats.nodes.values().filter_map(|last| last.heartbeat.report.router());
    let leased = routers.flat_map(|report| &report.leases).map(|(_, epoch)| *epoch);
    NewestNumbers {
        epoch: applied.map(|progress| progress.applied).chain(leased).max().unwrap_or(Epoch(0)),
        catalog_cas: (heartbeats.nodes.values().map(|last| last.heartbeat.catalog_cas))
            .chain(heartbeats.newest_stranger.map(|(catalog_cas, _)| catalog_cas))
            .max()
            .unwrap_or(0),
    }
}

/// Returns an error if a projector reports vbuckets of which the state names another owner.
/// `--skip-epochs` would then undo a hand-over that was made after the copy: the old owner has
/// removed its documents, and the new owner would remove them too.
pub(in crate::leader) fn check_owners(state: &StateContext, heartbeats: &Heartbeats) -> Result<()> {
    let strangers = heartbeats.stranger_owners.iter().map(|(node, owned)| (*node, owned));
    let known = heartbeats.nodes.keys();
    let known = known.filter_map(|node| Some((*node, &heartbeats.projector(*node)?.owned)));
    for (node, owned) in known.chain(strangers) {
        for (bucket, vbuckets) in owned {
            let Some(known) = state.bucket(*bucket) else { continue };
            let owner = |vbucket| known.info.assignment.owner(vbucket);
            let Some(vbucket) = vbuckets.iter().find(|vbucket| owner(*vbucket) != Some(node))
            else {
                continue;
            };
            let what = format!(
                "projector {node} owns vbucket {vbucket} of bucket \"{}\", and the older copy of the coordinator gives it to \
                 another one, which does not have its documents any more",
                known.info.name
            );
            return Err(Error::new(ErrorCode::OlderCopy, what)
                .with_hint("restore a copy of the coordinator that was made after the hand-over of the vbucket"));
        }
    }
    Ok(())
}

/// Returns true if all indexers and projectors have reported in this term, or the term is older
/// than [`SILENT_MS_MAX`].
pub(in crate::leader) fn all_have_reported(
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
