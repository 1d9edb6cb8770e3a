//! The reading of a scan: completely or in pages on two routers, at full speed or slowly.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use proto::model::ids::Epoch;
use proto::model::index::IndexInfo;
use proto::rpc::rows::Row;
use proto::rpc::scan::ScanRequest;
use proto::value::Value;
use proto::value::key;
use proto::{Error, Result};
use router::ScanBatch;
use tokio::time::sleep;

use super::query::totals;
use crate::sim::client::session::Session;
use crate::sim::judge::oracle::Shown;

/// The pause after which the server parks a scan.
const PARKED_AFTER: Duration = Duration::from_millis(600);

/// An entry as bytes, which are in index order, and in the model's form with its included value.
pub type Found = (Vec<u8>, Shown);

/// The speed and the pages of a reader.
#[derive(Clone, Debug, Default)]
pub struct Pace {
    /// The number of rows of a page. Unordered pages need virtual scans.
    pub page_rows: Option<u64>,
    /// The pauses after batches and pages, in reverse order.
    pub pauses: Vec<Duration>,
    /// True if a page is held for a long time, during which its token must remain valid.
    pub holds_pages: bool,
}

/// The rows that were read, up to the end of the scan or an error.
#[derive(Debug, Default)]
pub struct Read {
    /// The epoch of the scan; `None` if the scan did not begin.
    pub epoch: Option<Epoch>,
    /// The rows in their order.
    pub found: Vec<Found>,
    /// The aggregates of the answer.
    pub aggregates: Option<Vec<String>>,
    /// The error with which the scan ended, if there is one.
    pub error: Option<Error>,
}

/// Reads a scan; pages are read on the two routers alternately.
pub async fn read(
    session: &Session,
    parts_read: &AtomicU64,
    info: &IndexInfo,
    request: &ScanRequest,
    pace: Pace,
) -> Read {
    let mut read = Read::default();
    read.error = read_into(&mut read, session, parts_read, info, request, pace).await.err();
    read
}

async fn read_into(
    read: &mut Read,
    session: &Session,
    parts_read: &AtomicU64,
    info: &IndexInfo,
    request: &ScanRequest,
    mut pace: Pace,
) -> Result<()> {
    let mut token = None::<String>;
    for page in 0.. {
        let router =
            if page % 2 == 0 { Arc::clone(&session.router) } else { session.other_router() };
        let mut scan = router.scan(request.clone(), token.as_deref()).await?;
        let epoch = *read.epoch.get_or_insert(scan.epoch());
        if scan.epoch() != epoch {
            let text = format!("epoch {epoch} goes on as epoch {}", scan.epoch());
            return Err(Error::internal(text));
        }
        if let Some(rows) = pace.page_rows {
            scan.end_page_after(rows);
        }
        while let Some(batch) = scan.next().await? {
            match batch {
                ScanBatch::Rows(block) => {
                    for row in block.iter() {
                        read.found.push((row.entry.to_vec(), decode(row, info)?));
                    }
                }
                ScanBatch::Aggregates(partials) => read.aggregates = Some(totals(&partials)),
            }
            if !pace.holds_pages
                && let Some(pause) = pace.pauses.pop()
            {
                parts_read.fetch_add(1, Ordering::Relaxed);
                // A long pause is one of a portal, which gives up its streams.
                if pause > PARKED_AFTER {
                    scan.park();
                }
                sleep(pause).await;
            }
        }
        token = scan.token()?;
        drop(scan);
        if token.is_none() {
            return Ok(());
        }
        sleep(pace.pauses.pop().unwrap_or_default()).await;
    }
    Err(Error::internal("pages end"))
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
