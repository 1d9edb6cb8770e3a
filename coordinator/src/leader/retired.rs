//! Finds the retired generations that nobody reads any more.
//!
//! A router that has the catalog of a switch begins nothing more on the old generation. Once all routers have that catalog, the bucket's
//! newest epoch is noted: whatever still reads the old generation, a scan, a transaction or a token, leases that epoch or an older one.
//! When no such lease is left, the generation goes. A router that is silent has no leases, and is not waited for. No lease counts for longer
//! than [`LEASE_AGE_MS_MAX`], so no generation stays for much longer. A new leader begins anew.

use std::collections::BTreeMap;

use proto::model::ids::{Epoch, LocalIndexId};
use proto::model::index::{IndexInfo, IndexState};
use proto::model::node::Role;
use proto::plant::{self, Plant};
use proto::rpc::api::LEASE_AGE_MS_MAX;
use proto::rpc::command::Command;

use super::heartbeats::Heartbeats;
use super::horizon::{KEEP_WHOLE_MS, LEASE_MS};
use super::leases::is_leased;
use super::plan::Plan;
use crate::state::StateContext;

/// The time between two looks.
const LOOK_EVERY_MS: u64 = 1_000;

/// The leader's memory of retired generations.
#[derive(Debug, Default)]
pub(super) struct Retired(BTreeMap<LocalIndexId, Seen>);

#[derive(Debug)]
struct Seen {
    since_ms: u64,
    /// A catalog that shows the generation as retired.
    catalog_cas: u64,
    /// The newest epoch of the bucket when all routers had that catalog.
    read_until: Option<Epoch>,
}

impl Retired {
    pub(super) fn plan(
        &mut self,
        state: &StateContext,
        heartbeats: &Heartbeats,
        now_ms: u64,
        plan: &mut Plan,
    ) {
        let records = state.indexes().map(|record| &*record.info);
        let retired: BTreeMap<LocalIndexId, &IndexInfo> = records
            .filter(|info| info.state == IndexState::Retired)
            .map(|info| (info.local_id(), info))
            .collect();
        self.0.retain(|id, _| retired.contains_key(id));
        if retired.is_empty() {
            return;
        }
        plan.look_at(now_ms + LOOK_EVERY_MS);
        for (id, info) in retired {
            let catalog_cas = state.catalog_cas();
            let fresh = Seen { since_ms: now_ms, catalog_cas, read_until: None };
            let seen = self.0.entry(id).or_insert(fresh);
            if is_over(seen, state, heartbeats, info, now_ms) {
                plan.commands.push(Command::DropGeneration(id));
            }
        }
    }
}

/// True if nobody reads a retired generation any more.
fn is_over(
    seen: &mut Seen,
    state: &StateContext,
    heartbeats: &Heartbeats,
    info: &IndexInfo,
    now_ms: u64,
) -> bool {
    let age_ms = now_ms.saturating_sub(seen.since_ms);
    if plant::is(Plant::RetiredDropped) {
        return true;
    }
    if age_ms >= LEASE_AGE_MS_MAX + LEASE_MS {
        return true;
    }
    let Some(bucket) = state.bucket(info.bucket) else { return false };
    if seen.read_until.is_none() && all_have(state, heartbeats, seen.catalog_cas, now_ms) {
        seen.read_until = Some(bucket.epochs.last().epoch);
    }
    let Some(epoch) = seen.read_until else { return false };
    let is_leased = || is_leased(state, heartbeats, (info.bucket, epoch), now_ms);
    // A scan has this long to get its lease, and a lease has to be reported.
    age_ms >= KEEP_WHOLE_MS && (bucket.epochs.last().horizon > epoch || !is_leased())
}

/// True if each router that lives has a catalog.
fn all_have(state: &StateContext, heartbeats: &Heartbeats, catalog_cas: u64, now_ms: u64) -> bool {
    let mut routers = state.nodes().filter(|node| node.role == Role::Router);
    routers.all(|router| {
        let last = heartbeats.nodes.get(&router.id);
        let has = last.is_some_and(|last| last.heartbeat.catalog_cas >= catalog_cas);
        has || heartbeats.silent_ms(router.id, now_ms) >= LEASE_MS
    })
}

#[cfg(test)]
#[path = "retired_tests.rs"]
mod tests;
