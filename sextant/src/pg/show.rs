//! The results of `SHOW`: tables of the cluster's status, and the settings of the session.

use proto::Result;
use proto::expr::ColumnType;
use proto::rpc::api::TransactionStatus;

use super::settings::Settings;
use crate::rows::value::Datum;
use crate::sql::ast::{CatalogueQuery, Show};
use crate::sql::backend::Backend;
use crate::sql::plan::ColumnInfo;
use crate::status::render::show;
use crate::status::{catalog_status, cluster_status};

/// Describes columns of text by name.
fn texts(names: &[&str]) -> Vec<ColumnInfo> {
    let column =
        |name: &&str| ColumnInfo { name: (*name).to_owned(), column_type: ColumnType::Text };
    names.iter().map(column).collect()
}

/// The column of EXPLAIN, with PostgreSQL's name.
pub(super) fn explain_columns() -> Vec<ColumnInfo> {
    texts(&["QUERY PLAN"])
}

/// The columns of a query of PostgreSQL's catalogue.
pub(super) fn catalogue_columns(query: &CatalogueQuery) -> Vec<ColumnInfo> {
    let names: Vec<&str> = query.columns.iter().map(String::as_str).collect();
    texts(&names)
}

/// The columns of a SHOW.
pub(super) fn columns(what: &Show) -> Vec<ColumnInfo> {
    match what {
        Show::Setting(name) => texts(&[name]),
        Show::Transactions => transaction_columns(),
        _ => show::columns(what).unwrap_or_else(|| texts(&["name", "setting"])),
    }
}

fn transaction_columns() -> Vec<ColumnInfo> {
    let column = |(name, column_type): (&str, _)| ColumnInfo { name: name.to_owned(), column_type };
    let columns = [
        ("transaction", ColumnType::Int8),
        ("bucket", ColumnType::Text),
        ("owner", ColumnType::Text),
        ("state", ColumnType::Text),
        ("age_ms", ColumnType::Int8),
        ("changes", ColumnType::Int8),
        ("bytes", ColumnType::Int8),
        ("epoch", ColumnType::Int8),
    ];
    columns.into_iter().map(column).collect()
}

/// The open transactions that have changes.
async fn transactions(backend: &dyn Backend) -> Result<Vec<Vec<Datum>>> {
    let catalog = backend.catalog();
    let mut open = backend.transactions().await?;
    open.sort_by_key(|open| (open.bucket, open.transaction));
    let int = |n: u64| Datum::int(i64::try_from(n).unwrap_or(i64::MAX));
    let row = |open: TransactionStatus| {
        let bucket = catalog.buckets.get(&open.bucket);
        let bucket = bucket.map_or_else(|| open.bucket.to_string(), |bucket| bucket.name.clone());
        vec![
            int(open.transaction.0),
            Datum::text(bucket),
            Datum::text(open.owner),
            Datum::text(if open.is_committing { "committing" } else { "open" }),
            int(open.age_ms),
            int(open.changes),
            int(open.bytes),
            open.snapshot.map_or(Datum::NULL, |epoch| int(epoch.0)),
        ]
    };
    Ok(open.into_iter().map(row).collect())
}

/// The rows of a SHOW. Definitions are those of the catalog; counts and progress are NULL if the coordinator does not
/// answer, except that slices without it would tell nothing.
pub(super) async fn rows(
    what: &Show,
    backend: &dyn Backend,
    settings: &Settings,
) -> Result<Vec<Vec<Datum>>> {
    let status = match what {
        Show::Setting(name) => return Ok(vec![vec![Datum::text(settings.show(name)?)]]),
        Show::All => {
            let all = settings.all().into_iter();
            return Ok(all
                .map(|(name, value)| vec![Datum::text(name), Datum::text(value)])
                .collect());
        }
        Show::Transactions => return transactions(backend).await,
        Show::Buckets | Show::Copies => catalog_status(backend),
        Show::Indexes | Show::Nodes | Show::Slices | Show::Moves | Show::Rollbacks => {
            cluster_status(backend).await
        }
    };
    if matches!(what, Show::Slices) {
        status.coordinator.check()?;
    }
    Ok(show::rows(what, &status))
}
