//! The simulated client's scans, each judged: it shows what the model has at the cut of its epoch, and has all that it
//! was asked to have.

use proto::cut::{Position, WritePosition};
use proto::ids::{Epoch, VbucketId};
use proto::index::IndexInfo;
use proto::key;
use proto::scan::{Consistency, KeyRange, Output, Row, ScanRequest};
use proto::value::Value;
use proto::{Error, ErrorCode, Result};
use router::ScanBatch;
use tokio::time::timeout;

use super::marks::cut_of;
use super::oracle::{Entry, SimIndex, documents, entries};
use super::violation;
use super::workload::{STATEMENT, Session, Workload};

/// An entry as bytes, which are its order, and as the model has it.
type Found = (Vec<u8>, Entry);

/// What a scan was asked.
struct Asked<'a> {
    index: &'a SimIndex,
    info: &'a IndexInfo,
    request: ScanRequest,
    /// Rows of a page; unordered pages have virtual scans.
    pages: Option<u64>,
    /// What it must have.
    at_least: Option<WritePosition>,
    /// It may not be refused.
    must: bool,
}

impl Workload {
    /// A scan of all or part of an index, judged. `must` says that it may not be refused. True if it was not.
    pub(super) async fn scan(&mut self, session: &Session, index: &SimIndex, must: bool) -> bool {
        let Some(info) = session.router.catalog().index(index.name).cloned() else { return !must };
        let asked = self.draw_scan(session, index, &info, must);
        let catalog = session.router.catalog();
        let from = catalog.buckets.get(&info.bucket).and_then(|bucket| bucket.readable_from());
        match timeout(STATEMENT, read(session, &asked)).await {
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
            Ok(Err(error)) if self.is_wrong(session, &asked, &error) => {
                violation(&self.summary, format!("a scan of {} failed: {error}", index.name));
                true
            }
            refused => {
                let error = refused.ok().and_then(|scanned| scanned.err());
                // That what was asked for is lost says nothing of whether the index is served.
                if error.as_ref().is_none_or(|error| error.code != ErrorCode::InvalidParameter) {
                    self.refusal = error;
                }
                self.count(|summary| summary.scans_refused += 1);
                false
            }
        }
    }

    fn draw_scan<'a>(
        &mut self,
        session: &Session,
        index: &'a SimIndex,
        info: &'a IndexInfo,
        must: bool,
    ) -> Asked<'a> {
        let reverse = self.random.bool();
        let limit = self.random.bool().then(|| self.random.u64(..30));
        let (consistency, at_least) = match (must, self.random.u32(..3)) {
            (false, 0) => (Consistency::Any, None),
            (false, 1) if session.last_write.is_some() => {
                let last = session.last_write.clone().expect("it is there");
                (Consistency::AtPlus(last.positions.clone()), Some(last))
            }
            _ => (Consistency::RequestPlus, session.last_write.clone()),
        };
        // Pages, on two routers in turn; unordered ones have virtual scans.
        let pages = (!must && self.random.u8(..3) == 0).then(|| self.random.u64(1..20));
        let ordered = pages.is_none() || self.random.bool();
        let request = ScanRequest {
            index: info.id,
            ranges: vec![KeyRange::all()],
            filter: None,
            reverse,
            ordered,
            distinct_parts: None,
            limit: limit.filter(|_| ordered),
            offset: 0,
            output: Output::Rows { include: false },
            consistency,
            timeout_ms: 5_000,
        };
        Asked { index, info, request, pages, at_least, must }
    }

    /// May a scan not end in this error?
    fn is_wrong(&self, session: &Session, asked: &Asked<'_>, error: &Error) -> bool {
        let of_the_lost = error.code == ErrorCode::InvalidParameter && self.is_lost(session);
        let excused = !asked.must && self.is_excused(error);
        !of_the_lost && !error.is_retry() && error.code != ErrorCode::Unknown && !excused
    }

    /// Has a failover taken a part of the last writes? They are what `at_plus` asks for.
    fn is_lost(&self, session: &Session) -> bool {
        session.last_write.as_ref().is_some_and(|last| {
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
            let lost = |v, p| self.truth.present_log(info.bucket, v, p).is_none();
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
        let found: Vec<Entry> = found.into_iter().map(|(_, entry)| entry).collect();
        let mut expected = entries(index, &documents(&self.truth, info.bucket, &cut));
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

/// Reads a scan; with `pages` in pages of so many rows, on both routers in turn.
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

fn decode(row: Row<'_>, info: &IndexInfo) -> Result<Entry> {
    let mut rest = row.entry;
    let mut parts = Vec::new();
    for part in &info.spec.keys {
        parts.push(match key::decode_part(&mut rest, part.descending)? {
            Value::Missing => None,
            value => serde_json::from_str(&value.to_json()).ok(),
        });
    }
    Ok((parts, String::from_utf8_lossy(rest).into_owned()))
}
