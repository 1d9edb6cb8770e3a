//! Finds the retired generations (replaced by a newer one) that no scan, transaction or token can
//! read any more.
//!
//! A router's heartbeat reports the oldest catalog by which one of its scans, transactions or
//! tokens has chosen the generations that it reads (`RouterReport::reads_since`). When all
//! routers report a catalog that includes the switch, the old generation has no reader and gets
//! no new one, so it is dropped. A silent router has no leases and delays nothing. No lease
//! counts for longer than [`LEASE_AGE_MS_MAX`], so no retired generation stays for much longer. A
//! new leader starts without this knowledge and waits for the next heartbeats.

use std::collections::{BTreeMap, BTreeSet};

use proto::model::ids::LocalIndexId;
use proto::model::index::{IndexInfo, IndexState};
use proto::model::node::Role;
use proto::plant::{self, Plant};
use proto::rpc::api::LEASE_AGE_MS_MAX;
use proto::rpc::command::{Command, DropGeneration};

use crate::leader::epochs::horizon::{KEEP_WHOLE_MS, LEASE_MS};
use crate::leader::nodes::heartbeats::Heartbeats;
use crate::leader::plan::Plan;
use crate::state::StateContext;

/// The interval between two checks, in ms.
const LOOK_EVERY_MS: u64 = 1_000;

/// The leader's memory of retired generations.
#[derive(Debug, Default)]
pub(in crate::leader) struct RetiredGenerations(BTreeMap<LocalIndexId, RetiredGeneration>);

/// The leader's memory of one retired generation.
#[derive(Debug)]
struct RetiredGeneration {
    since_ms: u64,
    /// A catalog in which the generation is retired.
    catalog_cas: u64,
    /// The time since which all routers report a later catalog, in ms; `None` if some do not.
    past_since_ms: Option<u64>,
}

impl RetiredGenerations {
    pub(in crate::leader) fn plan(
        &mut self,
        state: &StateContext,
        heartbeats: &Heartbeats,
        now_ms: u64,
        plan: &mut Plan,
    ) {
        let records = state.indexes().map(|record| &record.info);
        let retired: BTreeSet<LocalIndexId> = records
            .filter(|info| info.state == IndexState::Retired && !is_of_older_version(state, info))
            .map(|info| info.local_id())
            .collect();
        self.0.retain(|id, _| retired.contains(id));
        if retired.is_empty() {
            return;
        }
        plan.plan_again_at(now_ms + LOOK_EVERY_MS);
        for id in retired {
            let catalog_cas = state.catalog_cas();
            let fresh = RetiredGeneration { since_ms: now_ms, catalog_cas, past_since_ms: None };
            let seen = self.0.entry(id).or_insert(fresh);
            if plant::is(Plant::RetiredDropped) || has_no_reader(seen, state, heartbeats, now_ms) {
                plan.commands.push(Command::DropGeneration(DropGeneration { generation: id }));
            }
        }
    }
}

/// Returns true if a generation belongs to an older version of a data set, with which it will be
/// dropped ([`crate::leader::versions`]).
fn is_of_older_version(state: &StateContext, info: &IndexInfo) -> bool {
    let version = state.version_of(info.bucket);
    version.is_some_and(|(data_set, _)| state.current_bucket(data_set) != info.bucket)
}

/// Returns true if a retired generation has no reader any more.
fn has_no_reader(
    seen: &mut RetiredGeneration,
    state: &StateContext,
    heartbeats: &Heartbeats,
    now_ms: u64,
) -> bool {
    let age_ms = now_ms.saturating_sub(seen.since_ms);
    if age_ms >= LEASE_AGE_MS_MAX + LEASE_MS {
        return true;
    }
    let mut routers = state.nodes().filter(|node| node.role == Role::Router);
    let are_past = routers.all(|router| {
        let last = heartbeats.router(router.id);
        let is_past = last.is_some_and(|last| last.reads_since >= seen.catalog_cas);
        is_past || heartbeats.silent_ms(router.id, now_ms) >= LEASE_MS
    });
    if !are_past {
        seen.past_since_ms = None;
        return false;
    }
    // A statement that has chosen the generation has this long to come to its router.
    let since_ms = *seen.past_since_ms.get_or_insert(now_ms);
    now_ms.saturating_sub(since_ms) >= KEEP_WHOLE_MS
}

#[cfg(test)]
#[path = "retired_tests.rs"]
mod tests;
