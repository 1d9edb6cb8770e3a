//! The leading copy's links to the other copies of a bucket. The links determine which copies the
//! leader waits for, which groups these have, and how long the leader may serve reads.
//!
//! - **Groups** are numbered in the order of the log. A group may be published when it is durable
//!   at each *awaited* copy. The awaited copies are the copies in sync, and a joining copy that
//!   is about to become one.
//! - **Growth** has two steps. First the leader begins to await the joining copy, so no later
//!   group is published without it. When the copy has all earlier groups too, the leader requests
//!   that it becomes a copy in sync. So a copy in sync has every published group.
//! - **Sessions.** A follower's session begins at a place of the log. The leader keeps the later
//!   groups in memory until the follower has them. The session is bounded in bytes: above the
//!   bound it ends, and the follower starts a new session nearer to the end.
//! - **The lease.** Each answer to a follower has a number. When the follower confirms an answer,
//!   the leader may serve for [`COPY_LEASE_MS`] from the time at which it sent that answer. The
//!   follower received the answer later, and requests leadership only [`COPY_GRACE_MS`] after the
//!   last answer that it received. So no clock is compared with another one. The leader needs
//!   such a grant from every awaited copy.
//!
//! - **The end.** A leader that learns of another term is *lost*: from then on no group counts as
//!   durable, and no copy is removed. So the leader publishes no group that its successor may
//!   lack.
//!
//! A bucket without other copies is *alone*, and so is every pushed bucket: the check of the
//! links then costs one load of an atomic.
//!
//! Limits: if the steady clock of a leader stops together with its machine, the lease lasts too
//! long. Such a leader may answer reads in that time, and acknowledges nothing.
//!
//! The term of a follower's last session is not durable, so a leader whose disk lost synced
//! writes of the last milliseconds before a restart of both is not detected.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use proto::lock::lock;
use proto::model::copies::{Copies, CopiesChange};
use proto::model::ids::NodeId;
use proto::plant::{self, Plant};
use proto::rpc::api::{COPY_GRACE_MS, COPY_LEASE_MS};
use proto::{Error, ErrorCode, Result};
use tokio::time::Instant;

use super::link::{Link, NextGroups, SILENCE, Session, busy_for, bytes_of, no_session_error};
use documents::document_store::Batch;

/// The limit in bytes of the groups that the leader keeps for one session. The groups for a copy
/// in sync are bounded by the memory budget of the writers that wait for it.
const SESSION_BYTES_MAX: usize = 96 << 20;

const _: () = assert!(COPY_LEASE_MS < COPY_GRACE_MS);

/// The leader's links to the other copies of a bucket.
#[derive(Default)]
pub struct Links {
    state: Mutex<LinksState>,
    /// True if a copy is awaited or has a session, or if leadership is lost; for a quick check
    /// without the lock.
    has_others: AtomicBool,
}

/// The leader's records of the other copies, protected by a lock.
#[derive(Default)]
struct LinksState {
    /// The newest configuration under which this projector leads; `None` if it does not lead.
    copies: Option<Copies>,
    /// True once a configuration with another term was received: another copy leads or has led.
    is_lost: bool,
    /// The change of the configuration that was requested and not answered yet. It may take
    /// effect, so the data that it depends on must not change.
    asked: Option<(u64, CopiesChange)>,
    last_group: u64,
    others: BTreeMap<NodeId, Link>,
}

impl Links {
    fn state(&self) -> MutexGuard<'_, LinksState> {
        lock(&self.state)
    }

    fn changed(&self, state: &LinksState) {
        let has_others = !state.others.is_empty() || state.is_lost;
        self.has_others.store(has_others, Ordering::Release);
    }

    /// Returns true if no other copy has a session or is awaited.
    pub fn is_alone(&self) -> bool {
        !self.has_others.load(Ordering::Acquire)
    }

    /// Begins to lead the bucket under a configuration, or stores a newer configuration of the
    /// present term. Returns false if another copy leads in the configuration. If the
    /// configuration is newer, the leader is then lost.
    pub fn set_configuration(&self, copies: &Copies, me: NodeId, now: Instant) -> bool {
        let mut state = self.state();
        let is_same_term = state.copies.as_ref().is_none_or(|known| known.term == copies.term);
        if copies.leader != me || !is_same_term {
            let is_newer = |known: &Copies| known.revision < copies.revision;
            if state.copies.as_ref().is_some_and(is_newer) {
                state.is_lost = true;
                self.changed(&state);
            }
            return false;
        }
        if state.copies.as_ref().is_some_and(|known| known.revision >= copies.revision) {
            return true;
        }
        state.copies = Some(copies.clone());
        state.asked = None;
        let members: Vec<NodeId> = copies.members().filter(|node| *node != me).collect();
        state.others.retain(|node, _| members.contains(node));
        // A newer configuration has decided any growth that was proposed.
        for (node, link) in &mut state.others {
            if !copies.in_sync.contains(node) {
                link.stop_awaiting();
            }
        }
        for node in copies.followers() {
            let link = state.others.entry(node).or_default();
            link.awaited_since.get_or_insert(now);
        }
        self.changed(&state);
        true
    }

    /// Returns the configuration under which this projector leads; `None` if it does not lead.
    pub fn copies(&self) -> Option<Copies> {
        self.state().copies.clone()
    }

    /// Assigns a number to a group, and keeps the group for the followers. The caller must hold
    /// the group's first turn. A group without changes gets the number of the previous group.
    pub fn add_group(&self, batch: Option<&Arc<Batch>>) -> u64 {
        let mut state = self.state();
        let Some(batch) = batch else { return state.last_group };
        state.last_group += 1;
        let number = state.last_group;
        if state.others.is_empty() {
            return number;
        }
        let bytes = bytes_of(batch);
        for link in state.others.values_mut() {
            let Some(session) = &mut link.session else { continue };
            session.groups.push_back((number, Arc::clone(batch)));
            session.bytes += bytes;
            if session.bytes > SESSION_BYTES_MAX && link.awaited_since.is_none() {
                link.session = None;
            }
        }
        number
    }

    /// Returns the number of the last group that every awaited copy has.
    pub fn last_durable_group(&self) -> u64 {
        if self.is_alone() || plant::is(Plant::CopiesNotAwaited) {
            return u64::MAX;
        }
        let state = self.state();
        if state.is_lost {
            return 0;
        }
        let awaited = state.others.values().filter(|link| link.awaited_since.is_some());
        let has = awaited.map(|link| match &link.session {
            Some(session) if session.is_filled => session.durable,
            _ => 0,
        });
        has.min().unwrap_or(u64::MAX)
    }

    /// Returns true if this projector may answer reads of the bucket now, because its lease has
    /// not ended.
    pub fn may_answer(&self, now: Instant) -> bool {
        if self.is_alone() || plant::is(Plant::LeaseUnchecked) {
            return true;
        }
        let state = self.state();
        let mut awaited = state.others.values().filter(|link| link.awaited_since.is_some());
        !state.is_lost
            && awaited.all(|link| {
                let lease = link.session.as_ref().and_then(|session| session.lease_until);
                lease.is_some_and(|until| now < until)
            })
    }

    /// Begins a follower's session at the end of all numbered groups. The caller must hold the
    /// first turn of the next group. Returns true if this leader awaits the copy, which may then
    /// be put in sync at any moment.
    pub fn begin_session(&self, node: NodeId, number: u64, now: Instant) -> Result<bool> {
        let mut state = self.state();
        let is_member = |copies: &Copies| copies.members().any(|member| member == node);
        if !state.copies.as_ref().is_some_and(is_member) {
            let what = format!("projector {node} is not a copy of the bucket (yet)");
            return Err(Error::new(ErrorCode::NotOwner, what));
        }
        let durable = state.last_group;
        let session = Session {
            number,
            prepared: None,
            fills_for: Duration::ZERO,
            groups: VecDeque::new(),
            bytes: 0,
            durable,
            is_filled: false,
            last_answer: 0,
            answers: VecDeque::new(),
            heard_at: None,
            lease_until: None,
        };
        let link = state.others.entry(node).or_default();
        link.session = Some(session);
        link.unfilled_since.get_or_insert(now);
        let is_awaited = link.awaited_since.is_some();
        self.changed(&state);
        Ok(is_awaited)
    }

    /// Keeps, for a follower, the transactions that were prepared at the beginning of its
    /// session. They may end before the follower has requested them.
    pub fn keep_prepared(&self, node: NodeId, number: u64, prepared: Arc<Batch>) -> Result<()> {
        // The follower brings them here, and makes them durable.
        let fills_for = 2 * busy_for(bytes_of(&prepared));
        let mut state = self.state();
        let session = state.session(node, number)?;
        (session.prepared, session.fills_for) = (Some(prepared), fills_for);
        Ok(())
    }

    /// Returns the transactions that were prepared at the beginning of a follower's session. The
    /// request counts as a sign of life.
    pub fn prepared(&self, node: NodeId, number: u64, now: Instant) -> Result<Arc<Batch>> {
        let mut state = self.state();
        let found = state.session(node, number)?.prepared.clone().ok_or_else(no_session_error)?;
        state.record_filling(node, now);
        Ok(found)
    }

    /// Records that a follower is alive and is writing a large group. `answer` is the last answer
    /// that the follower has received. Returns true if a group may be published now, or if the
    /// leader may answer reads now.
    pub fn record_busy(
        &self,
        node: NodeId,
        number: u64,
        answer: u64,
        now: Instant,
    ) -> Result<bool> {
        {
            let mut state = self.state();
            if !state.session(node, number)?.is_filled {
                state.record_filling(node, now);
                return Ok(false);
            }
        }
        self.record_durable_group(node, number, (0, answer), now)
    }

    /// Records the last group that is durable at a follower, and the last answer that the
    /// follower has received. Returns true if a group may be published now, or if the leader may
    /// answer reads now.
    pub fn record_durable_group(
        &self,
        node: NodeId,
        number: u64,
        (durable, answer): (u64, u64),
        now: Instant,
    ) -> Result<bool> {
        let mut state = self.state();
        state.session(node, number)?;
        let last = state.last_group;
        if durable > last {
            let what = format!("projector {node} has group {durable}, and the last one is {last}");
            return Err(Error::new(ErrorCode::OutOfOrder, what));
        }
        let Some(link) = state.others.get_mut(&node) else { return Err(no_session_error()) };
        (link.unfilled_since, link.filling_at) = (None, None);
        let Some(session) = &mut link.session else { return Err(no_session_error()) };
        session.heard_at = Some(now);
        session.prepared = None;
        let mut has_news = !session.is_filled;
        session.is_filled = true;
        if durable > session.durable {
            session.durable = durable;
            has_news = true;
            while session.groups.front().is_some_and(|(number, _)| *number <= durable) {
                let gone = session.groups.pop_front();
                session.bytes -= gone.map_or(0, |(_, batch)| bytes_of(&batch));
            }
        }
        let sent = session.answers.iter().find(|(sent, _)| *sent == answer);
        if let Some((_, at)) = sent {
            let until = *at + Duration::from_millis(COPY_LEASE_MS);
            has_news |= session.lease_until.is_none_or(|known| known <= now);
            session.lease_until = session.lease_until.max(Some(until));
        }
        Ok(has_news)
    }

    /// Returns the next groups for a follower: about `bytes_max` bytes, and at least one group if
    /// there is one. A large group is returned alone. The returned answer counts as sent at
    /// `now`.
    pub fn next_groups(
        &self,
        node: NodeId,
        number: u64,
        bytes_max: usize,
        now: Instant,
    ) -> Result<NextGroups> {
        let mut state = self.state();
        let session = state.session(node, number)?;
        let answer = session.answer(now);
        let (mut bytes, mut is_first) = (0, true);
        let fitting = session.groups.iter().take_while(|(_, batch)| {
            let before = bytes;
            bytes += bytes_of(batch);
            std::mem::take(&mut is_first) || before < bytes_max && bytes <= 2 * bytes_max
        });
        let groups = fitting.map(|(_, batch)| Arc::clone(batch)).collect();
        let first = session.groups.front().map_or(session.durable + 1, |(first, _)| *first);
        Ok(NextGroups { answer, first, groups })
    }

    /// Returns the number of an answer without groups, which counts as sent at `now`.
    pub fn new_answer_number(&self, node: NodeId, number: u64, now: Instant) -> Result<u64> {
        Ok(self.state().session(node, number)?.answer(now))
    }

    /// Returns true if a follower must be answered now, because there are groups for it, or
    /// because it has not granted a lease yet.
    pub fn has_next(&self, node: NodeId, number: u64) -> Result<bool> {
        let mut state = self.state();
        let session = state.session(node, number)?;
        Ok(!session.groups.is_empty() || session.lease_until.is_none())
    }

    /// Returns the change of the configuration that the leader must request from the
    /// coordinators, with the revision that it is made for; `None` if no change is needed. The
    /// same change is returned until it is answered ([`Self::answered`], [`Self::lead`]).
    pub fn change_to_request(&self, now: Instant) -> Option<(u64, CopiesChange)> {
        let mut state = self.state();
        if state.asked.is_none() {
            state.asked = state.next_change(now);
        }
        state.asked
    }

    /// Records that the coordinators have answered a requested change for a copy. If their answer
    /// had no newer configuration, the copy was not put in sync, and the leader stops waiting for
    /// it.
    pub fn record_change_answer(&self, node: NodeId) {
        let mut state = self.state();
        state.asked = None;
        let is_in_sync = state.copies.as_ref().is_some_and(|copies| copies.in_sync.contains(&node));
        if !is_in_sync && let Some(link) = state.others.get_mut(&node) {
            link.stop_awaiting();
        }
    }

    /// Removes a copy without a request to the coordinators (a bug that tests plant).
    pub fn remove_copy_unasked(&self, node: NodeId) {
        let mut state = self.state();
        state.others.remove(&node);
        self.changed(&state);
    }

    /// Returns true if a copy lacks so few groups that it could take leadership over quickly.
    pub fn lacks_few_groups(&self, node: NodeId, now: Instant) -> bool {
        let state = self.state();
        let session = state.others.get(&node).and_then(|link| link.session.as_ref());
        session.is_some_and(|session| session.is_alive(now) && session.lacks_few_bytes())
    }

    /// Returns true if a copy receives groups at present, and has all numbered ones.
    pub fn has_all_groups(&self, node: NodeId, now: Instant) -> bool {
        let state = self.state();
        let session = state.others.get(&node).and_then(|link| link.session.as_ref());
        let last_group = state.last_group;
        session.is_some_and(|session| session.is_alive(now) && session.durable == last_group)
    }
}

impl LinksState {
    fn next_change(&mut self, now: Instant) -> Option<(u64, CopiesChange)> {
        let copies = self.copies.clone()?;
        let silent = copies.followers().find(|node| {
            let last = self.others.get(node).and_then(Link::last_sign);
            last.is_some_and(|last| now.duration_since(last) > SILENCE)
        });
        if let Some(node) = silent {
            return Some((copies.revision, CopiesChange::Shrink(node)));
        }
        let last_group = self.last_group;
        let grown = copies.joining.iter().find(|node| {
            let link = self.others.get_mut(node);
            link.is_some_and(|link| link.can_become_in_sync(last_group, now))
        })?;
        Some((copies.revision, CopiesChange::Grow(*grown)))
    }

    /// Records that a copy is receiving prepared transactions. The copy counts as alive for as
    /// long as that may take; a restarted session gets no additional time.
    fn record_filling(&mut self, node: NodeId, now: Instant) {
        let Some(link) = self.others.get_mut(&node) else { return };
        let fills_for = link.session.as_ref().map_or(Duration::ZERO, |session| session.fills_for);
        if link.unfilled_since.is_some_and(|since| now.duration_since(since) <= fills_for) {
            link.filling_at = Some(now);
        }
    }

    fn session(&mut self, node: NodeId, number: u64) -> Result<&mut Session> {
        let session = self.others.get_mut(&node).and_then(|link| link.session.as_mut());
        session.filter(|session| session.number == number).ok_or_else(no_session_error)
    }
}

#[cfg(test)]
#[path = "links_tests.rs"]
mod tests;
