//! The checks that the cluster is whole and that every index contains what was written.

use std::sync::Arc;

use tokio_postgres::Client;

use super::clients::{Failed, Shared, execute, row, select};
use super::documents::{FED, INDEXES};
use super::history::{Row, Scan};
use super::scanners::SETTINGS;
use crate::harness::sql::simple;

/// The statement that writes a document in a bucket without indexes, to check that a router accepts
/// writes.
const PROBE: &str = "INSERT INTO probe (id, doc) VALUES ('p', '{}') \
                     ON CONFLICT (id) DO UPDATE SET doc = excluded.doc";

/// Returns an error unless all slices have their copies on live members, and each router accepts a
/// write and answers a scan with all earlier writes.
pub async fn is_whole(shared: &Shared) -> Result<(), Failed> {
    for router in 0..shared.routers() {
        let at = |error: Failed| Failed(format!("router {router}: {error}"));
        let client = shared.sql(router).await.map_err(at)?;
        execute(&client, "SET statement_timeout = '3s'; SET consistency = 'request_plus'").await?;
        execute(&client, PROBE).await?;
        let slices = simple(&client, "SHOW SLICES").await?;
        for index in INDEXES.iter().chain([&FED]) {
            let mine = slices.iter().filter(|row| row[0].as_deref() == Some(index.name));
            let waiting: Vec<_> =
                mine.clone().filter(|row| row[4].as_deref() != Some("ready")).collect();
            if mine.count() == 0 || !waiting.is_empty() {
                return Err(Failed(format!(
                    "router {router}: slices of {}: {waiting:?}",
                    index.name
                )));
            }
            let count = simple(&client, &format!("SELECT count(*) FROM {}", index.name)).await;
            count.map_err(|error| {
                Failed(format!("router {router}: {}: {}", index.name, Failed::from(error)))
            })?;
        }
    }
    Ok(())
}

/// Compares all indexes at each router. With `at_rest` no writes are in progress, so that all
/// routers must return equal counts.
pub async fn everything(shared: &Arc<Shared>, at_rest: bool) {
    for router in 0..shared.routers() {
        if let Err(error) = at(shared, router, at_rest).await {
            shared.violation(format!("comparing everything at router {router}: {error}"));
        }
    }
}

async fn at(shared: &Shared, router: usize, at_rest: bool) -> Result<(), Failed> {
    let client = shared.sql(router).await?;
    let begun = shared.history().tick();
    execute(&client, SETTINGS).await?;
    execute(&client, "SET consistency = 'request_plus'; BEGIN READ ONLY").await?;
    let mut scans = Vec::new();
    for index in &INDEXES {
        let rows = select(&client, &index.select()).await?;
        let count = value(&client, &format!("SELECT count(*) FROM {}", index.name)).await?;
        if count != Some(rows.len().to_string()) {
            shared.violation(format!("{}: count(*) {count:?} and {} rows", index.name, rows.len()));
        }
        scans.push((index, rows));
    }
    execute(&client, "COMMIT").await?;
    let end = shared.history().tick();
    let mut verdicts = Vec::new();
    for (index, rows) in &scans {
        let scan = Scan { index, range: None, not_before: Some(begun), end, ordered: false, rows };
        verdicts.push(shared.judge(&scan));
    }
    for pair in verdicts.windows(2) {
        let apart = shared.history().judge_together(&pair[0], &pair[1]);
        apart.into_iter().for_each(|told| shared.violation(told));
    }
    if at_rest {
        documents(shared, &client, "c", &scans[0].1).await?;
    }
    Ok(())
}

/// Compares the documents of a bucket with the rows of the index that contains all of them.
pub async fn documents(
    shared: &Shared,
    client: &Client,
    bucket: &str,
    indexed: &[Row],
) -> Result<(), Failed> {
    for rows in indexed.chunks(500) {
        let ids: Vec<_> = rows.iter().map(|row| format!("'{}'", row.id)).collect();
        let select = format!("SELECT id, doc FROM {bucket} WHERE id IN ({})", ids.join(", "));
        let mut found = Vec::new();
        for cells in simple(client, &select).await? {
            let doc = cells.get(1).cloned().flatten().unwrap_or_default();
            let doc: serde_json::Value = serde_json::from_str(&doc).unwrap_or_default();
            found.push(row(vec![cells[0].clone(), Some(doc["v"].to_string())])?);
        }
        for row in rows {
            let document = found.iter().find(|found| found.id == row.id).map(|found| found.version);
            if document != Some(row.version) {
                shared.report(|report| report.ghost += 1);
                shared.violation(format!(
                    "{}: the document is of {document:?}, its entry of version {}",
                    row.id, row.version
                ));
            }
        }
    }
    Ok(())
}

async fn value(client: &Client, statement: &str) -> Result<Option<String>, Failed> {
    let rows = simple(client, statement).await?;
    Ok(rows.into_iter().next().and_then(|row| row.into_iter().next()).flatten())
}
