//! The tables of `SHOW`. A column has the same name as the field in JSON.

use proto::expr::ColumnType;
use proto::model::ids::{Epoch, NodeId};

use crate::rows::value::Datum;
use crate::sql::ast::Show;
use crate::sql::plan::ColumnInfo;
use crate::status::{
    BucketStatus, ClusterStatus, CopyStatus, HoldStatus, IndexStatus, MoveStatus, NodeStatus,
    ProjectorShare, RollbackStatus, SliceStatus, VersionStatus,
};

use ColumnType::{Int4, Int8, Text};

/// A column of a table: its name, its type, and its value in a row.
type Column<R> = (&'static str, ColumnType, fn(&R) -> Datum);

const BUCKETS: &[Column<BucketStatus>] = &[
    ("name", Text, |bucket| Datum::text(&*bucket.name)),
    ("vbuckets", Int4, |bucket| Datum::int(bucket.vbuckets.into())),
    ("source", Text, |bucket| Datum::text(bucket.source)),
    ("indexes", Int4, |bucket| Datum::int(bucket.indexes as i64)),
    ("projectors", Text, |bucket| Datum::text(projectors(&bucket.projectors))),
    ("moving", Int4, |bucket| Datum::int(bucket.moving as i64)),
    ("copies", Text, |bucket| text(&bucket.copies)),
];

const COPIES: &[Column<CopyStatus>] = &[
    ("bucket", Text, |copy| Datum::text(&*copy.bucket)),
    ("projector", Int8, |copy| id(copy.projector)),
    ("role", Text, |copy| Datum::text(copy.role)),
    ("term", Int8, |copy| Datum::int(copy.term as i64)),
    ("wanted_copies", Int4, |copy| Datum::int(copy.wanted_copies.into())),
    ("moving_to", Int8, |copy| copy.moving_to.map_or(Datum::NULL, id)),
];

const INDEXES: &[Column<IndexStatus>] = &[
    ("name", Text, |index| Datum::text(&*index.name)),
    ("bucket", Text, |index| Datum::text(&*index.bucket)),
    ("state", Text, |index| Datum::text(index.state)),
    ("columns", Text, |index| Datum::text(index.columns.join(", "))),
    ("slices", Int4, |index| Datum::int(index.slices.into())),
    ("replicas", Int4, |index| Datum::int(index.replicas.into())),
    ("built_percent", Int4, |index| int(index.built_percent)),
    ("built_entries", Int8, |index| int(index.built_entries)),
    ("seconds_left", Int8, |index| int(index.seconds_left)),
    ("left_out", Int8, |index| int(index.left_out)),
    ("definition", Text, |index| Datum::text(&*index.definition)),
];

const NODES: &[Column<NodeStatus>] = &[
    ("node", Int8, |node| id(node.node)),
    ("role", Text, |node| Datum::text(node.role)),
    ("address", Text, |node| Datum::text(&*node.address)),
    ("zone", Text, |node| Datum::text(&*node.zone)),
    ("state", Text, |node| Datum::text(&*node.state)),
    ("silent_ms", Int8, |node| int(node.silent_ms)),
    ("note", Text, |node| text(&node.note)),
];

const SLICES: &[Column<SliceStatus>] = &[
    ("index", Text, |copy| Datum::text(&*copy.index)),
    ("slice", Int4, |copy| Datum::int(copy.slice.0.into())),
    ("replica", Int4, |copy| Datum::int(copy.replica as i64)),
    ("node", Int8, |copy| id(copy.node)),
    ("state", Text, |copy| Datum::text(copy.state)),
    ("entries", Int8, |copy| int(copy.entries)),
    ("bytes", Int8, |copy| int(copy.bytes)),
    ("floor_epoch", Int8, |copy| epoch(copy.floor_epoch)),
    ("note", Text, |copy| text(&copy.note)),
];

const MOVES: &[Column<MoveStatus>] = &[
    ("move", Int8, |mv| Datum::int(mv.id.0 as i64)),
    ("index", Text, |mv| Datum::text(&*mv.index)),
    ("slice", Int4, |mv| Datum::int(mv.slice.0.into())),
    ("from", Int8, |mv| mv.from.map_or(Datum::NULL, id)),
    ("to", Int8, |mv| mv.to.map_or(Datum::NULL, id)),
    ("stage", Text, |mv| Datum::text(mv.stage)),
    ("bytes", Int8, |mv| int(mv.bytes)),
    ("percent", Int4, |mv| int(mv.percent)),
    ("seconds_left", Int8, |mv| int(mv.seconds_left)),
    ("note", Text, |mv| text(&mv.note)),
];

const ROLLBACKS: &[Column<RollbackStatus>] = &[
    ("bucket", Text, |rollback| Datum::text(&*rollback.bucket)),
    ("stage", Text, |rollback| Datum::text(rollback.stage)),
    ("back_to_epoch", Int8, |rollback| epoch(rollback.back_to_epoch)),
    ("dead_to_epoch", Int8, |rollback| epoch(rollback.dead_to_epoch)),
    ("resumed_epoch", Int8, |rollback| epoch(rollback.resumed_epoch)),
    ("rebuilding", Text, |rollback| text(&rollback.rebuilding)),
    ("note", Text, |rollback| text(&rollback.note)),
];

const VERSIONS: &[Column<VersionStatus>] = &[
    ("bucket", Text, |version| Datum::text(&*version.bucket)),
    ("number", Int8, |version| Datum::int(version.number as i64)),
    ("version", Text, |version| Datum::text(&*version.version)),
    ("state", Text, |version| Datum::text(version.state)),
    ("documents", Int8, |version| int(version.documents)),
    ("duplicates", Int8, |version| int(version.duplicates)),
    ("bytes", Int8, |version| int(version.bytes)),
    ("partitions", Text, |version| text(&version.partitions)),
    ("files", Text, |version| text(&version.files)),
    ("note", Text, |version| text(&version.note)),
];

const HOLDS: &[Column<HoldStatus>] = &[
    ("bucket", Text, |hold| Datum::text(&*hold.bucket)),
    ("held_ms", Int8, |hold| Datum::int(hold.held_ms as i64)),
    ("transaction", Int8, |hold| Datum::int(hold.transaction.0 as i64)),
    ("waits_for", Text, |hold| Datum::text(&*hold.waits_for)),
    ("projectors", Text, |hold| Datum::text(numbers(&hold.projectors))),
    ("note", Text, |hold| text(&hold.note)),
];

/// Returns the number of a node as a value.
fn id(node: NodeId) -> Datum {
    Datum::int(node.0 as i64)
}

/// Returns a number as a value; NULL for `None`.
fn int(value: Option<u64>) -> Datum {
    value.map_or(Datum::NULL, |value| Datum::int(value as i64))
}

/// Returns an epoch as a value; NULL for `None`.
fn epoch(value: Option<Epoch>) -> Datum {
    int(value.map(|epoch| epoch.0))
}

/// Returns a text as a value; NULL for `None`.
fn text(value: &Option<String>) -> Datum {
    value.as_deref().map_or(Datum::NULL, Datum::text)
}

/// Returns the projectors of a bucket as text. If there are several, the text has the number of
/// vbuckets of each.
fn projectors(shares: &[ProjectorShare]) -> String {
    match shares {
        [one] => one.node.to_string(),
        several => {
            let shares = several.iter().map(|share| format!("{}: {}", share.node, share.vbuckets));
            shares.collect::<Vec<_>>().join(", ")
        }
    }
}

/// Returns the numbers of nodes as text, separated by commas.
fn numbers(nodes: &[NodeId]) -> String {
    nodes.iter().map(NodeId::to_string).collect::<Vec<_>>().join(", ")
}

/// Returns the columns of a table. Returns `None` if the SHOW is not about the status.
pub(crate) fn columns(what: &Show) -> Option<Vec<ColumnInfo>> {
    match what {
        Show::Buckets => Some(named(BUCKETS)),
        Show::Copies => Some(named(COPIES)),
        Show::Indexes => Some(named(INDEXES)),
        Show::Nodes => Some(named(NODES)),
        Show::Slices => Some(named(SLICES)),
        Show::Moves => Some(named(MOVES)),
        Show::Rollbacks => Some(named(ROLLBACKS)),
        Show::Versions => Some(named(VERSIONS)),
        Show::Holds => Some(named(HOLDS)),
        Show::Setting(_)
        | Show::All
        | Show::Transactions
        | Show::Transaction(_)
        | Show::Users
        | Show::Grants(_) => None,
    }
}

/// Returns the names and types of columns.
fn named<R>(columns: &[Column<R>]) -> Vec<ColumnInfo> {
    let info = |(name, column_type, _): &Column<R>| ColumnInfo {
        name: (*name).to_owned(),
        column_type: *column_type,
    };
    columns.iter().map(info).collect()
}

/// Returns the rows of a table. Returns no rows if the SHOW is not about the status.
pub(crate) fn rows(what: &Show, status: &ClusterStatus) -> Vec<Vec<Datum>> {
    match what {
        Show::Buckets => values(BUCKETS, &status.buckets),
        Show::Copies => values(COPIES, &status.copies),
        Show::Indexes => values(INDEXES, &status.indexes),
        Show::Nodes => values(NODES, &status.nodes),
        Show::Slices => values(SLICES, &status.slices),
        Show::Moves => values(MOVES, &status.moves),
        Show::Rollbacks => values(ROLLBACKS, &status.rollbacks),
        Show::Versions => values(VERSIONS, &status.versions),
        Show::Holds => values(HOLDS, &status.holds),
        Show::Setting(_)
        | Show::All
        | Show::Transactions
        | Show::Transaction(_)
        | Show::Users
        | Show::Grants(_) => Vec::new(),
    }
}

/// Returns the values of the columns in each row.
fn values<R>(columns: &[Column<R>], rows: &[R]) -> Vec<Vec<Datum>> {
    rows.iter().map(|row| columns.iter().map(|(_, _, value)| value(row)).collect()).collect()
}
