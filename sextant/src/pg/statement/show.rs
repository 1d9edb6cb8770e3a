//! The results of `SHOW`: tables of the cluster's status, and the settings of the session.

use proto::Result;
use proto::expr::ColumnType;
use proto::model::ids::{BucketId, TransactionId};
use proto::rpc::api::{TransactionStatus, WriteReply};

use super::show_users;
use crate::access::{Access, FigureKind};
use crate::pg::session::settings::Settings;
use crate::rows::value::Datum;
use crate::sql::ast::{CatalogueQuery, Show};
use crate::sql::plan::ColumnInfo;
use crate::status::render::show;
use crate::status::{catalog_status, cluster_status};

/// Returns text columns with these names.
fn texts(names: &[&str]) -> Vec<ColumnInfo> {
    let column =
        |name: &&str| ColumnInfo { name: (*name).to_owned(), column_type: ColumnType::Text };
    names.iter().map(column).collect()
}

/// Returns the column of an EXPLAIN, with the name that PostgreSQL uses.
pub(super) fn explain_columns() -> Vec<ColumnInfo> {
    texts(&["QUERY PLAN"])
}

/// Returns the column of a statement that creates a token.
pub(super) fn token_columns() -> Vec<ColumnInfo> {
    texts(&["token"])
}

/// Returns the columns of a query of PostgreSQL's catalogue.
pub(super) fn catalogue_columns(query: &CatalogueQuery) -> Vec<ColumnInfo> {
    let names: Vec<&str> = query.columns.iter().map(String::as_str).collect();
    texts(&names)
}

/// Returns the columns of a SHOW.
pub(super) fn columns(what: &Show) -> Vec<ColumnInfo> {
    match what {
        Show::Setting(name) => texts(&[name]),
        Show::Transactions => typed(&TRANSACTIONS),
        Show::Transaction(_) => typed(&TRANSACTION),
        Show::Users => typed(&show_users::USERS),
        Show::Grants(_) => typed(&show_users::GRANTS),
        _ => show::columns(what).unwrap_or_else(|| texts(&["name", "setting"])),
    }
}

/// The columns of `SHOW TRANSACTIONS`.
const TRANSACTIONS: [(&str, ColumnType); 8] = [
    ("transaction", ColumnType::Int8),
    ("bucket", ColumnType::Text),
    ("owner", ColumnType::Text),
    ("state", ColumnType::Text),
    ("age_ms", ColumnType::Int8),
    ("changes", ColumnType::Int8),
    ("bytes", ColumnType::Int8),
    ("epoch", ColumnType::Int8),
];

/// The columns of `SHOW TRANSACTION n`.
const TRANSACTION: [(&str, ColumnType); 5] = [
    ("transaction", ColumnType::Int8),
    ("bucket", ColumnType::Text),
    ("state", ColumnType::Text),
    ("affected", ColumnType::Int8),
    ("write_position", ColumnType::Text),
];

/// Returns columns with these names and types.
fn typed(columns: &[(&str, ColumnType)]) -> Vec<ColumnInfo> {
    let column = |(name, column_type): &(&str, ColumnType)| ColumnInfo {
        name: (*name).to_owned(),
        column_type: *column_type,
    };
    columns.iter().map(column).collect()
}

/// Returns the row of a transaction. Returns no row if the transaction is neither open nor among
/// the last commits of its bucket.
async fn transaction(access: &Access, id: TransactionId) -> Result<Vec<Vec<Datum>>> {
    let catalog = access.catalog();
    let named = |bucket: BucketId| {
        let known = catalog.buckets.get(&bucket);
        Datum::text(known.map_or_else(|| bucket.to_string(), |bucket| bucket.name.clone()))
    };
    let row = |bucket: BucketId, state: &str, rest: [Datum; 2]| {
        let [affected, position] = rest;
        vec![Datum::int(id.0 as i64), named(bucket), Datum::text(state), affected, position]
    };
    // Order matters: a transaction that is not open any more has its commit already.
    let open = access.transactions().await?;
    let open: Vec<_> = open.into_iter().filter(|open| open.transaction == id).collect();
    if !open.is_empty() {
        let open = open.iter();
        return Ok(open
            .map(|open| row(open.bucket, state_of(open), [Datum::NULL, Datum::NULL]))
            .collect());
    }
    let committed = access.committed(id).await?.into_iter();
    Ok(committed
        .map(|WriteReply { affected, position }| {
            let rest = [Datum::int(affected as i64), Datum::text(position.to_string())];
            row(position.bucket, "committed", rest)
        })
        .collect())
}

/// Returns the state of an open transaction as text.
fn state_of(open: &TransactionStatus) -> &'static str {
    if open.is_committing { "committing" } else { "open" }
}

/// Returns the rows of the open transactions that have changes.
async fn transactions(access: &Access) -> Result<Vec<Vec<Datum>>> {
    let catalog = access.catalog();
    let mut open = access.transactions().await?;
    open.sort_by_key(|open| (open.bucket, open.transaction));
    let int = |n: u64| Datum::int(i64::try_from(n).unwrap_or(i64::MAX));
    let row = |open: TransactionStatus| {
        let bucket = catalog.buckets.get(&open.bucket);
        let bucket = bucket.map_or_else(|| open.bucket.to_string(), |bucket| bucket.name.clone());
        let state = state_of(&open);
        vec![
            int(open.transaction.0),
            Datum::text(bucket),
            Datum::text(open.owner),
            Datum::text(state),
            int(open.age_ms),
            int(open.changes),
            int(open.bytes),
            open.snapshot.map_or(Datum::NULL, |epoch| int(epoch.0)),
        ]
    };
    Ok(open.into_iter().map(row).collect())
}

/// Returns the rows of a SHOW. Definitions come from the catalog. If the coordinator does not
/// answer, counts and progress are NULL, and SHOW SLICES and SHOW HOLDS fail.
pub(super) async fn rows(
    what: &Show,
    access: &Access,
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
        Show::Transactions => return transactions(access).await,
        Show::Transaction(id) => return transaction(access, *id).await,
        Show::Users => return Ok(show_users::users(&access.users())),
        Show::Grants(of) => {
            return show_users::grants(&access.users(), &access.catalog(), of.as_deref());
        }
        Show::Buckets => catalog_status(access, None)?,
        Show::Copies => catalog_status(access, Some(FigureKind::Buckets))?,
        Show::Indexes | Show::Versions => cluster_status(access, None).await?,
        Show::Slices | Show::Moves | Show::Rollbacks | Show::Holds => {
            cluster_status(access, Some(FigureKind::Buckets)).await?
        }
        Show::Nodes => cluster_status(access, Some(FigureKind::Cluster)).await?,
    };
    if matches!(what, Show::Slices | Show::Holds) {
        status.coordinator.check()?;
    }
    Ok(show::rows(what, &status))
}
