//! Effects of faults inside the services, counted by the services' log lines, since a fault without
//! an effect proves little. One seed is one process, so all lines belong to it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock};

use proto::model::ids::{ProducerTransactionId, SliceId};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::Context;

/// Torn tails of the logs of indexers and projectors, whose log lines are equal.
const TORN_TAILS: &str = "torn tails";
const OF_CHANGE_LOGS: &str = "torn tails of change logs";

/// Copies that were compared with a snapshot because they lacked history.
const RESYNCS: &str = "resyncs";

/// Changes of a bucket's copies; the kind follows the name.
const CHANGED_COPIES: &str = "changes of copies";
const SHRINKS: &str = "copies given up";
const GROWTHS: &str = "copies in sync again";

/// The log lines that prove an effect, each with the effect's name in the summary.
const LINES: [(&str, &str); 31] = [
    ("the copies are compared with a snapshot", RESYNCS),
    ("fetching a slice from another copy", "slices fetched from another copy"),
    ("a slice has arrived", "slices arrived"),
    ("slices were split in place", "splits in place"),
    ("going back", "rollbacks of a node"),
    ("a slice that cannot go back is fetched again", "slices that cannot go back"),
    ("dropped the torn tail of the log", TORN_TAILS),
    ("replayed the commit log", "replays"),
    ("wrote memory to a fragment", "flushes"),
    ("merged fragments", "compactions"),
    ("wrote documents to a fragment", "flushes of documents"),
    ("merged fragments of documents", "merges of documents"),
    ("released segments of a change log", "releases of change logs"),
    ("replayed a change log", "replays of change logs"),
    ("a copy of the file is written again from the other one", "healed manifests and checkpoints"),
    ("a vbucket was handed over", "vbuckets handed over"),
    ("a partial copy of a vbucket is dropped", "partial vbuckets dropped"),
    ("purging the change log", "purges"),
    ("slow indexers bound the next epoch", "choices bounded by slow indexers"),
    ("the leader is silent: this copy takes over", "take-overs"),
    ("the copies have changed", CHANGED_COPIES),
    ("took a group in pieces", "groups in pieces"),
    ("a bucket has another part", "changes of part"),
    ("a bucket is damaged and not served; its files are kept", "damaged buckets kept aside"),
    ("a damaged copy is made anew: another copy has everything", "damaged copies given up"),
    ("a damaged copy is healed, and its damaged files are removed", "damaged copies healed"),
    ("a damaged copy is removed: it is not needed any more", "damaged copies removed"),
    (
        "a prepared transaction ends without its session",
        "prepared transactions that end by themselves",
    ),
    ("large commits are in the indexes", "large commits entered"),
    ("spilled a part", "spilled parts of transactions"),
    ("a node failed a shard scan; trying another node", "fail-overs of shard scans"),
];

/// The log line by which an indexer reports a slice as readable.
const READABLE: &str = "a slice can be read";

/// The log line of a leader that has received a commit of the producer.
const OPEN: &str = "a commit of a producer is open";

/// The counters of the effects in this process.
#[derive(Clone, Default)]
pub struct Effects(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    counts: BTreeMap<String, u64>,
    /// The slices that have been readable on any node.
    readable: BTreeSet<String>,
    /// The commits of the producer that a leader has received.
    open: BTreeSet<String>,
}

impl Effects {
    /// Returns the counters of this process. They remain empty unless they are a layer of the log
    /// subscriber.
    pub fn of_process() -> Self {
        static OF_PROCESS: OnceLock<Effects> = OnceLock::new();
        OF_PROCESS.get_or_init(Self::default).clone()
    }

    /// Returns the services whose log lines count.
    pub fn filter() -> Targets {
        let services = ["coordinator", "indexer", "storage", "documents", "projector", "router"];
        services.into_iter().map(|service| (service, Level::DEBUG)).collect()
    }

    /// The counts so far.
    pub fn counts(&self) -> BTreeMap<String, u64> {
        self.0.lock().expect("not poisoned").counts.clone()
    }

    /// True if a copy was compared with a snapshot because it lacked history.
    pub fn has_resyncs(&self) -> bool {
        self.0.lock().expect("not poisoned").counts.contains_key(RESYNCS)
    }

    /// True if a slice is or was readable on some node.
    pub fn was_readable(&self, slice: SliceId) -> bool {
        self.0.lock().expect("not poisoned").readable.contains(&slice.to_string())
    }

    /// True if a leader has received a commit of the producer.
    pub fn is_open(&self, transaction: ProducerTransactionId) -> bool {
        self.0.lock().expect("not poisoned").open.contains(&transaction.to_string())
    }
}

impl<S: Subscriber> Layer<S> for Effects {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut line = Line::default();
        event.record(&mut line);
        if let Some(name) = line.effect {
            let name = match (name, line.change) {
                (TORN_TAILS, _) if line.of_bucket => OF_CHANGE_LOGS,
                (CHANGED_COPIES, Some(change)) => change,
                _ => name,
            };
            *self.0.lock().expect("not poisoned").counts.entry(name.to_owned()).or_default() += 1;
        }
        if let Some(slice) = line.slice.filter(|_| line.is_readable) {
            self.0.lock().expect("not poisoned").readable.insert(slice);
        }
        if let Some(transaction) = line.transaction.filter(|_| line.is_open) {
            self.0.lock().expect("not poisoned").open.insert(transaction);
        }
    }
}

/// The fields of a log line that determine its effect.
#[derive(Default)]
struct Line {
    effect: Option<&'static str>,
    /// True if the line names a file of a projector's bucket.
    of_bucket: bool,
    /// The effect of a change of copies.
    change: Option<&'static str>,
    is_readable: bool,
    /// The slice that the line names.
    slice: Option<String>,
    is_open: bool,
    /// The transaction that the line names.
    transaction: Option<String>,
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let text = || format!("{value:?}");
        match field.name() {
            "message" => {
                let text = text();
                self.is_readable = text == READABLE;
                self.is_open = text == OPEN;
                self.effect = LINES.iter().find(|(line, _)| text == *line).map(|(_, name)| *name);
            }
            "change" => {
                self.change = Some(if text().starts_with("Shrink") { SHRINKS } else { GROWTHS });
            }
            "slice" => self.slice = Some(text()),
            "transaction" => self.transaction = Some(text()),
            "path" => self.of_bucket = text().contains("/buckets/"),
            _ => {}
        }
    }
}
