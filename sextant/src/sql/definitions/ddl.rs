//! The execution of DDL statements as replicated commands, for the SQL and the gRPC port.

use proto::model::bucket::VBUCKETS_DEFAULT;
use proto::model::data_set::{Files, IDLE_MS_DEFAULT, PARTITIONS_DEFAULT};
use proto::model::index::IndexInfo;
use proto::model::users::Privilege;
use proto::rpc::command::{
    self, BuildIndexes, CancelBuild, DropBucket, DropIndex, LoadVersion, Outcome, Proposal,
    SetSliceBytesMax,
};
use proto::{Error, ErrorCode, Result};

use super::alter::{alter_index, rename_index};
use super::building::{look_at_documents, tell_of_build, wait_built, with_build_note};
use super::define::definition;
use super::split_points::derive_split_points;
use crate::access::{AuditedAccess, unknown_name_error};
use crate::sql::ast::{CreateBucket, CreateDataSet, CreateIndex, Partition, Statement};
use crate::sql::named::{Tries, find_bucket, run_on_bucket, run_on_index};
use crate::sql::plan::Relation;
use crate::sql::remarks::Remarks;

/// Executes a DDL statement and returns its command tag; `None` for any other statement. Returns
/// after the command is committed and all indexes that it builds serve scans.
pub async fn run(
    access: &AuditedAccess,
    statement: &Statement,
    remarks: &Remarks,
) -> Result<Option<&'static str>> {
    Ok(Some(match statement {
        Statement::CreateBucket(create) => create_bucket(access, create).await?,
        Statement::CreateDataSet(create) => create_data_set(access, create).await?,
        Statement::LoadVersion { bucket, version, files, allow_empty } => {
            load_version(access, (bucket, version), files, *allow_empty).await?
        }
        Statement::DropBucket { name, if_exists, restrict } => {
            drop_bucket(access, name, *if_exists, *restrict).await?
        }
        Statement::CreateIndex(create) => create_index(access, create, remarks).await?,
        Statement::BuildIndex { bucket, indexes } => {
            build(access, bucket, indexes, remarks).await?
        }
        Statement::DropIndex { name, if_exists } => drop_index(access, name, *if_exists).await?,
        Statement::AlterIndex { name, change } => {
            alter_index(access, name, change, remarks).await?
        }
        Statement::RenameIndex { name, to } => rename_index(access, name, to).await?,
        Statement::CancelBuild(name) => {
            let cancel = |index: &IndexInfo| Ok(CancelBuild { index: index.id }.into());
            run_on_index(access, name, cancel).await?;
            "CANCEL BUILD"
        }
        _ => return Ok(None),
    }))
}

async fn create_bucket(access: &AuditedAccess, create: &CreateBucket) -> Result<&'static str> {
    let command = command::CreateBucket {
        name: create.name.clone(),
        vbuckets: create.vbuckets.unwrap_or(VBUCKETS_DEFAULT),
        source: create.source,
        projectors: create.projectors.unwrap_or(1),
        copies: create.copies,
        if_not_exists: create.if_not_exists,
    };
    access.command(command.into()).await?;
    Ok("CREATE BUCKET")
}

async fn create_data_set(access: &AuditedAccess, create: &CreateDataSet) -> Result<&'static str> {
    let command = command::CreateDataSet {
        name: create.name.clone(),
        partitions: create.partitions.unwrap_or(PARTITIONS_DEFAULT),
        replication: create.replication.unwrap_or(1),
        idle_ms: create.idle_ms.unwrap_or(IDLE_MS_DEFAULT),
        if_not_exists: create.if_not_exists,
    };
    access.command(command.into()).await?;
    Ok("CREATE BUCKET")
}

/// Loads a version of a data set. Returns when the version is current.
async fn load_version(
    access: &AuditedAccess,
    (bucket, version): (&str, &str),
    files: &Files,
    allow_empty: bool,
) -> Result<&'static str> {
    let (version, files) = (version.to_owned(), files.clone());
    let command = |bucket| Ok(LoadVersion { bucket, version, files, allow_empty }.into());
    if let Outcome::Version(data_set, number) = run_on_bucket(access, bucket, command).await? {
        access.wait_version(data_set, number).await?;
    }
    Ok("ALTER BUCKET")
}

/// Drops a bucket. Without RESTRICT, drops its indexes too.
async fn drop_bucket(
    access: &AuditedAccess,
    name: &str,
    if_exists: bool,
    restrict: bool,
) -> Result<&'static str> {
    if access.catalog().index(name).is_some() {
        return Err(wrong_kind(name, "an index", "a bucket", "DROP INDEX"));
    }
    let command = |bucket| Ok(DropBucket { bucket, restrict }.into());
    dropped("DROP BUCKET", if_exists, run_on_bucket(access, name, command).await)
}

async fn drop_index(access: &AuditedAccess, name: &str, if_exists: bool) -> Result<&'static str> {
    if access.catalog().index(name).is_none()
        && let Ok(Relation::Bucket(_)) = access.relation(name).await
    {
        return Err(wrong_kind(name, "a bucket", "an index", "DROP BUCKET"));
    }
    let command = |index: &IndexInfo| Ok(DropIndex { index: index.id }.into());
    dropped("DROP INDEX", if_exists, run_on_index(access, name, command).await)
}

/// Returns the command tag of a DROP statement. With IF EXISTS, a missing object is no error.
fn dropped(tag: &'static str, if_exists: bool, ran: Result<Outcome>) -> Result<&'static str> {
    match ran {
        Err(error) if !(if_exists && error.code == ErrorCode::Unknown) => Err(error),
        _ => Ok(tag),
    }
}

/// Returns the error for a name that belongs to another kind of object.
fn wrong_kind(name: &str, is: &str, is_not: &str, instead: &str) -> Error {
    Error::new(ErrorCode::WrongKind, format!("\"{name}\" is {is}, not {is_not}"))
        .with_hint(format!("use {instead} to remove it"))
}

/// Creates an index. Returns when the index serves scans; returns at once if its build is
/// deferred or the index already existed.
async fn create_index(
    access: &AuditedAccess,
    create: &CreateIndex,
    remarks: &Remarks,
) -> Result<&'static str> {
    let known = access.catalog().index(&create.name).map(|index| index.id);
    // The split points of an existing index are not computed again.
    let samples =
        matches!(&create.partition, Some(Partition::Range { points, .. }) if points.is_empty());
    if samples && create.if_not_exists && known.is_some() {
        tell_of_build(&access.catalog(), &create.name, remarks);
        return Ok("CREATE INDEX");
    }
    let mut create = create.clone();
    derive_split_points(access, &mut create, remarks).await?;
    let create = &create;
    let spec = definition(create)?;
    let command = |bucket| {
        let (spec, defer_build) = (spec.clone(), create.defer_build);
        let if_not_exists = create.if_not_exists;
        Ok(command::CreateIndex { bucket, spec, defer_build, if_not_exists }.into())
    };
    let made = run_on_bucket(access, &spec.bucket, command).await;
    let made = made.map_err(|error| with_build_note(error, &access.catalog(), &create.name))?;
    let Outcome::Index(index) = made else { return Ok("CREATE INDEX") };
    // Another index of that name may have been dropped meanwhile.
    if known == Some(index) {
        tell_of_build(&access.catalog(), &create.name, remarks);
        return Ok("CREATE INDEX");
    }
    if let Some(bytes) = create.slice_bytes_max {
        access.command(SetSliceBytesMax { index, bytes }.into()).await.map_err(|error| {
            let hint =
                format!("ALTER INDEX {} SET (slice_bytes_max = {bytes}) sets it", create.name);
            error.context("the index is created, without slice_bytes_max").with_hint(hint)
        })?;
    }
    look_at_documents(access, &spec, remarks).await;
    if !create.defer_build {
        wait_built(access, index, None, remarks).await?;
    }
    Ok("CREATE INDEX")
}

/// Builds deferred indexes. Returns when they serve scans.
async fn build(
    access: &AuditedAccess,
    bucket: &str,
    names: &[String],
    remarks: &Remarks,
) -> Result<&'static str> {
    if let Outcome::Building(indexes) = begin_builds(access, bucket, names).await? {
        // A build that was cancelled does not end the others.
        let mut done = Ok(());
        for index in indexes {
            done = done.and(wait_built(access, index, None, remarks).await);
        }
        done?;
    }
    Ok("BUILD INDEX")
}

/// Begins the builds of deferred indexes of a bucket.
async fn begin_builds(access: &AuditedAccess, bucket: &str, names: &[String]) -> Result<Outcome> {
    // The privilege is checked before the names: only a user that may build indexes learns which
    // index is missing.
    access.check_privilege(Privilege::Define, find_bucket(access, bucket).await?.id)?;
    let mut tries = Tries::default();
    loop {
        let mut seen = Vec::with_capacity(names.len());
        for name in names {
            let index = tries.find(access, name).await?;
            if index.spec.bucket != bucket {
                return Err(unknown_name_error(name).context(format!("bucket \"{bucket}\"")));
            }
            seen.push(index);
        }
        let indexes = seen.iter().map(|index| index.id).collect();
        let seen_then = seen.iter().map(|index| &**index);
        let proposal = Proposal::from(BuildIndexes { indexes }).expecting_unchanged(seen_then);
        match access.command(proposal).await {
            Err(refused) => tries.count_refusal(access, &seen, refused)?,
            ran => return ran,
        }
    }
}
