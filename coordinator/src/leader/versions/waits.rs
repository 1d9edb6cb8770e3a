//! The projectors that lack partitions of a version, why they do, and whether the version waits
//! for them.
//!
//! A version becomes current when the projectors that load it have their partitions, so that each
//! partition has as many copies as `replication` says. A projector that is silent, reports an
//! error, or has made no progress for [`STUCK_MS`] does not delay the switch: it loads its
//! missing partitions afterwards. SHOW VERSIONS lists all of these projectors.

use std::collections::BTreeMap;

use proto::model::data_set::{DataSet, Version, VersionStage};
use proto::model::ids::{BucketId, NodeId, VbucketId};
use proto::plant::{self, Plant};

use crate::leader::nodes::heartbeats::{Heartbeats, SILENT_MS_MAX};
use crate::state::StateContext;
use crate::state::capacity::limits::longest_prefix;

/// The time without progress, in ms, after which a projector's load no longer delays the switch.
/// The projector may be loading other versions before.
const STUCK_MS: u64 = 60_000;
/// The number of partitions that a text lists at most.
const NAMED_MAX: usize = 16;
/// The length limit of the text with the reasons why a version waits, in bytes.
const WAITS_BYTES_MAX: usize = 2_048;

/// A projector that lacks partitions of a version.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::leader) struct LateProjector {
    pub node: NodeId,
    pub partitions: Vec<VbucketId>,
    pub why: LateReason,
}

/// The reason why a projector lacks partitions.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::leader) enum LateReason {
    /// Loading has not begun.
    Waits,
    /// Loading is in progress; contains the number of rows read so far.
    Loads(u64),
    /// The projector reports an error; contains its text.
    Trouble(String),
    /// The projector has been silent for this many milliseconds.
    Silent(u64),
    /// The projector was removed from the cluster.
    Removed,
}

/// Returns the projectors that lack partitions of a version, ascending.
pub(in crate::leader) fn late_projectors(
    state: &StateContext,
    heartbeats: &Heartbeats,
    (set, version): (&DataSet, &Version),
    now_ms: u64,
) -> Vec<LateProjector> {
    let late_of = |node: NodeId| {
        let mine = version.partitions_of(node, set.replication);
        let lacks = |partition: &VbucketId| !version.holders(*partition).contains(&node);
        let partitions: Vec<_> = mine.into_iter().filter(lacks).collect();
        let why = || late_reason(state, heartbeats, (node, version.bucket), now_ms);
        (!partitions.is_empty()).then(|| LateProjector { node, partitions, why: why() })
    };
    version.nodes.iter().copied().filter_map(late_of).collect()
}

/// Returns the reason why a projector lacks partitions.
fn late_reason(
    state: &StateContext,
    heartbeats: &Heartbeats,
    (node, bucket): (NodeId, BucketId),
    now_ms: u64,
) -> LateReason {
    if state.node(node).is_none() {
        return LateReason::Removed;
    }
    let silent_ms = heartbeats.silent_ms(node, now_ms);
    if silent_ms >= SILENT_MS_MAX {
        return LateReason::Silent(silent_ms);
    }
    let loads = heartbeats.projector(node).map(|report| &report.loads);
    match loads.and_then(|loads| loads.iter().find(|load| load.bucket == bucket)) {
        None => LateReason::Waits,
        Some(load) => {
            load.trouble.clone().map_or(LateReason::Loads(load.steps), LateReason::Trouble)
        }
    }
}

/// The progress of loads, as the projectors have reported it.
#[derive(Debug, Default)]
pub(in crate::leader) struct Loads(BTreeMap<(BucketId, NodeId), LoadProgress>);

/// The last reported progress of a load, and its time.
#[derive(Debug, PartialEq, Eq)]
struct LoadProgress {
    steps: u64,
    since_ms: u64,
}

impl Loads {
    /// Records how many rows each projector has read of each loading version, and since when the
    /// number is unchanged.
    pub(in crate::leader) fn record_progress(
        &mut self,
        state: &StateContext,
        heartbeats: &Heartbeats,
        now_ms: u64,
    ) {
        let mut seen = BTreeMap::new();
        for (_, set) in state.data_sets() {
            let loading = set.versions.values().filter(|v| v.stage == VersionStage::Loading);
            for version in loading {
                for late in late_projectors(state, heartbeats, (set, version), now_ms) {
                    let steps = if let LateReason::Loads(steps) = late.why { steps } else { 0 };
                    let key = (version.bucket, late.node);
                    let before = self.0.remove(&key).filter(|before| before.steps == steps);
                    seen.insert(key, before.unwrap_or(LoadProgress { steps, since_ms: now_ms }));
                }
            }
        }
        self.0 = seen;
    }

    /// Returns true if the switch to a version waits for a projector.
    pub(in crate::leader) fn is_awaited(
        &self,
        bucket: BucketId,
        late: &LateProjector,
        now_ms: u64,
    ) -> bool {
        if plant::is(Plant::VersionInPart) {
            return false;
        }
        let seen = self.0.get(&(bucket, late.node));
        let gets_on = seen.is_none_or(|seen| now_ms < seen.since_ms + STUCK_MS);
        matches!(late.why, LateReason::Waits | LateReason::Loads(_)) && gets_on
    }
}

/// Returns messages for users: the projectors that lack partitions, which ones, and why.
pub(in crate::leader) fn late_projector_texts(late: &[LateProjector]) -> Vec<String> {
    let text = |late: &LateProjector| {
        let LateProjector { node, partitions, why } = late;
        let named = partitions.iter().take(NAMED_MAX).map(ToString::to_string);
        let named = named.collect::<Vec<_>>().join(", ");
        let more = if partitions.len() > NAMED_MAX { ", …" } else { "" };
        let why = match why {
            LateReason::Waits => "it has not begun to read the files".to_owned(),
            LateReason::Loads(steps) => format!("it is loading them, {steps} rows so far"),
            LateReason::Trouble(trouble) => format!("it reports: {trouble}"),
            LateReason::Silent(ms) => format!("it has been silent for {} s", ms / 1_000),
            LateReason::Removed => "it was removed".to_owned(),
        };
        format!("projector {node} lacks partitions {named}{more}: {why}")
    };
    late.iter().map(text).collect()
}

/// Returns the beginning of a text about a version, cut to [`WAITS_BYTES_MAX`].
pub(in crate::leader) fn shortened(text: &str) -> String {
    longest_prefix(text, WAITS_BYTES_MAX).to_owned()
}
