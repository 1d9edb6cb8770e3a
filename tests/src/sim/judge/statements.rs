//! The client's history of an embedded bucket: the writes of each statement and the answer. The
//! source's log is judged by this history, and scans are then judged by the log
//! ([`super::oracle`]).
//!
//! - An acknowledged statement is completely in the log, once: in each vbucket its effective writes
//!   end at the position of the reply, in their order and with their documents. An upsert is always
//!   effective, a deletion only if the document existed. The reply contains the number of effective
//!   writes.
//! - Every other mutation of the log is a write of a statement whose outcome the client does not
//!   know, at most once, and such a statement is completely in the log or not at all.
//! - A refused statement is in no log. A commit that the leading projector reports as rolled back
//!   may be in a history that is never read: the previous leader may have logged the commit without
//!   another copy.
//!
//! Documents name their statement and row ([`MARK`]), so that equal documents of two statements
//! differ. A row is a number that no other document of its statement has.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use projector::testing::Mutation;
use proto::model::cut::{Cut, Position};
use proto::model::history::{Branches, branch_of};
use proto::model::ids::{Seqno, VbucketId, Vbuuid, vbucket_of};
use proto::rpc::api::{Write, WriteKind, WriteReply};
use proto::rpc::mutation::MutationKind;
use serde_json::Value;

use crate::sim::cluster::hosts::VBUCKETS;

/// The field of a document that names its statement and row.
pub const MARK: &str = "w";

/// A history of the source: the branches and the log of each vbucket.
pub type History = (Vec<Branches>, Vec<Vec<Arc<Mutation>>>);

/// The place of a mutation in the source's histories.
type Place = (VbucketId, Vbuuid, Seqno);

/// The outcome of a statement, as known to the client.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The outcome is unknown: the statement may take effect at any time.
    InDoubt,
    /// The statement had no effect.
    Refused,
    /// The statement has no effect; a former leader may have logged it.
    RolledBack,
    /// The statement was executed, with this reply.
    Acknowledged(WriteReply),
}

/// All statements of the client, in the order in which they began.
#[derive(Debug, Default)]
pub struct Statements(Vec<(Vec<Write>, Outcome)>);

impl Statements {
    /// The number of the next statement.
    pub fn next(&self) -> usize {
        self.0.len()
    }

    /// Records that a statement is sent.
    pub fn begin(&mut self, writes: &[Write]) -> usize {
        self.0.push((writes.to_vec(), Outcome::InDoubt));
        self.0.len() - 1
    }

    /// Records the writes of a statement whose number was given before; used for the commit of a
    /// transaction.
    pub fn resume(&mut self, statement: usize, writes: &[Write]) {
        self.0[statement].0 = writes.to_vec();
    }

    /// Records the outcome of a statement.
    pub fn end(&mut self, statement: usize, outcome: Outcome) {
        self.0[statement].1 = outcome;
    }

    /// True if another statement than `than` may have changed a document, after `cut` if it is
    /// given.
    pub fn may_change(&self, than: usize, id: &str, cut: Option<&Cut>) -> bool {
        let vbucket = vbucket_of(id, VBUCKETS);
        let is_behind = |reply: &WriteReply, cut: &Cut| {
            let of_vbucket = reply.position.positions.iter().find(|(v, _)| *v == vbucket);
            of_vbucket.is_some_and(|(_, end)| end.seqno > cut.get(vbucket).seqno)
        };
        let mut others = self.0.iter().enumerate().filter(|(n, _)| *n != than);
        others.any(|(_, (writes, outcome))| {
            let may_take_effect = match outcome {
                // The projector that had logged a lost commit has refused others for it.
                Outcome::InDoubt | Outcome::RolledBack => true,
                Outcome::Refused => false,
                Outcome::Acknowledged(reply) => cut.is_none_or(|cut| is_behind(reply, cut)),
            };
            may_take_effect && writes.iter().any(|write| write.id == id)
        })
    }

    /// Judges the histories of a source, the present one first; returns a text about a violation.
    /// `is_lossy` means that the source has lost parts of its history.
    pub fn judge(&self, histories: &[History], is_lossy: bool) -> Option<String> {
        let known = match self.acknowledged(histories, is_lossy) {
            Ok(known) => known,
            Err(what) => return Some(what),
        };
        let mut histories = histories.iter().enumerate();
        let judged = histories.try_for_each(|(n, history)| {
            let judged = self.judge_rest(history, &known, n == 0);
            let marks = judged.map_err(|what| format!("history {n} of the source: {what}"))?;
            if n == 0 && !is_lossy { self.judge_whole(&marks) } else { Ok(()) }
        });
        judged.err()
    }

    /// The places of the acknowledged statements in the histories, each with its statement.
    fn acknowledged(
        &self,
        histories: &[History],
        is_lossy: bool,
    ) -> Result<BTreeMap<Place, usize>, String> {
        let mut open = Vec::new();
        for (n, (writes, outcome)) in self.0.iter().enumerate() {
            let Outcome::Acknowledged(reply) = outcome else { continue };
            let told = |what| format!("acknowledged statement {n}, {writes:?}, {reply:?}: {what}");
            let choices = judge_reply(writes, reply, histories, is_lossy).map_err(told)?;
            open.push((n, answers(&choices, reply.affected).map_err(told)?));
        }
        add_places(open, BTreeMap::new()).map_err(|(n, what)| {
            let (writes, outcome) = &self.0[n];
            format!("acknowledged statement {n}, {writes:?}, {outcome:?}: {what}")
        })
    }

    /// Judges the mutations of a history that belong to no acknowledged statement; returns their marks.
    fn judge_rest(
        &self,
        (branches, log): &History,
        known: &BTreeMap<Place, usize>,
        is_present: bool,
    ) -> Result<BTreeSet<(usize, usize)>, String> {
        let (mut marks, mut deletions) = (BTreeSet::new(), BTreeMap::<&str, usize>::new());
        for mutation in log.iter().flatten() {
            let at = usize::from(mutation.vbucket.0);
            let vbuuid = branch_of(&branches[at], mutation.seqno);
            if known.contains_key(&(mutation.vbucket, vbuuid, mutation.seqno)) {
                continue;
            }
            match mutation.kind {
                MutationKind::Upsert => {
                    let mark = self.doubtful(mutation, is_present).map_err(|what| {
                        format!("{what}, at branch {vbuuid} of {:?}", branches[at])
                    })?;
                    if !marks.insert(mark) {
                        return Err(format!("written twice: {mutation:?}"));
                    }
                }
                MutationKind::Deletion => *deletions.entry(&mutation.id).or_default() += 1,
            }
        }
        for (id, found) in deletions {
            let doubtful = self.0.iter().filter(|(_, outcome)| match outcome {
                Outcome::InDoubt => true,
                Outcome::RolledBack => !is_present,
                Outcome::Refused | Outcome::Acknowledged(_) => false,
            });
            let asked = doubtful.flat_map(|(writes, _)| writes);
            let asked =
                asked.filter(|write| write.id == id && write.kind == WriteKind::Delete).count();
            if found > asked {
                let text = format!(
                    "{id} was deleted {found} times more than acknowledged; {asked} deletions are in doubt"
                );
                return Err(text);
            }
        }
        Ok(marks)
    }

    /// Returns the statement and the row of an upsert that no acknowledged statement explains; an
    /// error if the upsert is not allowed.
    fn doubtful(&self, mutation: &Mutation, is_present: bool) -> Result<(usize, usize), String> {
        let unknown = || format!("nobody wrote {mutation:?}");
        let document = json(&mutation.document);
        let mark = document.get(MARK).and_then(Value::as_str).ok_or_else(unknown)?;
        let (statement, row) = mark.split_once('.').ok_or_else(unknown)?;
        let number = |text: &str| text.parse::<usize>().map_err(|_| unknown());
        let (statement, row) = (number(statement)?, number(row)?);
        let (writes, outcome) = self.0.get(statement).ok_or_else(unknown)?;
        // The row of a transaction's document is not its place in the commit.
        if !writes.iter().any(|write| is_of(mutation, write)) {
            return Err(format!(
                "{mutation:?} is not what statement {statement} wrote: {writes:?}"
            ));
        }
        match outcome {
            Outcome::InDoubt => Ok((statement, row)),
            Outcome::RolledBack if !is_present => Ok((statement, row)),
            Outcome::Refused | Outcome::RolledBack => {
                Err(format!("refused, and written: {mutation:?}"))
            }
            Outcome::Acknowledged(reply) => {
                Err(format!("written again, beside the acknowledged {reply:?}: {mutation:?}"))
            }
        }
    }

    /// Checks that each statement with an unknown outcome is completely in the log or not at all.
    fn judge_whole(&self, marks: &BTreeSet<(usize, usize)>) -> Result<(), String> {
        for (statement, (writes, outcome)) in self.0.iter().enumerate() {
            let rows = marks.range((statement, 0)..(statement + 1, 0)).count();
            let upserts = writes.iter().filter(|write| write.kind != WriteKind::Delete).count();
            if *outcome == Outcome::InDoubt && rows > 0 && rows < upserts {
                return Err(format!("{rows} of {upserts} upserts of {writes:?} were written"));
            }
        }
        Ok(())
    }
}

/// Returns, for each vbucket of an acknowledged statement, the possible places of its effective
/// writes. There are several possibilities if an ineffective deletion follows an equal one.
fn judge_reply(
    writes: &[Write],
    reply: &WriteReply,
    histories: &[History],
    is_lossy: bool,
) -> Result<Vec<Vec<Vec<Place>>>, String> {
    let mut by_vbucket: BTreeMap<VbucketId, Vec<&Write>> = BTreeMap::new();
    for write in writes {
        by_vbucket.entry(vbucket_of(&write.id, VBUCKETS)).or_default().push(write);
    }
    // A write that a loss has taken away is in an earlier history.
    let histories = if is_lossy { histories } else { histories.get(..1).unwrap_or_default() };
    let mut choices = Vec::new();
    for (vbucket, end) in &reply.position.positions {
        let writes = by_vbucket.remove(vbucket);
        let writes = writes.ok_or_else(|| format!("it wrote nothing to vbucket {vbucket}"))?;
        let kept = histories.iter().find_map(|history| log_to(history, *vbucket, *end));
        let (branches, log) = kept.ok_or_else(|| format!("vbucket {vbucket} lost {end:?}"))?;
        let place = |mutation: &Arc<Mutation>| {
            (*vbucket, branch_of(branches, mutation.seqno), mutation.seqno)
        };
        let effects = (1..=writes.len().min(log.len())).rev().filter_map(|effective| {
            let (before, tail) = log.split_at(log.len() - effective);
            is_effect(&writes, before, tail).then(|| tail.iter().map(place).collect())
        });
        let effects: Vec<Vec<Place>> = effects.collect();
        if effects.is_empty() {
            let tail = &log[log.len().saturating_sub(writes.len())..];
            return Err(format!("vbucket {vbucket} has {tail:?} at {end:?}"));
        }
        choices.push(effects);
    }
    let mut without_effect = by_vbucket.values().flatten();
    match without_effect.find(|write| write.kind != WriteKind::Delete) {
        Some(write) => Err(format!("{write:?} has no position")),
        None => Ok(choices),
    }
}

/// All sets of places that the effects of a statement may have: one choice of each vbucket, as many as in the reply.
fn answers(choices: &[Vec<Vec<Place>>], affected: u64) -> Result<Vec<Vec<Place>>, String> {
    let mut sets = vec![Vec::new()];
    for of_vbucket in choices {
        let with = |set: &Vec<Place>| {
            of_vbucket.iter().map(|places| [&**set, places].concat()).collect::<Vec<_>>()
        };
        sets = sets.iter().flat_map(with).collect();
    }
    let most = sets.iter().map(|set| set.len() as u64).max().unwrap_or_default();
    sets.retain(|set| set.len() as u64 == affected);
    match sets.is_empty() {
        false => Ok(sets),
        true if most < affected => Err(format!("{} effects are missing", affected - most)),
        true => Err("it has more effects than it tells".into()),
    }
}

/// Gives each statement places that no other one has. Those with one answer are first. The order of the statements says nothing: one that
/// began earlier may have taken effect later.
fn add_places(
    mut open: Vec<(usize, Vec<Vec<Place>>)>,
    mut known: BTreeMap<Place, usize>,
) -> Result<BTreeMap<Place, usize>, (usize, String)> {
    let mut left = usize::MAX;
    while open.len() < left {
        left = open.len();
        let mut ambiguous = Vec::new();
        for (statement, mut answers) in open {
            let taken = answers.iter().flatten().find_map(|place| known.get_key_value(place));
            let taken =
                taken.map(|(place, other)| format!("statement {other} has the place {place:?}"));
            answers.retain(|places| places.iter().all(|place| !known.contains_key(place)));
            match &answers[..] {
                [] => return Err((statement, taken.unwrap_or_default())),
                [places] => known.extend(places.iter().map(|place| (*place, statement))),
                _ => ambiguous.push((statement, answers)),
            }
        }
        open = ambiguous;
    }
    let Some((statement, answers)) = open.pop() else { return Ok(known) };
    let mut refused = (statement, String::new());
    for places in answers {
        let mut with = known.clone();
        with.extend(places.into_iter().map(|place| (place, statement)));
        match add_places(open.clone(), with) {
            Ok(found) => return Ok(found),
            Err(error) => refused = error,
        }
    }
    Err(refused)
}

/// Returns the branches and the log of a vbucket up to a position; `None` if the history does not
/// contain the position.
fn log_to(
    (branches, log): &History,
    vbucket: VbucketId,
    end: Position,
) -> Option<(&Branches, &[Arc<Mutation>])> {
    let at = usize::from(vbucket.0);
    let log = log[at].get(..end.seqno.0 as usize)?;
    (branch_of(&branches[at], end.seqno) == end.vbuuid).then_some((&branches[at], log))
}

/// True if the mutations `tail` are the effect of these writes on a vbucket with the log `before`.
fn is_effect(writes: &[&Write], before: &[Arc<Mutation>], tail: &[Arc<Mutation>]) -> bool {
    let exists = |id: &str| {
        let last = before.iter().rev().find(|mutation| &*mutation.id == id);
        last.is_some_and(|mutation| mutation.kind == MutationKind::Upsert)
    };
    let mut here: BTreeMap<&str, bool> = BTreeMap::new();
    let mut tail = tail.iter();
    for write in writes {
        let is_there = here.get(&*write.id).copied().unwrap_or_else(|| exists(&write.id));
        let is_deletion = write.kind == WriteKind::Delete;
        here.insert(&write.id, !is_deletion);
        if is_deletion && !is_there {
            continue;
        }
        if !tail.next().is_some_and(|mutation| is_of(mutation, write)) {
            return false;
        }
    }
    tail.next().is_none()
}

/// True if a mutation is the effect of a write.
fn is_of(mutation: &Mutation, write: &Write) -> bool {
    *mutation.id == *write.id
        && match &write.kind {
            WriteKind::Insert(document) | WriteKind::Upsert(document) => {
                mutation.kind == MutationKind::Upsert && json(&mutation.document) == json(document)
            }
            WriteKind::Delete => mutation.kind == MutationKind::Deletion,
        }
}

fn json(document: &[u8]) -> Value {
    serde_json::from_slice(document).unwrap_or(Value::Null)
}

#[cfg(test)]
#[path = "statements_tests.rs"]
mod statements_tests;
