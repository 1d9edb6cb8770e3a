//! The truth of an embedded bucket with copies on several projectors.
//!
//! The present history is that of the copy that leads in the catalog of the client's router. It
//! must contain all acknowledged writes, after any crash. The other copies, and histories that
//! copies have lost, must never be read, but each of their mutations must come from a client.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use projector::testing::Mutation;
use proto::model::copies::Copies;
use proto::model::cut::{Position, WritePosition};
use proto::model::ids::{BucketId, NodeId, VbucketId};
use router::Router;

use super::statements::History;
use super::truth::Readable;
use crate::sim::documents::Mirror;

/// The mirrors of the simulated projectors with copies, and the acknowledged writes.
#[derive(Default)]
pub struct Copied {
    mirrors: BTreeMap<NodeId, Mirror>,
    router: OnceLock<Arc<Router>>,
    /// The newest acknowledged position of each vbucket.
    acknowledged: Mutex<BTreeMap<(BucketId, VbucketId), Position>>,
    /// The number of times that the last copy of some mutation was lost.
    losses: AtomicU64,
    /// The coordinators' last answer about the copies of the client's bucket, and the time at which
    /// the request was sent.
    confirmed: Mutex<Option<(Duration, BucketId, Copies)>>,
}

impl Copied {
    /// Returns the copies of projectors with these mirrors.
    pub fn new(mirrors: BTreeMap<NodeId, Mirror>) -> Self {
        Self { mirrors, ..Self::default() }
    }

    /// Sets the router whose catalog names the leaders.
    pub fn ask(&self, router: &Arc<Router>) {
        self.router.get_or_init(|| Arc::clone(router));
    }

    /// The copies of a bucket by the client's catalog.
    pub fn copies(&self, bucket: BucketId) -> Option<Copies> {
        self.router.get()?.catalog().copies.get(&bucket).cloned()
    }

    /// Returns the bucket of the client, and its copies.
    pub fn copies_of_client(&self) -> Option<(BucketId, Copies)> {
        let catalog = self.router.get()?.catalog();
        let bucket = catalog.bucket("b")?.id;
        Some((bucket, catalog.copies.get(&bucket)?.clone()))
    }

    /// Records the coordinators' answer to a request that was sent at a given time.
    pub fn confirm(&self, asked_at: Duration, bucket: BucketId, copies: Copies) {
        *self.confirmed.lock().expect("not poisoned") = Some((asked_at, bucket, copies));
    }

    /// Returns the copies of the client's bucket, from an answer to a request that was sent at or
    /// after a given time; `None` without one.
    pub fn confirmed_since(&self, at: Duration) -> Option<(BucketId, Copies)> {
        let confirmed = self.confirmed.lock().expect("not poisoned").clone();
        confirmed
            .filter(|(asked_at, ..)| *asked_at >= at)
            .map(|(_, bucket, copies)| (bucket, copies))
    }

    fn leader(&self, bucket: BucketId) -> Option<&Mirror> {
        self.mirrors.get(&self.copies(bucket)?.leader)
    }

    /// Returns all mirrors, the leader's first.
    fn leader_first(&self, bucket: BucketId) -> impl Iterator<Item = &Mirror> {
        let leader = self.copies(bucket).map(|copies| copies.leader);
        let others = self.mirrors.iter().filter(move |(node, _)| Some(**node) != leader);
        let leader = leader.and_then(|node| self.mirrors.get(&node));
        leader.into_iter().chain(others.map(|(_, mirror)| mirror))
    }

    /// Records an acknowledged write.
    pub fn acknowledge(&self, write: &WritePosition) {
        let mut all = self.acknowledged.lock().expect("not poisoned");
        all.extend(write.positions.iter().map(|(v, position)| ((write.bucket, *v), *position)));
    }

    /// The newest acknowledged position of a vbucket.
    pub fn acknowledged(&self, bucket: BucketId, vbucket: VbucketId) -> Option<Position> {
        self.acknowledged.lock().expect("not poisoned").get(&(bucket, vbucket)).copied()
    }

    /// Returns the vbuckets of a bucket with acknowledged writes, and the newest position in each.
    pub fn written(&self, bucket: BucketId) -> Vec<(VbucketId, Position)> {
        let all = self.acknowledged.lock().expect("not poisoned");
        let mine = all.iter().filter(|((of, _), _)| *of == bucket);
        mine.map(|((_, vbucket), position)| (*vbucket, *position)).collect()
    }

    /// True if a projector's disk has all acknowledged mutations of a bucket.
    pub fn has_all(&self, node: NodeId, bucket: BucketId) -> bool {
        let Some(mirror) = self.mirrors.get(&node) else { return false };
        let is_there = |(v, position): &(VbucketId, Position)| mirror.has(bucket, *v, *position);
        mirror.knows(bucket) && self.written(bucket).iter().all(is_there)
    }

    /// Records that the last copy of some mutation was lost.
    pub fn lose(&self) {
        self.losses.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of such losses.
    pub fn losses(&self) -> u64 {
        self.losses.load(Ordering::Relaxed)
    }

    /// Returns the mutations of a vbucket up to a position, in any history.
    pub fn log_at(
        &self,
        bucket: BucketId,
        vbucket: VbucketId,
        position: Position,
    ) -> Option<Vec<Arc<Mutation>>> {
        self.leader_first(bucket).find_map(|mirror| mirror.log_at(bucket, vbucket, position))
    }

    /// Returns the mutations of a vbucket up to a position, in the leader's history only.
    pub fn present_log(
        &self,
        bucket: BucketId,
        vbucket: VbucketId,
        position: Position,
    ) -> Option<Vec<Arc<Mutation>>> {
        self.leader(bucket)?.present_log(bucket, vbucket, position)
    }

    /// Returns the history of the leader, then those that the copies have lost or may lose.
    pub fn histories(&self, bucket: BucketId) -> Vec<History> {
        let mut all = Vec::new();
        for mirror in self.leader_first(bucket) {
            all.extend(mirror.histories(bucket));
        }
        all
    }

    /// Returns the logs of a vbucket that a read may come from now: those with the newest
    /// acknowledged write. `None` if the leader lacks that write after a loss; another copy may
    /// still have it, but is not read.
    pub fn readable(&self, bucket: BucketId, vbucket: VbucketId) -> Option<Readable> {
        let lost = self.losses();
        let least = self.acknowledged(bucket, vbucket);
        let has = |mirror: &&Mirror| {
            least.is_none_or(|position| mirror.present_log(bucket, vbucket, position).is_some())
        };
        if lost > 0 && !self.leader(bucket).as_ref().is_some_and(has) {
            return None;
        }
        let logs = self.leader_first(bucket).filter(has);
        let logs = logs.filter_map(|mirror| Some(mirror.readable(bucket, vbucket)?.logs));
        let logs: Vec<_> = logs.flatten().collect();
        let from = least.map_or(0, |position| position.seqno.0 as usize);
        (!logs.is_empty()).then_some(Readable { logs, from, lost })
    }

    /// True if a position is at or before `end` in a history that contains `end`.
    pub fn is_before(
        &self,
        bucket: BucketId,
        vbucket: VbucketId,
        position: Position,
        end: Position,
    ) -> bool {
        self.mirrors.values().any(|mirror| mirror.is_before(bucket, vbucket, position, end))
    }

    /// Returns a text about a copy in sync that differs from the leader; `None` if there is none.
    pub fn differs(&self, bucket: BucketId) -> Option<String> {
        let Some(copies) = self.copies(bucket) else { return Some("there are no copies".into()) };
        let leader = self.mirrors.get(&copies.leader)?;
        copies.followers().find_map(|node| {
            let what = self.mirrors.get(&node)?.differs_from(leader, bucket)?;
            Some(format!(
                "the copy of projector {node} is not as that of {}: {what}",
                copies.leader
            ))
        })
    }
}
