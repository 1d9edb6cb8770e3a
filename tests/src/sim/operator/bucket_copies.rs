//! The copies of the client's bucket: an operator changes their number and moves the bucket; a client with any old catalog calls each
//! projector directly; and after the faults all copies exist and are equal.

use std::sync::Arc;
use std::time::Duration;

use proto::env::{Env, Task};
use proto::model::copies::{Copies, CopiesChange};
use proto::model::ids::NodeId;
use proto::rpc::command::{AppliedCommand, ChangeCopies, Command, MoveBucket, Outcome, SetCopies};
use tokio::time::{Instant, sleep, timeout};

use crate::sim::client::reads::{states_between, vbucket};
use crate::sim::client::session::Session;
use crate::sim::client::workload::{STATEMENT, now};
use crate::sim::cluster::hosts::COPYING;
use crate::sim::judge::copied::Copied;
use crate::sim::judge::truth::Truth;
use crate::sim::{Shared, violation};

/// The desired number of copies at the beginning and after the faults.
pub const WANTED: u8 = 2;
/// The number of document ids that are read.
const IDS: u64 = 120;
/// The time limit for the answer of a single copy: a copy that must not answer waits until it may
/// lead.
const ANSWER: Duration = Duration::from_secs(2);
/// The pause between two requests for the configuration, and the time limit of each.
const CONFIRM: Duration = Duration::from_millis(300);
/// The time limit after the faults until all copies must be in sync.
const SETTLE: Duration = Duration::from_secs(60);
/// The time limit after the last write until all copies must be equal.
const EQUAL: Duration = Duration::from_secs(10);

/// The tasks and checks of the bucket's copies.
#[derive(Clone)]
pub(in crate::sim) struct BucketCopies {
    copied: Arc<Copied>,
    truth: Truth,
    random: fastrand::Rng,
    summary: Shared,
}

impl BucketCopies {
    /// Returns the copies of this seed's bucket; `None` if it has no copies.
    pub fn of(truth: &Truth, seed: u64, summary: &Shared) -> Option<Self> {
        let copied = Arc::clone(truth.copied()?);
        let random = fastrand::Rng::with_seed(seed ^ 0xc091);
        Some(Self { copied, truth: truth.clone(), random, summary: Arc::clone(summary) })
    }

    fn copies(&self, session: &Session) -> Option<Copies> {
        self.copied.copies(session.bucket.id)
    }

    /// Runs the tasks that are concurrent with the client, until they are dropped.
    pub fn spawn(self, env: &Env, session: &Session) -> [Task; 4] {
        let [zero, one, two, three] = std::array::from_fn(|_| session.clone());
        [
            env.spawn_request("configuration of copies", self.clone().confirm(zero)),
            env.spawn_request("copies", self.clone().change(one)),
            env.spawn_request("watch of copies", self.clone().watch(two)),
            env.spawn_request("reads of copies", self.read(three)),
        ]
    }

    /// Requests the configuration from the coordinators repeatedly until the future is dropped. The
    /// request is a change that expects revision zero, which is never made; its answer contains the
    /// configuration after all earlier commands.
    async fn confirm(self, session: Session) {
        let bucket = session.bucket.id;
        let change = CopiesChange::Shrink(NodeId(COPYING[0]));
        loop {
            sleep(CONFIRM).await;
            let asked_at = now();
            let command = Command::ChangeCopies(ChangeCopies { bucket, revision: 0, change });
            let asked = session.directory.coordinator();
            let answer = timeout(CONFIRM, asked.propose(command.into())).await;
            if let Ok(Ok(AppliedCommand { outcome: Outcome::Copies(copies), .. })) = answer {
                self.copied.confirm(asked_at, bucket, copies);
            }
        }
    }

    /// Changes the number of copies and moves the bucket, until the future is dropped.
    async fn change(mut self, session: Session) {
        loop {
            sleep(Duration::from_millis(self.random.u64(300..4_000))).await;
            let bucket = session.bucket.id;
            let command = match self.random.u8(..3) {
                0 => {
                    let copies = [2, 2, 3, 1][self.random.usize(..4)];
                    Command::SetCopies(SetCopies { bucket, copies })
                }
                _ => {
                    let to = NodeId(COPYING[self.random.usize(..COPYING.len())]);
                    Command::MoveBucket(MoveBucket { bucket, to })
                }
            };
            if let Ok(Ok(_)) = timeout(STATEMENT, session.backend.command(command.into())).await {
                self.summary.lock().expect("not poisoned").copies_asked += 1;
            }
        }
    }

    /// Counts the moves of the bucket until the future is dropped.
    async fn watch(self, session: Session) {
        let id = session.bucket.id;
        let mut before = self.copies(&session);
        loop {
            let known = before.clone();
            session.router.wait_catalog(|catalog| catalog.copies.get(&id) != known.as_ref()).await;
            let now = self.copies(&session);
            if let (Some(before), Some(now)) = (&before, &now)
                && before.move_to == Some(now.leader)
                && before.leader != now.leader
            {
                self.summary.lock().expect("not poisoned").buckets_moved += 1;
            }
            before = now;
        }
    }

    /// Sends reads to each projector, as a client with an old catalog would, until the future is
    /// dropped. Only a copy with every acknowledged write may answer.
    async fn read(mut self, session: Session) {
        let readers = COPYING.map(|node| {
            let reader = Self { random: self.random.fork(), ..self.clone() };
            reader.read_from(session.clone(), NodeId(node))
        });
        futures::future::join_all(readers).await;
    }

    async fn read_from(mut self, session: Session, node: NodeId) {
        loop {
            sleep(Duration::from_millis(self.random.u64(5..150))).await;
            match self.random.u8(..4) {
                0 => self.read_place(&session, node).await,
                _ => self.read_document(&session, node).await,
            }
        }
    }

    async fn read_place(&self, session: &Session, node: NodeId) {
        let bucket = session.bucket.id;
        let catalog = session.router.catalog();
        let Some(info) = catalog.nodes.get(&node) else { return };
        let (before, lost) = (self.copied.written(bucket), self.copied.losses());
        let asked = session.directory.projector(info);
        let Ok(Ok(place)) = timeout(ANSWER, asked.place(bucket)).await else { return };
        if lost != self.copied.losses() {
            return;
        }
        self.summary.lock().expect("not poisoned").copies_read += 1;
        for (vbucket, written) in before {
            let end = place.durable.get(vbucket);
            if !self.truth.is_before(bucket, vbucket, written, end) {
                let what = format!(
                    "projector {node} tells that vbucket {vbucket} ends at {end:?}, though {written:?} was acknowledged"
                );
                return violation(&self.summary, what);
            }
        }
    }

    async fn read_document(&mut self, session: &Session, node: NodeId) {
        let (bucket, id) = (session.bucket.id, format!("k{}", self.random.u64(..IDS)));
        let catalog = session.router.catalog();
        let Some(info) = catalog.nodes.get(&node) else { return };
        let Some(before) = self.truth.readable(bucket, vbucket(&id)) else { return };
        let asked = session.directory.projector(info);
        let asking = asked.get(bucket, vec![id.clone()]);
        let Ok(Ok(found)) = timeout(ANSWER, asking).await else { return };
        let Some(states) = states_between(&self.truth, session, &id, &before) else { return };
        self.summary.lock().expect("not poisoned").copies_read += 1;
        let found = found.into_iter().next().flatten();
        let found = found.map(|found| serde_json::from_slice(&found).expect("JSON"));
        if !states.contains(&found) {
            let from = before.from;
            let what = format!(
                "projector {node} shows document {id} as {found:?}, not as one of {states:?} from seqno {from} on"
            );
            violation(&self.summary, what);
        }
    }

    /// True if the leading copy answers. A leader whose disk was replaced is down until another
    /// copy leads.
    async fn is_led(&self, session: &Session) -> bool {
        let catalog = session.router.catalog();
        let leader = self.copies(session).map(|copies| copies.leader);
        let Some(info) = leader.and_then(|leader| catalog.nodes.get(&leader)) else { return false };
        let asked = session.directory.projector(info);
        matches!(timeout(ANSWER, asked.place(session.bucket.id)).await, Ok(Ok(_)))
    }

    /// Waits after the faults until the bucket has its copies and the leader answers.
    pub async fn settle(&self, session: &Session) {
        let deadline = Instant::now() + SETTLE;
        loop {
            let copies = self.copies(session);
            let is_settled = copies.as_ref().is_some_and(|copies| {
                let has_all = copies.in_sync.len() == usize::from(copies.wanted);
                let rests = copies.joining.is_empty() && copies.move_to.is_none();
                copies.wanted == WANTED && has_all && rests
            });
            if is_settled && self.is_led(session).await {
                return;
            }
            if Instant::now() > deadline {
                let what = format!("{SETTLE:?} after the last fault the copies are {copies:?}");
                return violation(&self.summary, what);
            }
            if copies.is_none_or(|copies| copies.wanted != WANTED) {
                let bucket = session.bucket.id;
                let command = Command::SetCopies(SetCopies { bucket, copies: WANTED });
                // The command is sent again until the catalog shows it.
                let _ = timeout(STATEMENT, session.backend.command(command.into())).await;
            }
            sleep(Duration::from_millis(200)).await;
        }
    }

    /// Checks after the last write that the copies in sync are equal.
    pub async fn compare(&self, session: &Session) {
        let deadline = Instant::now() + EQUAL;
        while let Some(what) = self.copied.differs(session.bucket.id) {
            if Instant::now() > deadline {
                return violation(&self.summary, format!("{EQUAL:?} after the last write {what}"));
            }
            sleep(Duration::from_millis(100)).await;
        }
        let copies = self.copies(session).map_or(0, |copies| copies.in_sync.len());
        self.summary.lock().expect("not poisoned").copies_compared += copies as u64;
    }
}
