//! Buckets and indexes in memory, with just enough checks for the statements of the tests.

use std::sync::Arc;

use proto::model::bucket::BucketInfo;
use proto::model::catalog::Catalog;
use proto::model::copies::Copies;
use proto::model::ids::{BucketId, Generation, IndexId, NodeId, TopologyNo};
use proto::model::index::{IndexInfo, IndexSpec, IndexState};
use proto::model::topology::IndexTopology;
use proto::rpc::command::{
    CancelBuild, Command, CreateBucket, CreateIndex, DropBucket, DropIndex, Outcome,
};
use proto::{Error, ErrorCode, Result};

/// Changes the catalog by a command.
pub(super) fn run(catalog: &mut Catalog, command: Command) -> Result<Outcome> {
    catalog.cas += 1;
    match command {
        Command::CreateBucket(CreateBucket {
            name,
            vbuckets,
            source,
            copies,
            if_not_exists,
            ..
        }) => {
            match catalog.bucket(&name) {
                Some(bucket) if if_not_exists => return Ok(Outcome::Bucket(bucket.id)),
                Some(_) => return Err(exists(&name)),
                None => {}
            }
            let id = BucketId(catalog.cas);
            let bucket = BucketInfo::new(id, name, vbuckets, source, NodeId(1));
            if source.is_only_copy() {
                let wanted = copies.unwrap_or(1);
                let copies = Copies { wanted, ..Copies::single(NodeId(1)) };
                catalog.copies.insert(id, copies);
            }
            catalog.buckets.insert(id, Arc::new(bucket));
            Ok(Outcome::Bucket(id))
        }
        Command::CreateIndex(CreateIndex { bucket, spec, defer_build, if_not_exists }) => {
            match catalog.index(&spec.name) {
                Some(index) if if_not_exists => Ok(Outcome::Index(index.id)),
                Some(_) => Err(exists(&spec.name)),
                None => create_index(catalog, bucket, spec, defer_build),
            }
        }
        Command::DropBucket(DropBucket { bucket, restrict: true }) => {
            let has_indexes = catalog.indexes.values().any(|index| index.bucket == bucket);
            match has_indexes {
                true => Err(Error::new(ErrorCode::HasDependents, format!("{bucket} has indexes"))),
                false => Err(Error::internal("the other cases are tested with a cluster")),
            }
        }
        Command::DropIndex(DropIndex { index }) => {
            catalog.indexes.remove(&index).map(|_| Outcome::Done).ok_or_else(|| unknown(index))
        }
        Command::CancelBuild(CancelBuild { index: id }) => {
            let index = catalog.indexes.get(&id).ok_or_else(|| unknown(id))?;
            if index.state != IndexState::Backfill {
                return Err(Error::new(ErrorCode::WrongState, format!("{id} is not built")));
            }
            catalog.indexes.remove(&id);
            Ok(Outcome::Done)
        }
        other => Err(Error::internal(format!("{other:?} is not for a test"))),
    }
}

/// Creates an index. An index with the name `unfinished` remains in its build.
fn create_index(
    catalog: &mut Catalog,
    bucket: BucketId,
    spec: IndexSpec,
    is_deferred: bool,
) -> Result<Outcome> {
    let id = IndexId(catalog.cas);
    let state = match (is_deferred, spec.name.as_str()) {
        (true, _) => IndexState::Pending,
        (false, "unfinished") => IndexState::Backfill,
        (false, _) => IndexState::Maintenance,
    };
    let topology = IndexTopology { number: TopologyNo(1), placement: vec![vec![NodeId(9)]] };
    let index = IndexInfo {
        id,
        bucket,
        spec: Arc::new(spec),
        state,
        generation: Generation(1),
        topology: Arc::new(topology),
        moves: Vec::new(),
        revision: 0,
        defined: 0,
    };
    catalog.indexes.insert(id, Arc::new(index));
    Ok(Outcome::Index(id))
}

/// Returns the error for a name that is taken.
fn exists(name: &str) -> Error {
    Error::new(ErrorCode::Exists, format!("{name} exists"))
}

/// Returns the error for an unknown index.
fn unknown(index: IndexId) -> Error {
    Error::new(ErrorCode::Unknown, format!("there is no index {index}"))
}
