//! The execution of ALTER INDEX and REINDEX. A new definition is derived from the present one and
//! is built as a new generation of the index, while the present generation serves.
//!
//! If the index was changed after the derivation, the command is refused, and the statement
//! derives the definition again.

use std::sync::Arc;
use std::time::Duration;

use proto::expr::Expr;
use proto::model::ids::LocalIndexId;
use proto::model::index::{GENERATIONS_MAX, IndexInfo, IndexSpec, IndexState, PartitionBy};
use proto::rpc::command::{BuildGeneration, Outcome, Proposal, RenameIndex};
use proto::value::key::decode_part;
use proto::{Error, ErrorCode, Result};
use tokio::time::sleep;

use super::building::{look_at_documents, wait_built};
use super::define::definition;
use super::definition_text;
use super::split_points::derive_split_points;
use crate::access::{Access, AuditedAccess};
use crate::sql::ast::{CreateIndex, IndexChange, IndexOptions, Partition, Statement, TextExpr};
use crate::sql::named::{Tries, run_on_index};
use crate::sql::parse::parse;
use crate::sql::plan::Relation;
use crate::sql::remarks::Remarks;

/// The interval between two checks whether an older generation has been dropped.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Builds a new generation of an index. Returns when the generation serves.
pub async fn alter_index(
    access: &AuditedAccess,
    name: &str,
    change: &IndexChange,
    remarks: &Remarks,
) -> Result<&'static str> {
    let tag = if *change == IndexChange::Nothing { "REINDEX" } else { "ALTER INDEX" };
    let mut tries = Tries::default();
    let (info, spec, begun) = loop {
        wait_for_generation_slot(access, name, remarks).await?;
        let info = tries.find(access, name).await?;
        let mut create = present_declaration(&info.spec)?;
        apply(&mut create, change)?;
        derive_split_points(access, &mut create, remarks).await?;
        let spec = definition_of(create)?;
        let command = BuildGeneration { index: info.id, spec: Box::new(spec.clone()) };
        match access.command(Proposal::from(command).expecting_unchanged([&*info])).await {
            Err(refused) => tries.count_refusal(access, &[info], refused)?,
            Ok(begun) => break (info, spec, begun),
        }
    };
    let Outcome::Generation(id) = begun else { return Ok(tag) };
    if *change != IndexChange::Nothing {
        look_at_documents(access, &spec, remarks).await;
    }
    if info.state != IndexState::Pending {
        wait_built(access, id.index, Some(id.generation), remarks).await?;
    }
    Ok(tag)
}

/// Waits until an index may have another generation. Older generations are dropped when no reader
/// needs them.
async fn wait_for_generation_slot(access: &Access, name: &str, remarks: &Remarks) -> Result<()> {
    let mut is_told = false;
    loop {
        let info = find(access, name).await?;
        let catalog = access.catalog();
        let beside = catalog.generations.range(LocalIndexId::all_of(info.id)).count();
        if beside + 1 < GENERATIONS_MAX || catalog.next_generation(info.id).is_some() {
            return Ok(());
        }
        if !is_told {
            let message = format!(
                "index \"{name}\" has {beside} older generations; this one begins when one of them is gone"
            );
            remarks.send(message, Some("SHOW SLICES shows them; each goes when the scans and transactions that began on it have ended"));
            is_told = true;
        }
        sleep(LOOK_EVERY).await;
    }
}

/// Changes the name of an index. No generation is built for this.
pub async fn rename_index(access: &AuditedAccess, name: &str, to: &str) -> Result<&'static str> {
    find(access, name).await?;
    let command = |index: &IndexInfo| {
        let to = to.to_owned();
        let IndexSpec { sql, .. } =
            definition_of(CreateIndex { name: to.clone(), ..present_declaration(&index.spec)? })?;
        Ok(RenameIndex { index: index.id, to, sql }.into())
    };
    run_on_index(access, name, command).await?;
    Ok("ALTER INDEX")
}

/// Returns the index with a name, even if another process has just created it.
async fn find(access: &Access, name: &str) -> Result<Arc<IndexInfo>> {
    match access.relation(name).await? {
        Relation::Index(index) => Ok(index),
        Relation::Bucket(_) => {
            Err(Error::new(ErrorCode::WrongKind, format!("\"{name}\" is a bucket, not an index"))
                .with_hint("SHOW INDEXES lists the indexes"))
        }
    }
}

/// Returns the present declaration of an index: the statement that has declared it, with the
/// settings that were changed later without a build.
fn present_declaration(spec: &IndexSpec) -> Result<CreateIndex> {
    let unreadable = || {
        let what = format!("index \"{}\": its declaration cannot be read: {}", spec.name, spec.sql);
        Error::new(ErrorCode::WrongState, what).with_hint("create another index, and drop this one")
    };
    let parsed = parse(&spec.sql).map_err(|_| unreadable())?;
    let [only] = &parsed[..] else { return Err(unreadable()) };
    let Statement::CreateIndex(create) = &only.statement else { return Err(unreadable()) };
    let create = CreateIndex {
        name: spec.name.clone(),
        bucket: spec.bucket.clone(),
        if_not_exists: false,
        defer_build: false,
        slices: slices_now(create, spec)?,
        partition: partition_now(create, spec)?,
        replicas: Some(spec.replicas),
        separate_included_columns: spec.separate_included_columns,
        // The setting is not part of the definition.
        slice_bytes_max: None,
        ..create.clone()
    };
    // A text that declares a different index must not replace the present one.
    let read = definition(&create)?;
    let is_same = read == IndexSpec { sql: read.sql.clone(), ..spec.clone() };
    if is_same { Ok(create) } else { Err(unreadable()) }
}

/// Returns the number of slices for the declaration of an index; the number may have grown
/// automatically. `None` means the default.
fn slices_now(create: &CreateIndex, spec: &IndexSpec) -> Result<Option<u16>> {
    let divides = matches!(spec.partition, PartitionBy::Range(_));
    Ok(match definition(create)?.slices == spec.slices {
        true => create.slices,
        // The number of slices follows from the ranges.
        false if divides => None,
        false => Some(spec.slices),
    })
}

/// Returns the partition for the declaration of an index; its ranges may have been split
/// automatically. `None` means the default.
fn partition_now(create: &CreateIndex, spec: &IndexSpec) -> Result<Option<Partition>> {
    let (Some(Partition::Range { expr, .. }), PartitionBy::Range(ranges)) =
        (&create.partition, &spec.partition)
    else {
        return Ok(create.partition.clone());
    };
    if definition(create)?.partition == spec.partition {
        return Ok(create.partition.clone());
    }
    let point = |bound: &Vec<u8>| decode_part(&mut &bound[..], false).map(Expr::Literal);
    let points = ranges.bounds.iter().map(point).collect::<Result<_>>()?;
    Ok(Some(Partition::Range { expr: expr.clone(), points }))
}

/// Returns the statement that declares the present definition of an index.
pub fn declaration(spec: &IndexSpec, slice_bytes_max: Option<u64>) -> String {
    let Ok(create) = present_declaration(spec) else { return spec.sql.clone() };
    let divides = matches!(create.partition, Some(Partition::Range { .. }));
    // The setting has no effect on ranges of another expression than an ascending first key, and could not be declared
    // there.
    let slice_bytes_max = slice_bytes_max.filter(|_| !divides || spec.leading_ranges().is_some());
    let is_changed = match parse(&spec.sql).as_deref() {
        Ok([only]) => match &only.statement {
            Statement::CreateIndex(written) => {
                definition(written)
                    .is_ok_and(|was| IndexSpec { sql: spec.sql.clone(), ..was } != *spec)
                    || written.slice_bytes_max.filter(|bytes| *bytes > 0) != slice_bytes_max
            }
            _ => false,
        },
        _ => false,
    };
    match is_changed {
        true => definition_text::create_index(&CreateIndex { slice_bytes_max, ..create }),
        false => spec.sql.clone(),
    }
}

/// Returns the definition for a declaration, with its text. Returns an error if the text cannot
/// be parsed again, because later changes of the index need that.
fn definition_of(create: CreateIndex) -> Result<IndexSpec> {
    let sql = definition_text::create_index(&create);
    let spec = definition(&CreateIndex { sql, ..create })?;
    present_declaration(&spec)?;
    Ok(spec)
}

/// Changes a declaration as a statement requires.
fn apply(create: &mut CreateIndex, change: &IndexChange) -> Result<()> {
    match change {
        IndexChange::Nothing => {}
        IndexChange::Options(options) => set(create, options),
        IndexChange::Keys(_) if create.primary => {
            let what = format!("index \"{}\" is PRIMARY: it has no keys", create.name);
            return Err(Error::new(ErrorCode::WrongState, what)
                .with_hint("CREATE INDEX declares an index with keys"));
        }
        IndexChange::Keys(keys) => create.keys = keys.clone(),
        IndexChange::AddInclude(columns) => add(create, columns)?,
        IndexChange::DropInclude(columns) => drop_columns(create, columns)?,
        IndexChange::Predicate(predicate) => create.predicate = predicate.clone(),
        IndexChange::Partition(partition) => {
            let had_ranges = matches!(create.partition, Some(Partition::Range { .. }));
            if had_ranges || matches!(partition, Some(Partition::Range { .. })) {
                // The number of slices follows from the ranges.
                create.slices = None;
            }
            create.partition = partition.clone();
        }
    }
    Ok(())
}

/// Sets options in a declaration.
fn set(create: &mut CreateIndex, options: &IndexOptions) {
    create.slices = options.slices.or(create.slices);
    if let (Some(_), Some(Partition::Range { points, .. })) =
        (options.slices, &mut create.partition)
    {
        // As many ranges, which the documents of now decide.
        points.clear();
    }
    create.replicas = options.replicas.or(create.replicas);
    create.included_kb_max = options.included_kb_max.or(create.included_kb_max);
    create.compression = options.compression.unwrap_or(create.compression);
    let separate = options.separate_included_columns;
    create.separate_included_columns = separate.unwrap_or(create.separate_included_columns);
}

/// Adds included columns to a declaration.
fn add(create: &mut CreateIndex, columns: &[TextExpr]) -> Result<()> {
    for column in columns {
        if create.include.iter().any(|known| known.expr == column.expr) {
            let what = format!("index \"{}\" includes {} already", create.name, column.text);
            return Err(Error::new(ErrorCode::Exists, what));
        }
        create.include.push(column.clone());
    }
    Ok(())
}

/// Removes included columns from a declaration.
fn drop_columns(create: &mut CreateIndex, columns: &[TextExpr]) -> Result<()> {
    for column in columns {
        let place = create.include.iter().position(|known| known.expr == column.expr);
        let Some(place) = place else {
            let known: Vec<&str> = create.include.iter().map(|known| &*known.text).collect();
            let there_are = match known.is_empty() {
                true => "it includes no columns".to_owned(),
                false => format!("it includes {}", known.join(", ")),
            };
            let what = format!("index \"{}\" does not include {}", create.name, column.text);
            return Err(Error::new(ErrorCode::Unknown, what).with_hint(there_are));
        };
        create.include.remove(place);
    }
    Ok(())
}

#[cfg(test)]
#[path = "alter_tests.rs"]
mod tests;
