//! A projector in a scripted environment: a scripted coordinator, and a store in memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use proto::expr::{ColumnType, Expr};
use proto::model::bucket::*;
use proto::model::catalog::*;
use proto::model::ids::*;
use proto::model::index::*;
use proto::model::node::*;
use proto::rpc::api::CheckedWrites;
use proto::rpc::api::*;
use proto::value::DOCUMENT_BYTES_MAX;
use proto::value::path::Step;

mod follower;
mod script;
mod world;

pub use follower::*;
pub use script::*;
pub use world::*;

pub const BUCKET: BucketId = BucketId(3);
pub const PUSHED: BucketId = BucketId(4);
pub const PROJECTOR: NodeId = NodeId(1);
/// Two indexers. The first one has the even slices.
pub const INDEXERS: [NodeId; 2] = [NodeId(10), NodeId(11)];
pub const VBUCKETS: u16 = 4;
pub const SLICES: u16 = 4;

pub fn path(name: &str) -> Expr {
    Expr::Path(vec![Step::Field(name.into())])
}

/// Returns an index on `n` whose slices are on both indexers.
pub fn index(id: u64, partition: PartitionBy) -> Arc<IndexInfo> {
    index_on(id, vec![path("n")], partition)
}

/// Returns an index on other keys.
pub fn index_on(id: u64, keys: Vec<Expr>, partition: PartitionBy) -> Arc<IndexInfo> {
    let part = |expr| KeyPart {
        expr,
        name: String::new(),
        column_type: ColumnType::Text,
        descending: false,
        include_missing: false,
    };
    let spec = IndexSpec {
        primary: false,
        keys: keys.into_iter().map(part).collect(),
        partition,
        slices: SLICES,
        ..IndexSpec::new(format!("i{id}"), "b")
    };
    let placement = (0..SLICES).map(|slice| vec![INDEXERS[usize::from(slice % 2)]]).collect();
    Arc::new(IndexInfo::new(IndexId(id), BUCKET, spec, placement))
}

pub fn catalog(cas: u64, indexes: &[Arc<IndexInfo>]) -> Catalog {
    let bucket = |id, name: &str, source| {
        let name = name.to_owned();
        (id, Arc::new(BucketInfo::new(id, name, VBUCKETS, source, PROJECTOR)))
    };
    Catalog {
        cas,
        newest_index: indexes.last().map_or(IndexId(0), |index| index.id),
        buckets: [bucket(BUCKET, "b", SourceKind::Embedded), bucket(PUSHED, "p", SourceKind::Push)]
            .into(),
        indexes: indexes.iter().map(|index| (index.id, Arc::clone(index))).collect(),
        nodes: BTreeMap::new(),
        ..Catalog::default()
    }
}

pub fn projector_info(id: NodeId) -> NodeInfo {
    NodeInfo { id, role: Role::Projector, address: format!("projector {id}"), zone: String::new() }
}

pub fn checked(writes: Vec<Write>) -> CheckedWrites {
    CheckedWrites::new(writes, DOCUMENT_BYTES_MAX).expect("valid writes")
}

pub fn upsert(id: &str, json: &str) -> Write {
    Write { id: id.into(), kind: WriteKind::Upsert(Bytes::copy_from_slice(json.as_bytes())) }
}

pub fn insert(id: &str, json: &str) -> Write {
    Write { id: id.into(), kind: WriteKind::Insert(Bytes::copy_from_slice(json.as_bytes())) }
}

pub fn delete(id: &str) -> Write {
    Write { id: id.into(), kind: WriteKind::Delete }
}
