//! The tables of SHOW, from the catalog and the coordinator's status.

use proto::expr::ColumnType;
use proto::model::assignment::VbucketAssignment;
use proto::model::bucket::SourceKind;
use proto::model::catalog::Catalog;
use proto::model::ids::{NodeId, SliceId, SliceNo};
use proto::rpc::api::{CoordinatorStatus, NodeStatus, SliceProgress};

use super::columns::named;
use super::{moves, rollbacks};
use crate::rows::value::Datum;
use crate::rows::words::index_state;
use crate::sql::ast::Show;
use crate::sql::plan::ColumnInfo;

use ColumnType::{Int4, Int8, Text};

/// The column of EXPLAIN, with PostgreSQL's name.
pub(in crate::pg) fn explain_columns() -> Vec<ColumnInfo> {
    named(&[("QUERY PLAN", Text)])
}

/// The columns of a SHOW.
pub(in crate::pg) fn columns(what: &Show) -> Vec<ColumnInfo> {
    match what {
        Show::Buckets => named(&[
            ("name", Text),
            ("vbuckets", Int4),
            ("source", Text),
            ("indexes", Int4),
            ("projectors", Text),
            ("moving", Int4),
        ]),
        Show::Indexes => named(&[
            ("name", Text),
            ("bucket", Text),
            ("state", Text),
            ("columns", Text),
            ("slices", Int4),
            ("replicas", Int4),
            ("definition", Text),
        ]),
        Show::Nodes => named(&[
            ("node", Int8),
            ("role", Text),
            ("address", Text),
            ("zone", Text),
            ("silent_ms", Int8),
        ]),
        Show::Slices => named(&[
            ("index", Text),
            ("slice", Int4),
            ("replica", Int4),
            ("node", Int8),
            ("state", Text),
            ("entries", Int8),
            ("bytes", Int8),
            ("floor_epoch", Int8),
            ("note", Text),
        ]),
        Show::Moves => moves::columns(),
        Show::Rollbacks => rollbacks::columns(),
        Show::Setting(name) => named(&[(name, Text)]),
        Show::All => named(&[("name", Text), ("setting", Text)]),
    }
}

/// SHOW BUCKETS.
pub(in crate::pg) fn buckets(catalog: &Catalog) -> Vec<Vec<Datum>> {
    let row = |bucket: &proto::model::bucket::BucketInfo| {
        let indexes = catalog.indexes.values().filter(|index| index.bucket == bucket.id).count();
        vec![
            Datum::text(&*bucket.name),
            Datum::int(bucket.vbuckets.into()),
            Datum::text(match bucket.source {
                SourceKind::Embedded => "embedded",
                SourceKind::Push => "push",
            }),
            Datum::int(indexes as i64),
            Datum::text(projectors(&bucket.assignment)),
            Datum::int(bucket.assignment.transfers().len() as i64),
        ]
    };
    catalog.buckets.values().map(|bucket| row(bucket)).collect()
}

/// The projectors of a bucket; if there are several, with their numbers of vbuckets.
fn projectors(assignment: &VbucketAssignment) -> String {
    match &assignment.projectors()[..] {
        [one] => one.to_string(),
        several => {
            let kept =
                several.iter().map(|node| format!("{node}: {}", assignment.owned_by(*node).len()));
            kept.collect::<Vec<_>>().join(", ")
        }
    }
}

/// SHOW INDEXES.
pub(in crate::pg) fn indexes(catalog: &Catalog) -> Vec<Vec<Datum>> {
    let row = |index: &proto::model::index::IndexInfo| {
        let spec = &index.spec;
        let keys = spec.keys.iter().map(|part| part.name.as_str());
        let include = spec.include.iter().map(|column| column.name.as_str());
        let columns: Vec<&str> = ["id"].into_iter().chain(keys).chain(include).collect();
        vec![
            Datum::text(&*spec.name),
            Datum::text(&*spec.bucket),
            Datum::text(index_state(index.state)),
            Datum::text(columns.join(", ")),
            Datum::int(spec.slices.into()),
            Datum::int(spec.replicas.into()),
            Datum::text(&*spec.sql),
        ]
    };
    catalog.indexes.values().map(|index| row(index)).collect()
}

/// SHOW NODES. Without the coordinator's status the last column is NULL.
pub(in crate::pg) fn nodes(
    catalog: &Catalog,
    status: Option<&CoordinatorStatus>,
) -> Vec<Vec<Datum>> {
    let heard = |id: NodeId| {
        let known = status?.nodes.iter().find(|node| node.node == id)?;
        Some(known.silent_ms as i64)
    };
    let row = |node: &proto::model::node::NodeInfo| {
        vec![
            Datum::int(node.id.0 as i64),
            Datum::text(node.role.name()),
            Datum::text(&*node.address),
            Datum::text(&*node.zone),
            heard(node.id).map_or(Datum::NULL, Datum::int),
        ]
    };
    catalog.nodes.values().map(|node| row(node)).collect()
}

/// SHOW SLICES: each copy in the topology, with its node's report.
pub(in crate::pg) fn slices(catalog: &Catalog, status: &CoordinatorStatus) -> Vec<Vec<Datum>> {
    let mut rows = Vec::new();
    for index in catalog.indexes.values() {
        for (number, nodes) in index.topology.placement.iter().enumerate() {
            let slice = SliceId {
                index: index.id,
                generation: index.generation,
                slice: SliceNo(number as u16),
            };
            for (replica, node) in nodes.iter().enumerate() {
                let progress = progress(&status.nodes, *node, slice);
                rows.push(slice_row(&index.spec.name, number, replica, *node, progress));
            }
        }
    }
    rows
}

fn progress(nodes: &[NodeStatus], node: NodeId, slice: SliceId) -> Option<&SliceProgress> {
    let status = nodes.iter().find(|status| status.node == node)?;
    status.slices.iter().find(|progress| progress.slice == slice)
}

fn slice_row(
    index: &str,
    number: usize,
    replica: usize,
    node: NodeId,
    progress: Option<&SliceProgress>,
) -> Vec<Datum> {
    let state = match progress {
        None => "unknown",
        Some(SliceProgress { floor: None, copied_from: Some(_), .. }) => "copying",
        Some(SliceProgress { trouble: Some(_), .. }) => "troubled",
        Some(SliceProgress { floor: None, .. }) => "building",

        Some(_) => "ready",
    };
    let note = progress.and_then(|p| match (&p.trouble, p.floor, p.copied_from) {
        (Some(trouble), None, Some(node)) => Some(format!("from node {node}: {trouble}")),
        (Some(trouble), ..) => Some(trouble.clone()),
        (None, None, Some(node)) => Some(format!("from node {node}")),
        (None, None, None) => Some("from the source".to_owned()),
        (None, Some(_), _) => None,
    });
    let int = |value: Option<u64>| value.map_or(Datum::NULL, |value| Datum::int(value as i64));
    vec![
        Datum::text(index),
        Datum::int(number as i64),
        Datum::int(replica as i64),
        Datum::int(node.0 as i64),
        Datum::text(state),
        int(progress.map(|p| p.entries)),
        int(progress.map(|p| p.bytes)),
        int(progress.and_then(|p| p.floor).map(|floor| floor.0)),
        note.map_or(Datum::NULL, Datum::text),
    ]
}

/// SHOW ALL.
pub(in crate::pg) fn settings(all: Vec<(String, String)>) -> Vec<Vec<Datum>> {
    all.into_iter().map(|(name, value)| vec![Datum::text(name), Datum::text(value)]).collect()
}
