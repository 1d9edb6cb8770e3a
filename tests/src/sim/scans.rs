//! The scans of the simulated client, each judged: it shows the entries of the model at the cut of its epoch, and the epoch
//! covers everything that was requested. Writes go on during half of the scans.

use std::time::Duration;

use proto::model::cut::{Position, WritePosition};
use proto::model::ids::{Epoch, VbucketId};
use proto::model::index::IndexInfo;
use proto::rpc::rows::Row;
use proto::rpc::scan::{Consistency, KeyRange, Output, ScanRequest};
use proto::value::Value;
use proto::value::key;
use proto::{Error, ErrorCode, Result};
use router::ScanBatch;
use serde_json::json;
use tokio::time::{sleep, timeout};

use super::marks::cut_of;
use super::oracle::{Shown, SimIndex, compare, documents, shown};
use super::violation;
use super::workload::{STATEMENT, Session, Workload, now};

/// An entry in bytes, which are its order, and in the model's form with its included value.
type Found = (Vec<u8>, Shown);

/// A range of the first key part: from the first value up to the second, exclusive.
type Between = (serde_json::Value, serde_json::Value);

/// The request of a scan.
struct Asked<'a> {
    index: &'a SimIndex,
    info: &'a IndexInfo,
    request: ScanRequest,
    /// The range, if the scan reads a part of the index.
    between: Option<Between>,
    /// True if the scan asks for included values.
    include: bool,
    /// The number of rows of a page. Unordered pages need virtual scans.
    pages: Option<u64>,
    /// Positions that the epoch must cover, unless they were lost in the meantime.
    at_least: Option<WritePosition>,
    /// [`super::truth::Truth::losses`] at the time of the request.
    losses: Vec<u64>,
    /// True if the scan must not be refused.
    must: bool,
    /// The time of the request.
    began: Duration,
}

impl Workload {
    /// Runs and judges a scan of all or a part of an index. With `must` the scan may not be refused. Returns whether it
    /// succeeded.
    pub(super) async fn scan(
        &mut self,
        session: &mut Session,
        index: &SimIndex,
        must: bool,
    ) -> bool {
        let Some(info) = session.router.catalog().index(index.name).cloned() else { return !must };
        let asked = self.draw_scan(session, index, &info, must);
        let catalog = session.router.catalog();
        let from = catalog.buckets.get(&info.bucket).and_then(|bucket| bucket.readable_from());
        let reading = timeout(STATEMENT, read(session, &asked));
        let (scanned, written) = match !must && self.random.bool() {
            true => tokio::join!(reading, self.change_meanwhile(session)),
            false => (reading.await, Vec::new()),
        };
        session.note_writes(&written);
        match scanned {
            Ok(Ok((epoch, found))) => {
                if from.is_some_and(|from| epoch < from) {
                    let name = index.name;
                    let what =
                        format!("a scan of {name} read epoch {epoch}, from before a rollback");
                    violation(&self.summary, what);
                }
                self.judge(session, &asked, epoch, found).await;
                true
            }
            Ok(Err(error)) if self.is_wrong(&asked, &error) => {
                violation(&self.summary, format!("a scan of {} failed: {error}", index.name));
                true
            }
            refused => {
                let error = refused.ok().and_then(|scanned| scanned.err());
                // An error about lost positions says nothing about whether the index is served.
                if error.as_ref().is_none_or(|error| error.code != ErrorCode::InvalidParameter) {
                    self.refusal = error;
                }
                self.count(|summary| summary.scans_refused += 1);
                false
            }
        }
    }

    /// Writes while a scan reads, so that epochs advance.
    async fn change_meanwhile(&mut self, session: &Session) -> Vec<WritePosition> {
        let mut written = Vec::new();
        for _ in 0..self.random.usize(1..4) {
            sleep(Duration::from_millis(self.random.u64(..8))).await;
            written.extend(self.change_some(session).await);
        }
        written
    }

    fn draw_scan<'a>(
        &mut self,
        session: &Session,
        index: &'a SimIndex,
        info: &'a IndexInfo,
        must: bool,
    ) -> Asked<'a> {
        let reverse = self.random.bool();
        let limit = self.random.bool().then(|| self.random.u64(..30)).filter(|_| !must);
        let (consistency, at_least) = match (must, self.random.u32(..3)) {
            (false, 0) => (Consistency::Any, None),
            (false, 1) if session.last_write.is_some() => {
                let last = session.last_write.clone().expect("checked above");
                (Consistency::AtPlus(last.positions.clone()), Some(last))
            }
            _ => {
                // Positions that the source lacks at the time of the request are left out, though they may be pushed
                // again later.
                let is_here = |(v, p): &(VbucketId, Position)| {
                    self.truth.present_log(info.bucket, *v, *p).is_some()
                };
                let mut last = session.last_write.clone();
                last.iter_mut().for_each(|last| last.positions.retain(is_here));
                (Consistency::RequestPlus, last)
            }
        };
        // Pages, on two routers alternately.
        let pages = (!must && self.random.u8(..3) == 0).then(|| self.random.u64(1..20));
        let ordered = pages.is_none() || self.random.bool();
        let include = self.random.bool();
        let between = (!must && self.random.u8(..3) == 0).then(|| self.draw_range(index));
        let request = ScanRequest {
            index: info.id,
            ranges: vec![between.as_ref().map_or_else(KeyRange::all, key_range)],
            filter: None,
            reverse,
            ordered,
            distinct_parts: None,
            limit: limit.filter(|_| ordered),
            offset: 0,
            output: Output::Rows { include },
            consistency,
            timeout_ms: 5_000,
        };
        let (losses, began) = (self.truth.losses(), now());
        Asked { index, info, request, between, include, pages, at_least, losses, must, began }
    }

    fn draw_range(&mut self, index: &SimIndex) -> Between {
        let random = &mut self.random;
        if index.name.starts_with("by_") {
            let bounds = ["", "a", "aa", "b", "é"];
            let mut bound = || json!(bounds[random.usize(..bounds.len())]);
            return (bound(), bound());
        }
        let low = random.i64(-1..100);
        (json!(low), json!(low + random.i64(..60)))
    }

    /// True if a scan must not end in this error.
    fn is_wrong(&self, asked: &Asked<'_>, error: &Error) -> bool {
        let of_the_lost = error.code == ErrorCode::InvalidParameter && self.is_lost(asked);
        let excused = !asked.must && self.is_excused(error, asked.began);
        !of_the_lost && !error.is_retry() && error.code != ErrorCode::Unknown && !excused
    }

    /// True if a failover has lost a part of the writes that `at_plus` asks for.
    fn is_lost(&self, asked: &Asked<'_>) -> bool {
        asked.at_least.as_ref().is_some_and(|last| {
            let lost = |(v, p): &(VbucketId, Position)| {
                self.truth.present_log(last.bucket, *v, *p).is_none()
            };
            last.positions.iter().any(lost)
        })
    }

    async fn judge(
        &self,
        session: &Session,
        asked: &Asked<'_>,
        epoch: Epoch,
        mut found: Vec<Found>,
    ) {
        let Asked { index, info, request: ScanRequest { reverse, limit, .. }, .. } = asked;
        let name = index.name;
        let Some(cut) = cut_of(&session.marks, info.bucket, epoch).await else {
            let what = format!("a scan read epoch {epoch}, which was never published");
            return violation(&self.summary, what);
        };
        if let Some(write) = &asked.at_least {
            let losses = self.truth.losses();
            let lost = |v: VbucketId, p| {
                let again = losses.get(usize::from(v.0)) != asked.losses.get(usize::from(v.0));
                again || self.truth.present_log(info.bucket, v, p).is_none()
            };
            let covers = |v, p| self.truth.is_before(info.bucket, v, p, cut.get(v));
            let covered = write.positions.iter().all(|(v, p)| lost(*v, *p) || covers(*v, *p));
            if !covered {
                let what =
                    format!("a scan of {name} at epoch {epoch} misses an acknowledged write");
                violation(&self.summary, what);
            }
        }
        if !asked.request.ordered {
            found.sort_by(|(one, _), (other, _)| one.cmp(other));
            if *reverse {
                found.reverse();
            }
        }
        let found: Vec<Shown> = found.into_iter().map(|(_, shown)| shown).collect();
        let mut expected = shown(index, &documents(&self.truth, info.bucket, &cut));
        if let Some((low, high)) = asked.between.clone().map(|(low, high)| (Some(low), Some(high)))
        {
            let is_in = |first: &Option<serde_json::Value>| {
                compare(first, &low).is_ge() && compare(first, &high).is_lt()
            };
            expected.retain(|((key, _), _)| is_in(&key[0]));
        }
        if !asked.include {
            expected.iter_mut().for_each(|(_, included)| *included = None);
        }
        if *reverse {
            expected.reverse();
        }
        expected.truncate(limit.map_or(usize::MAX, |limit| limit as usize));
        self.count(|summary| {
            summary.scans += 1;
            summary.note((name, epoch, &found));
            summary.entries += expected.len() as u64;
        });
        if found != expected {
            let at = found.iter().zip(&expected).position(|(f, e)| f != e);
            let at = at.unwrap_or(found.len().min(expected.len()));
            let (here, there) = (found.get(at), expected.get(at));
            let (found, expected) = (found.len(), expected.len());
            let what = format!(
                "{name} at epoch {epoch} (reverse {reverse}, limit {limit:?}): {found} entries, not {expected}; \
                 entry {at} is {here:?}, not {there:?}"
            );
            violation(&self.summary, what);
        }
    }
}

/// Reads a scan; with `pages`, in pages of this many rows on both routers alternately.
async fn read(session: &Session, asked: &Asked<'_>) -> Result<(Epoch, Vec<Found>)> {
    let (mut found, mut token) = (Vec::new(), None::<String>);
    for page in 0.. {
        let router = if page % 2 == 0 { &session.router } else { &session.other_router };
        let mut scan = router.scan(asked.request.clone(), token.as_deref()).await?;
        if let Some(rows) = asked.pages {
            scan.end_page_after(rows);
        }
        while let Some(batch) = scan.next().await? {
            match batch {
                ScanBatch::Rows(block) => {
                    for row in block.iter() {
                        found.push((row.entry.to_vec(), decode(row, asked.info)?));
                    }
                }
                ScanBatch::Aggregates(_) => {
                    return Err(Error::internal("aggregates in a scan of rows"));
                }
            }
        }
        token = scan.token()?;
        if token.is_none() {
            return Ok((scan.epoch(), found));
        }
    }
    Err(Error::internal("pages end"))
}

fn key_range((low, high): &Between) -> KeyRange {
    let bound = |value: &serde_json::Value| {
        let value = Value::parse_json(value.to_string().as_bytes()).expect("JSON");
        let mut encoded = Vec::new();
        key::encode_part(&value, false, &mut encoded);
        bytes::Bytes::from(encoded)
    };
    KeyRange { low: bound(low), high: Some(bound(high)) }
}

fn decode(row: Row<'_>, info: &IndexInfo) -> Result<Shown> {
    let json = |value: Value| match value {
        Value::Missing => None,
        value => serde_json::from_str(&value.to_json()).ok(),
    };
    let mut rest = row.entry;
    let mut parts = Vec::new();
    for part in &info.spec.keys {
        parts.push(json(key::decode_part(&mut rest, part.descending)?));
    }
    let mut included = row.include;
    let value = match included.is_empty() {
        true => None,
        false => json(key::decode_part(&mut included, false)?),
    };
    Ok(((parts, String::from_utf8_lossy(rest).into_owned()), value))
}
