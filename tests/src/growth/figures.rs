//! The measurements of a run, and their table.

use std::fmt::{self, Display, Formatter};

use serde::{Deserialize, Serialize};

use super::counts::{Flow, Kind, Party};
use super::observer::EpochTimes;
use super::scale::Scale;

/// The measurements of a cluster. Two runs of a seed have equal measurements, except for
/// [`Figures::processor`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// The size of the cluster.
    pub scale: Scale,
    /// The phase of the start: from the first process after the coordinators until the last index
    /// can be read.
    pub start: Phase,
    /// The phase without mutations.
    pub idle: Phase,
    /// The phase with mutations.
    pub load: Phase,
    /// The size of the catalog in bytes.
    pub catalog_bytes: u64,
    /// The number of pairs of an indexer and a bucket that it follows.
    pub followed: u64,
    /// The numbers of the router's finished and of its failed requests for an epoch.
    pub asked: (u64, u64),
    /// The times of epochs under load.
    pub epochs: EpochTimes,
    /// The processor time of the leader.
    pub processor: Processor,
}

/// The processor time of the leader in milliseconds per simulated second, which depends on the
/// machine. Without the encoding of messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Processor {
    /// The value without mutations.
    pub idle_ms: f64,
    /// The value with mutations.
    pub load_ms: f64,
}

/// The messages of a phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// The simulated duration in milliseconds.
    pub simulated_ms: u64,
    /// The messages by sender, receiver and kind.
    pub flows: Vec<Flow>,
    /// The number of log entries.
    pub log_entries: u64,
    /// The size of the log entries, in bytes.
    pub log_bytes: u64,
}

/// A rate of messages and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sum {
    /// The number of messages per second.
    pub messages: f64,
    /// The number of bytes per second.
    pub bytes: f64,
}

impl Phase {
    /// Returns the rate of the messages for which a condition is true.
    pub fn per_second(&self, chooses: impl Fn(&Flow) -> bool) -> Sum {
        let seconds = self.simulated_ms as f64 / 1_000.0;
        let sum = |sum: Sum, flow: &Flow| Sum {
            messages: sum.messages + flow.messages as f64 / seconds,
            bytes: sum.bytes + flow.bytes as f64 / seconds,
        };
        self.flows.iter().filter(|flow| chooses(flow)).fold(Sum::default(), sum)
    }

    /// Returns the rate of messages from and to the leader.
    pub fn through_leader(&self) -> Sum {
        self.per_second(|flow| flow.from == Party::Leader || flow.to == Party::Leader)
    }

    /// Returns the rate of messages of one kind from and to the leader.
    pub fn of_kind(&self, kind: Kind) -> Sum {
        self.per_second(|flow| {
            flow.kind == kind && (flow.from == Party::Leader || flow.to == Party::Leader)
        })
    }
}

impl Phase {
    fn write(&self, name: &str, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "  {name}, {} simulated ms", self.simulated_ms)?;
        for flow in &self.flows {
            let Flow { from, to, kind, .. } = *flow;
            let of =
                self.per_second(|other| (other.from, other.to, other.kind) == (from, to, kind));
            of.write(&format!("{from:?} > {to:?} {kind:?}"), "messages", f)?;
        }
        self.through_leader().write("through the leader", "messages", f)?;
        let each = 1_000.0 / self.simulated_ms as f64;
        let log =
            Sum { messages: self.log_entries as f64 * each, bytes: self.log_bytes as f64 * each };
        log.write("log", "entries", f)
    }
}

impl Sum {
    fn write(&self, name: &str, what: &str, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { messages, bytes } = *self;
        writeln!(f, "    {name:45} {messages:12.1} {what}/s {:>14} bytes/s", bytes as u64)
    }
}

impl Display for Figures {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Scale { indexers, buckets, vbuckets, slices, rate, .. } = self.scale;
        writeln!(
            f,
            "{indexers} indexers, {buckets} buckets of {vbuckets} vbuckets with an index of {slices} slices, \
             {rate} mutations/s in each; {} pairs of an indexer and a bucket",
            self.followed
        )?;
        self.start.write("start", f)?;
        self.idle.write("idle", f)?;
        self.load.write("load", f)?;
        let entry = self.load.log_bytes.checked_div(self.load.log_entries).unwrap_or_default();
        let catalog = self.catalog_bytes;
        writeln!(f, "  a catalog: {catalog} bytes; an entry of the log under load: {entry} bytes")?;
        let EpochTimes { until_published, until_everywhere, on_their_way } = self.epochs;
        writeln!(
            f,
            "  SYNC until published: median {} ms, longest {} ms; then to the last indexer: median {} ms, longest {} ms; \
             {} epochs, {on_their_way} on their way; the router asked for {} and missed {}",
            until_published.median_ms,
            until_published.longest_ms,
            until_everywhere.median_ms,
            until_everywhere.longest_ms,
            until_everywhere.count,
            self.asked.0,
            self.asked.1
        )?;
        let Processor { idle_ms, load_ms } = self.processor;
        writeln!(
            f,
            "  processor time of the leader on this machine: {idle_ms:.1} ms/s idle, {load_ms:.1} ms/s under load"
        )
    }
}
