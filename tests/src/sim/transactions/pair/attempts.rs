//! The commits of transactions over two buckets, and the check of the commits that are visible at
//! the epochs of one moment.
//!
//! A document names its statement ([`MARK`]), and a commit is a statement in each of its buckets.
//! The log up to a cut therefore tells which commits it contains, and how many documents of each. A
//! commit with only deletions in a bucket cannot be identified there, and is not checked in this
//! bucket.

use std::collections::BTreeMap;
use std::sync::Arc;

use projector::testing::Mutation;
use proto::model::cut::Cut;
use proto::model::ids::{BucketId, TransactionId};
use proto::rpc::mutation::MutationKind;
use serde_json::Value;

use crate::sim::judge::statements::MARK;
use crate::sim::judge::truth::Truth;
use crate::sim::transactions::running::Running;

/// The number of documents in a log, by the statement that has written them.
pub(super) type Rows = BTreeMap<usize, usize>;

/// A commit that was requested.
#[derive(Debug)]
struct Attempt {
    /// The number of the transaction in the deciding bucket.
    number: Option<TransactionId>,
    /// For each bucket that the commit changes, the statement and the number of documents that it
    /// writes.
    parts: [Option<(usize, usize)>; 2],
    outcome: Fate,
}

/// The outcome of a commit, as known to the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// The outcome is unknown.
    InDoubt,
    /// The commit was refused: no part of it may be visible.
    Refused,
    /// The commit was acknowledged: all of it must be visible.
    Acknowledged,
}

/// All commits that were requested.
#[derive(Default)]
pub(super) struct Attempts(Vec<Attempt>);

impl Attempts {
    /// Records that a commit is requested; returns its number.
    pub fn begin(&mut self, parts: &[Running; 2]) -> usize {
        let part = |running: &Running| {
            running.changes.own_changes()?;
            let upserts = running.left.iter().filter(|left| left.document.is_some()).count();
            Some((running.statement, upserts))
        };
        let [left, right] = parts;
        let number = parts.iter().find(|part| part.changes.own_changes().is_some());
        let number = number.map(|part| part.changes.id());
        self.0.push(Attempt { number, parts: [part(left), part(right)], outcome: Fate::InDoubt });
        self.0.len() - 1
    }

    /// True if a commit changes both buckets.
    pub fn is_joint(&self, attempt: usize) -> bool {
        self.0[attempt].parts.iter().all(Option::is_some)
    }

    /// Records the outcome of a commit.
    pub fn end(&mut self, attempt: usize, outcome: Fate) {
        self.0[attempt].outcome = outcome;
    }

    /// Returns the commits that are acknowledged so far, each with each of these buckets.
    pub fn acknowledged_in(&self, buckets: &[usize]) -> Vec<(usize, usize)> {
        let is_it = |n: &usize| self.0[*n].outcome == Fate::Acknowledged;
        let found = (0..self.0.len()).filter(is_it);
        found.flat_map(|n| buckets.iter().map(move |bucket| (n, *bucket))).collect()
    }

    /// Judges the commits that are visible in both buckets; returns a text about a violation.
    /// `must` lists the commits that must be visible, each with a bucket.
    pub fn judge(&self, rows: [&Rows; 2], must: &[(usize, usize)]) -> Option<String> {
        self.0.iter().enumerate().find_map(|(n, attempt)| {
            let (mut there, mut is_missing) = (Vec::new(), false);
            for (bucket, (part, rows)) in attempt.parts.iter().zip(rows).enumerate() {
                let Some((statement, upserts)) = part.filter(|(_, upserts)| *upserts > 0) else {
                    continue;
                };
                let found = rows.get(&statement).copied().unwrap_or_default();
                if found > 0 && found != upserts {
                    return Some(format!("{found} of {upserts} documents of {attempt:?}"));
                }
                there.push(found > 0);
                is_missing |= found == 0 && must.contains(&(n, bucket));
            }
            let is_wrong = match attempt.outcome {
                _ if there.windows(2).any(|both| both[0] != both[1]) => "is in one bucket only",
                Fate::Acknowledged if is_missing => "is missing",
                Fate::Refused if there.contains(&true) => "was refused, and is there",
                _ => return None,
            };
            let Attempt { number, parts, outcome } = attempt;
            Some(format!(
                "commit {n}, transaction {number:?}, {parts:?}, {outcome:?}, {is_wrong}: {there:?}"
            ))
        })
    }
}

/// Returns the statements whose documents a bucket contains at a cut; `None` if the cut is not in a
/// known history.
pub(super) fn rows_at(truth: &Truth, bucket: BucketId, cut: &Cut) -> Option<Rows> {
    let mut rows = Rows::new();
    for (vbucket, position) in cut.iter() {
        add(&mut rows, &truth.log_at(bucket, vbucket, position)?);
    }
    Some(rows)
}

/// Adds the statements of a log.
pub(super) fn add(rows: &mut Rows, log: &[Arc<Mutation>]) {
    for mutation in log.iter().filter(|mutation| mutation.kind == MutationKind::Upsert) {
        let document: Value = serde_json::from_slice(&mutation.document).unwrap_or_default();
        let mark = document.get(MARK).and_then(Value::as_str);
        let statement = mark.and_then(|mark| mark.split_once('.')?.0.parse().ok());
        if let Some(statement) = statement {
            *rows.entry(statement).or_default() += 1;
        }
    }
}
