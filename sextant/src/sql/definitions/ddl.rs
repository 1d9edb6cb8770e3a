//! Runs DDL statements as replicated commands, for the SQL and the gRPC port.

use proto::model::bucket::VBUCKETS_DEFAULT;
use proto::model::data_set::{Files, IDLE_MS_DEFAULT, PARTITIONS_DEFAULT};
use proto::model::index::IndexInfo;
use proto::rpc::command::{
    self, BuildIndexes, CancelBuild, DropBucket, DropIndex, LoadVersion, Outcome, Proposal,
    SetSliceBytesMax,
};
use proto::{Error, ErrorCode, Result};

use super::alter::{alter_index, rename_index};
use super::building::{look_at_documents, tell_of_build, wait_built, with_build};
use super::define::definition;
use super::split_points::take_split_points;
use crate::sql::ast::{CreateBucket, CreateDataSet, CreateIndex, Partition, Statement};
use crate::sql::backend::{Backend, absent};
use crate::sql::named::{Tries, find_bucket, run_on_bucket, run_on_index};
use crate::sql::plan::Relation;
use crate::sql::remarks::Remarks;

/// Runs a DDL statement and returns its command tag; `None` for any other statement. It returns after the command is
/// committed and the indexes that it builds serve scans.
pub async fn run(
    backend: &dyn Backend,
    statement: &Statement,
    remarks: &Remarks,
) -> Result<Option<&'static str>> {
    Ok(Some(match statement {
        Statement::CreateBucket(create) => create_bucket(backend, create).await?,
        Statement::CreateDataSet(create) => create_data_set(backend, create).await?,
        Statement::LoadVersion { bucket, version, files, allow_empty } => {
            load_version(backend, (bucket, version), files, *allow_empty).await?
        }
        Statement::DropBucket { name, if_exists, restrict } => {
            drop_bucket(backend, name, *if_exists, *restrict).await?
        }
        Statement::CreateIndex(create) => create_index(backend, create, remarks).await?,
        Statement::BuildIndex { bucket, indexes } => {
            build(backend, bucket, indexes, remarks).await?
        }
        Statement::DropIndex { name, if_exists } => drop_index(backend, name, *if_exists).await?,
        Statement::AlterIndex { name, change } => {
            alter_index(backend, name, change, remarks).await?
        }
        Statement::RenameIndex { name, to } => rename_index(backend, name, to).await?,
        Statement::CancelBuild(name) => {
            let cancel = |index: &IndexInfo| Ok(CancelBuild { index: index.id }.into());
            run_on_index(backend, name, cancel).await?;
            "CANCEL BUILD"
        }
        _ => return Ok(None),
    }))
}

async fn create_bucket(backend: &dyn Backend, create: &CreateBucket) -> Result<&'static str> {
    let command = command::CreateBucket {
        name: create.name.clone(),
        vbuckets: create.vbuckets.unwrap_or(VBUCKETS_DEFAULT),
        source: create.source,
        projectors: create.projectors.unwrap_or(1),
        copies: create.copies,
        if_not_exists: create.if_not_exists,
    };
    backend.command(command.into()).await?;
    Ok("CREATE BUCKET")
}

async fn create_data_set(backend: &dyn Backend, create: &CreateDataSet) -> Result<&'static str> {
    let command = command::CreateDataSet {
        name: create.name.clone(),
        partitions: create.partitions.unwrap_or(PARTITIONS_DEFAULT),
        replication: create.replication.unwrap_or(1),
        idle_ms: create.idle_ms.unwrap_or(IDLE_MS_DEFAULT),
        if_not_exists: create.if_not_exists,
    };
    backend.command(command.into()).await?;
    Ok("CREATE BUCKET")
}

/// Loads a version, and returns when it is current.
async fn load_version(
    backend: &dyn Backend,
    (bucket, version): (&str, &str),
    files: &Files,
    allow_empty: bool,
) -> Result<&'static str> {
    let (version, files) = (version.to_owned(), files.clone());
    let command = |bucket| Ok(LoadVersion { bucket, version, files, allow_empty }.into());
    if let Outcome::Version(data_set, number) = run_on_bucket(backend, bucket, command).await? {
        backend.wait_version(data_set, number).await?;
    }
    Ok("ALTER BUCKET")
}

/// Without CASCADE and RESTRICT the indexes are dropped with their bucket, since they are useless without it.
async fn drop_bucket(
    backend: &dyn Backend,
    name: &str,
    if_exists: bool,
    restrict: bool,
) -> Result<&'static str> {
    if backend.catalog().index(name).is_some() {
        return Err(wrong_kind(name, "an index", "a bucket", "DROP INDEX"));
    }
    let command = |bucket| Ok(DropBucket { bucket, restrict }.into());
    dropped("DROP BUCKET", if_exists, run_on_bucket(backend, name, command).await)
}

async fn drop_index(backend: &dyn Backend, name: &str, if_exists: bool) -> Result<&'static str> {
    if backend.catalog().index(name).is_none()
        && let Ok(Relation::Bucket(_)) = backend.relation(name).await
    {
        return Err(wrong_kind(name, "a bucket", "an index", "DROP BUCKET"));
    }
    let command = |index: &IndexInfo| Ok(DropIndex { index: index.id }.into());
    dropped("DROP INDEX", if_exists, run_on_index(backend, name, command).await)
}

/// The tag of a removal. With IF EXISTS the object may have been absent.
fn dropped(tag: &'static str, if_exists: bool, ran: Result<Outcome>) -> Result<&'static str> {
    match ran {
        Err(error) if !(if_exists && error.code == ErrorCode::Unknown) => Err(error),
        _ => Ok(tag),
    }
}

fn wrong_kind(name: &str, is: &str, is_not: &str, instead: &str) -> Error {
    Error::new(ErrorCode::WrongKind, format!("\"{name}\" is {is}, not {is_not}"))
        .with_hint(format!("use {instead} to remove it"))
}

/// Returns after the index serves scans, unless its build is deferred or the index existed before.
async fn create_index(
    backend: &dyn Backend,
    create: &CreateIndex,
    remarks: &Remarks,
) -> Result<&'static str> {
    let known = backend.catalog().index(&create.name).map(|index| index.id);
    // The split points of an existing index are not computed again.
    let samples =
        matches!(&create.partition, Some(Partition::Range { points, .. }) if points.is_empty());
    if samples && create.if_not_exists && known.is_some() {
        tell_of_build(&backend.catalog(), &create.name, remarks);
        return Ok("CREATE INDEX");
    }
    let mut create = create.clone();
    take_split_points(backend, &mut create, remarks).await?;
    let create = &create;
    let spec = definition(create)?;
    let command = |bucket| {
        let (spec, defer_build) = (spec.clone(), create.defer_build);
        let if_not_exists = create.if_not_exists;
        Ok(command::CreateIndex { bucket, spec, defer_build, if_not_exists }.into())
    };
    let made = run_on_bucket(backend, &spec.bucket, command).await;
    let made = made.map_err(|error| with_build(error, &backend.catalog(), &create.name))?;
    let Outcome::Index(index) = made else { return Ok("CREATE INDEX") };
    // Another index of that name may have been dropped meanwhile.
    if known == Some(index) {
        tell_of_build(&backend.catalog(), &create.name, remarks);
        return Ok("CREATE INDEX");
    }
    if let Some(bytes) = create.slice_bytes_max {
        backend.command(SetSliceBytesMax { index, bytes }.into()).await.map_err(|error| {
            let hint =
                format!("ALTER INDEX {} SET (slice_bytes_max = {bytes}) sets it", create.name);
            error.context("the index is created, without slice_bytes_max").with_hint(hint)
        })?;
    }
    look_at_documents(backend, &spec, remarks).await;
    if !create.defer_build {
        wait_built(backend, index, None, remarks).await?;
    }
    Ok("CREATE INDEX")
}

async fn build(
    backend: &dyn Backend,
    bucket: &str,
    names: &[String],
    remarks: &Remarks,
) -> Result<&'static str> {
    if let Outcome::Building(indexes) = begin_builds(backend, bucket, names).await? {
        // A build that was cancelled does not end the others.
        let mut done = Ok(());
        for index in indexes {
            done = done.and(wait_built(backend, index, None, remarks).await);
        }
        done?;
    }
    Ok("BUILD INDEX")
}

/// Begins the builds of indexes of a bucket.
async fn begin_builds(backend: &dyn Backend, bucket: &str, names: &[String]) -> Result<Outcome> {
    find_bucket(backend, bucket).await?;
    let mut tries = Tries::default();
    loop {
        let mut seen = Vec::with_capacity(names.len());
        for name in names {
            let index = tries.find(backend, name).await?;
            if index.spec.bucket != bucket {
                return Err(absent(name).context(format!("bucket \"{bucket}\"")));
            }
            seen.push(index);
        }
        let indexes = seen.iter().map(|index| index.id).collect();
        let seen_then = seen.iter().map(|index| &**index);
        let proposal = Proposal::from(BuildIndexes { indexes }).made_from(seen_then);
        match backend.command(proposal).await {
            Err(refused) => tries.note(backend, &seen, refused)?,
            ran => return ran,
        }
    }
}
