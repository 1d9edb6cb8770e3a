//! Moments of both buckets, that is, epochs that both contain a commit or both lack it.

use std::collections::BTreeMap;
use std::sync::Arc;

use proto::model::cut::Cut;
use proto::rpc::scan::Consistency;
use proto::{Error, Result};
use serde_json::Value;
use sextant::access::{EpochPin, TransactionView};
use tokio::time::timeout;

use super::attempts::rows_at;
use super::lane::{IDS, Lane};
use super::run::{Pair, STEP};
use crate::sim::client::workload::now;
use crate::sim::judge::marks::cut_of;
use crate::sim::judge::oracle::documents;
use crate::sim::transactions::running::{Own, Running, Snapshot};
use crate::sim::violation;

/// The time limit for the choice of an epoch, in milliseconds.
const PIN_MS: u64 = 3_000;

impl Pair {
    /// Judges the two epochs of a transaction that reads both buckets.
    pub(super) fn judge_moment(&self, [left, right]: &[Running; 2]) {
        if let (Some(left), Some(right)) = (&left.snapshot, &right.snapshot) {
            self.judge_cuts([&left.cut, &right.cut], &[]);
        }
    }

    /// Judges the commits in two cuts of one moment.
    pub(super) fn judge_cuts(&self, cuts: [&Cut; 2], must: &[(usize, usize)]) {
        let rows = |n: usize| {
            let Lane { work, session } = &self.lanes[n];
            rows_at(&work.truth, session.bucket.id, cuts[n])
        };
        if let (Some(left), Some(right)) = (rows(0), rows(1))
            && !self.is_lossy()
            && let Some(wrong) = self.attempts.judge([&left, &right], must)
        {
            let text = format!("two buckets at one moment: {wrong}; the cuts are {cuts:?}");
            violation(&self.summary, text);
        }
    }

    /// Reads both buckets at one moment and judges the commits.
    pub(super) async fn look(&mut self) {
        let (began, is_any) = (now(), self.random.u8(..4) == 0);
        let (first, seed) = (self.random.usize(..2), self.random.u64(..));
        // A moment that may be old need not include any commit. Only the bucket of the first read is waited for: another one whose
        // projector does not answer keeps its epoch.
        let must = if is_any { Vec::new() } else { self.attempts.acknowledged_in(&[first]) };
        let Self { background, lanes, .. } = self;
        let looking = look_at(lanes, first, is_any);
        let moment = match background.beside(timeout(STEP, looking)).await {
            Ok(Ok(Some(moment))) => moment,
            Ok(Ok(None)) | Err(_) => return,
            Ok(Err(error)) => return self.judge_error("a moment", &error, began),
        };
        self.judge_cuts([&moment[0].1, &moment[1].1], &must);
        self.count(|summary| summary.moments_read += 1);
        let Self { background, lanes, .. } = self;
        let mut random = fastrand::Rng::with_seed(seed);
        for (lane, (pin, cut)) in lanes.iter().zip(&moment) {
            let read = read_at(lane, (&**pin, &**cut), &mut random);
            if let Ok(Some(wrong)) = background.beside(timeout(STEP, read)).await {
                violation(&lane.work.summary, wrong);
            }
        }
    }
}

/// The epochs of one moment, each as its lease and its cut.
pub(super) type Moment = [(Box<dyn EpochPin>, Arc<Cut>); 2];

/// Leases a moment of both buckets; `None` if the judge does not know a cut.
pub(super) async fn look_at(
    lanes: &[Lane; 2],
    first: usize,
    is_any: bool,
) -> Result<Option<Moment>> {
    let Lane { work, session } = &lanes[first];
    let (backend, bucket) = (&session.backend, session.bucket.id);
    let index = session.router.catalog().index(work.indexes[0].name).cloned();
    let pin = match index.filter(|_| is_any) {
        Some(index) => backend.pin(index.local_id(), &Consistency::Any, PIN_MS).await?,
        None => backend.pin_bucket(bucket, PIN_MS).await?,
    };
    let other = &lanes[1 - first].session;
    let other_pin = pin.pin_at(other.bucket.id, PIN_MS).await?;
    let cut = cut_of(&session.marks, bucket, pin.epoch()).await;
    let other_cut = cut_of(&other.marks, other.bucket.id, other_pin.epoch()).await;
    let (Some(cut), Some(other_cut)) = (cut, other_cut) else { return Ok(None) };
    let mut moment = [(pin, cut), (other_pin, other_cut)];
    if first == 1 {
        moment.reverse();
    }
    Ok(Some(moment))
}

/// Reads documents and the index of a bucket at an epoch; returns a text about a violation.
async fn read_at(
    lane: &Lane,
    (pin, cut): (&dyn EpochPin, &Cut),
    random: &mut fastrand::Rng,
) -> Option<String> {
    let Lane { work, session } = lane;
    let mut reader = work.reader();
    reader.random = random.fork();
    // A refusal is judged by the reader.
    let at = (pin.epoch(), &*pin.catalog());
    drop(reader.scan_in(session, &work.indexes[0], at, Own::default(), None).await);
    let ids: Vec<String> = (0..4).map(|_| format!("k{}", random.u64(..IDS))).collect();
    let view = TransactionView { snapshot: Some(pin.epoch()), own: None };
    let found = session.backend.get(&session.bucket, ids.clone(), view).await.ok()?;
    let expected: BTreeMap<String, Value> = documents(&work.truth, session.bucket.id, cut);
    ids.iter().zip(found).find_map(|(id, found)| {
        let found = found.map(|found| serde_json::from_slice::<Value>(&found).expect("JSON"));
        let expected = expected.get(id);
        let is_wrong = found.as_ref() != expected;
        is_wrong.then(|| format!("document {id} at a moment is {found:?}, not {expected:?}"))
    })
}

/// Chooses the epoch of a bucket, if the transaction has read the other bucket.
pub(super) async fn pin_other(lane: &Lane, parts: &mut [Running; 2], at: usize) -> Result<()> {
    let Lane { work, session } = lane;
    let other = parts[1 - at].snapshot.as_ref();
    let (None, Some(other)) = (&parts[at].snapshot, other) else { return Ok(()) };
    let bucket = session.bucket.id;
    let pin = other.pin_at(bucket, PIN_MS).await?;
    let Some(cut) = cut_of(&session.marks, bucket, pin.epoch()).await else {
        return Err(Error::unavailable("the cut is not known"));
    };
    let documents = documents(&work.truth, bucket, &cut);
    parts[at].snapshot = Some(Snapshot::new(pin, cut, documents, None));
    Ok(())
}
