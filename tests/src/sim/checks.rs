//! All checks except those of scans. During the run: each term has one leader, and the catalog only
//! advances. At the end: no epoch splits a statement, no acknowledged statement is lost, the
//! coordinators' logs agree, and the indexers' files are intact.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use coordinator::testing::LogStore;
use proto::model::catalog::Catalog;
use proto::model::cut::{Cut, Position, WritePosition};
use proto::model::ids::{BucketId, Epoch, IndexId, NodeId, SliceNo, TopologyNo, VbucketId};
use proto::model::node::Role;
use proto::model::topology::TopologyProvider;
use proto::rpc::api::Directory;
use router::Router;
use tokio::time::{sleep, timeout};

use super::cluster::disks;
use super::cluster::hosts::{DATA, Host, Hosts, INDEXERS, ZONES, members};
use super::data_sets::contents;
use super::effects::Effects;
use super::judge::oracle::INDEXES;
use super::judge::truth::Truth;
use super::transactions::pair;
use super::{Shared, ranges, sql_sessions, tenant, violation};

/// The interval between two requests to the members.
const ASK_EVERY: Duration = Duration::from_millis(150);

/// Checks leaders and catalogs until the future is dropped.
pub async fn watch_members(directory: Arc<dyn Directory>, router: Arc<Router>, summary: Shared) {
    let mut leaders: BTreeMap<u64, NodeId> = BTreeMap::new();
    let (mut cas, mut assignment) = (0, BTreeMap::new());
    let mut zoned_from = None;
    loop {
        for (member, _) in members(3) {
            let Ok(api) = directory.coordinator_member(member) else { continue };
            let Ok(Ok(status)) = timeout(ASK_EVERY, api.status()).await else { continue };
            let mut summary = summary.lock().expect("not poisoned");
            summary.committed = summary.committed.max(status.committed);
            let Some(leader) = status.leader else { continue };
            let known = *leaders.entry(status.term).or_insert(leader);
            if known != leader {
                let text = format!("term {} has two leaders, {known} and {leader}", status.term);
                summary.violations.push(text);
            }
            summary.terms = leaders.len() as u64;
        }
        let shown = router.catalog().cas;
        if shown < cas {
            violation(&summary, format!("the catalog went back from {cas} to {shown}"));
        }
        cas = shown;
        let catalog = router.catalog();
        let indexers = catalog.nodes.values().filter(|node| node.role == Role::Indexer);
        if zoned_from.is_none() && indexers.count() == INDEXERS.len() {
            // An index that began before may have found fewer nodes.
            zoned_from = Some(catalog.newest_index.0 + 1);
        }
        let is_drained = {
            let summary = summary.lock().expect("not poisoned");
            // Slices are not placed on silent nodes, which may be all those of a zone.
            let silences = |kind: &&str| summary.faults.contains_key(*kind);
            summary.drains_asked > 0 || SILENCING.iter().any(silences)
        };
        let zoned_from = zoned_from.filter(|_| !is_drained).map_or(IndexId(u64::MAX), IndexId);
        if let Some(what) = misplaced(&catalog, zoned_from).or_else(|| unreadable(&catalog)) {
            violation(&summary, what);
        }
        for bucket in router.catalog().buckets.values() {
            let now: Vec<_> =
                (0..bucket.vbuckets).map(|v| bucket.assignment.owner(VbucketId(v))).collect();
            if !bucket.source.can_span_projectors() {
                // A copy of an embedded bucket takes over all of its vbuckets.
                continue;
            }
            let before = assignment.insert(bucket.id, now.clone()).unwrap_or_else(|| now.clone());
            let changed = before.iter().zip(&now).filter(|(before, now)| before != now).count();
            summary.lock().expect("not poisoned").hand_overs += changed as u64;
        }
        sleep(ASK_EVERY).await;
    }
}

/// The faults that may silence an indexer for some seconds.
const SILENCING: [&str; 10] = [
    "crash",
    "crash_at_commit",
    "crash_at_stage",
    "crash_in_io",
    "crash_in_scan",
    "cut",
    "cut_one_way",
    "lost_node",
    "pause",
    "removed_node",
];

/// Returns a text about a slice whose copies are placed wrongly: they must be on existing nodes, no
/// two on one node. A new index must have the requested number of copies, and from the index
/// `zoned_from` on they must be in different zones.
fn misplaced(catalog: &Catalog, zoned_from: IndexId) -> Option<String> {
    for index in catalog.indexes.values() {
        for slice in (0..index.topology.slices()).map(SliceNo) {
            let copies = index.topology.replicas(slice);
            let nodes: BTreeSet<_> = copies.iter().collect();
            let known = nodes.iter().filter_map(|node| catalog.nodes.get(*node));
            let zones: BTreeSet<_> = known.clone().map(|node| &node.zone).collect();
            let declared =
                INDEXES.iter().chain([&tenant::INDEX]).chain(pair::INDEXES.iter().flatten());
            let mut declared =
                declared.chain(&contents::INDEXES).chain([&ranges::INDEX, &sql_sessions::INDEX]);
            let declared = declared.find(|declared| declared.name == index.spec.name);
            let has_replica = declared.is_some_and(|index| index.sql.contains("replicas = 1"));
            let asked = 1 + usize::from(has_replica);
            // ALTER INDEX and moves may add and remove copies.
            let is_first = !catalog.newest_generations.contains_key(&index.id);
            let is_new = is_first && index.topology.number == TopologyNo(1);
            let fits = nodes.len() == copies.len() && known.count() == copies.len();
            let fits = fits && !copies.is_empty() && (!is_new || copies.len() == asked);
            let is_zoned = index.id < zoned_from || zones.len() == copies.len().min(ZONES);
            let fits = fits && (!is_new || is_zoned);
            if !fits {
                let name = &index.spec.name;
                return Some(format!(
                    "slice {slice} of {name} is on {copies:?} in zones {zones:?}, {asked} copies are asked for"
                ));
            }
        }
    }
    None
}

/// Returns a text about a slice that was never readable although its generation serves or has
/// served.
fn unreadable(catalog: &Catalog) -> Option<String> {
    let effects = Effects::of_process();
    catalog.local_indexes().filter(|index| index.state.is_readable()).find_map(|index| {
        let mut slices = (0..index.topology.slices()).map(|n| index.local_id().slice(SliceNo(n)));
        let slice = slices.find(|slice| !effects.was_readable(*slice))?;
        let name = &index.spec.name;
        Some(format!("{name} is {:?}, and its slice {slice} could never be read", index.state))
    })
}

/// An acknowledged statement: its positions and the ids that it wrote.
pub type Acknowledged = (WritePosition, Vec<String>);

/// True if the source has lost a part of its history.
pub fn is_lossy(summary: &Shared) -> bool {
    let faults = &summary.lock().expect("not poisoned").faults;
    ["source_failover", "loss_at_stage"].iter().any(|kind| faults.contains_key(*kind))
}

/// True if a projector has lost a part of a bucket's history that no other projector has.
pub fn is_lossy_without_copies(summary: &Shared) -> bool {
    let faults = &summary.lock().expect("not poisoned").faults;
    let of_one = ["source_failover", "loss_at_stage", "older_copy", "lost_disk"];
    of_one.iter().any(|kind| faults.contains_key(*kind))
}

/// Checks that each acknowledged statement is in the source's history unless a failover has removed
/// it, and that each epoch contains all of a statement or nothing of it.
pub fn check_writes(
    writes: &[Acknowledged],
    marks: &BTreeMap<(BucketId, Epoch), Arc<Cut>>,
    truth: &Truth,
    failovers: bool,
    summary: &Shared,
) {
    for (write, ids) in writes {
        for (vbucket, position) in &write.positions {
            // Mutations lost in a failover had existed before.
            let kept = match failovers {
                true => truth.log_at(write.bucket, *vbucket, *position),
                false => truth.present_log(write.bucket, *vbucket, *position),
            };
            let last = kept.as_ref().and_then(|log| log.last());
            if !last.is_some_and(|mutation| ids.iter().any(|id| **id == *mutation.id)) {
                let text =
                    format!("acknowledged and lost: {ids:?}, vbucket {vbucket} {position:?}");
                return violation(summary, text);
            }
        }
    }
    // The first epoch that covers a part of a statement decides whether its cut splits the statement.
    for (write, ids) in writes.iter().filter(|(write, _)| write.positions.len() > 1) {
        // If a failover lost a part of a statement, only the surviving part counts.
        let survived = |at: &(VbucketId, Position)| {
            !failovers || truth.present_log(write.bucket, at.0, at.1).is_some()
        };
        let positions: Vec<_> = write.positions.iter().filter(|at| survived(at)).collect();
        let covered = |cut: &Cut| {
            let covers = |at: &&&(VbucketId, Position)| {
                truth.is_before(write.bucket, at.0, at.1, cut.get(at.0))
            };
            positions.iter().filter(covers).count()
        };
        let of_bucket = marks.iter().filter(|((bucket, _), _)| *bucket == write.bucket);
        let first = of_bucket.map(|((_, epoch), cut)| (epoch, covered(cut))).find(|(_, n)| *n > 0);
        if let Some((epoch, covered)) = first.filter(|(_, n)| *n < positions.len()) {
            let all = positions.len();
            let text =
                format!("epoch {epoch} has {covered} of {all} vbuckets of the statement {ids:?}");
            return violation(summary, text);
        }
    }
}

/// Checks the files of an indexer or of a projector.
fn check_directory(host: &Host, summary: &Shared) {
    let report = disks::verify(host.info.role, &host.fs);
    summary.lock().expect("not poisoned").directories_verified += 1;
    // A damaged copy stays if it has something that no leader has: an operator decides about it.
    let mut findings = report.findings.iter().filter(|finding| !host.keeps_flipped(&finding.path));
    if let Some(finding) = findings.next() {
        let text = format!("{}: {}", finding.path.display(), finding.message);
        violation(summary, format!("the files of {}: {text}", host.name));
    }
}

/// Checks the disks after the run, as they are after a crash of all machines.
pub fn check_disks(hosts: &Hosts, summary: &Shared) {
    let committed = summary.lock().expect("not poisoned").committed;
    let mut commands: BTreeMap<u64, (u64, Vec<u8>)> = BTreeMap::new();
    let voters: Vec<u64> = members(3).iter().map(|(id, _)| id.0).collect();
    for host in hosts.all.values() {
        host.fs.set_capacity(u64::MAX);
        host.fs.crash();
        host.fs.restart();
        let dir = Path::new(DATA);
        match host.info.role {
            Role::Coordinator => match LogStore::open(&host.fs, dir, host.info.id, &voters) {
                Ok((_, log)) => {
                    let is_cut = log.last() > 0 && log.entry(1).is_none();
                    summary.lock().expect("not poisoned").logs_cut += u64::from(is_cut);
                    for index in 1..=committed.min(log.last()) {
                        let Some((term, command)) = log.entry(index) else { continue };
                        let entry = (term, command.to_vec());
                        if *commands.entry(index).or_insert_with(|| entry.clone()) != entry {
                            let text = format!("{} has another command at {index}", host.name);
                            return violation(summary, text);
                        }
                    }
                }
                Err(error) => violation(summary, format!("the log of {}: {error}", host.name)),
            },
            Role::Indexer => check_directory(host, summary),
            Role::Projector => {
                check_directory(host, summary);
                if let Err(error) = host.compare_documents() {
                    violation(summary, format!("the documents of {}: {error}", host.name));
                }
            }
            Role::Router => {}
        }
    }
}
