//! The execution of statements about the placement of slices, vbuckets and copies of buckets.

use proto::model::catalog::Catalog;
use proto::model::ids::{BucketId, IndexId, NodeId, SliceNo};
use proto::model::index::IndexInfo;
use proto::model::moves::{PlannedMove, RebalancePlan};
use proto::model::node::Role;
use proto::model::topology::TopologyProvider;
use proto::rpc::api::CoordinatorChange;
use proto::rpc::command::{
    CancelHandOver, CancelMoves, CancelVersion, Command, DrainNode, HandOver, MoveBucket, Outcome,
    RemoveNode, SetCopies, SetReplicas, SetSeparateIncludedColumns, SetSliceBytesMax,
    SetVersionIdle, StartMoves,
};
use proto::{Error, ErrorCode, Result};

use super::ast::Admin;
use super::draining::send_staying_remark;
use super::named::{find_index, run_on_bucket, run_on_index};
use super::remarks::Remarks;
use crate::access::{Access, AuditedAccess, unknown_name_error};

/// Executes a statement and returns its command tag. Moves that the statement starts continue in
/// the background; SHOW MOVES shows their progress.
pub async fn run(access: &AuditedAccess, statement: &Admin, remarks: &Remarks) -> Result<String> {
    let tag = match statement {
        Admin::ChangeCoordinators(change) => {
            return change_coordinators(access, change, remarks).await;
        }
        Admin::Rebalance { index } => {
            let start = |index| access.rebalance(index);
            let plan = rebalance(access, index.as_deref(), start).await?;
            return Ok(format!("REBALANCE {}", plan.moves.len()));
        }
        Admin::CancelRebalance { index } => {
            let outcome = match index {
                Some(name) => {
                    let cancel =
                        |index: &IndexInfo| Ok(CancelMoves { index: Some(index.id) }.into());
                    run_on_index(access, name, cancel).await?
                }
                None => access.command(CancelMoves { index: None }.into()).await?,
            };
            let count = if let Outcome::Moves(moves) = outcome { moves.len() } else { 0 };
            return Ok(format!("CANCEL REBALANCE {count}"));
        }
        Admin::CancelTransaction(id) => {
            if access.cancel_transaction(*id).await? {
                return Ok("CANCEL TRANSACTION".to_owned());
            }
            let what = format!("transaction {id} is not open");
            return Err(Error::new(ErrorCode::Unknown, what)
                .with_hint("SHOW TRANSACTIONS lists the open transactions"));
        }
        Admin::DrainNode { node, drain } => {
            let drains = |node| DrainNode { node, drain: *drain }.into();
            let (node, command) = for_node(access, (node, Some(Role::Indexer)), drains)?;
            access.command(command.into()).await?;
            if *drain {
                send_staying_remark(access, node, remarks).await;
            }
            if *drain { "DRAIN NODE" } else { "CANCEL DRAIN NODE" }
        }
        Admin::RemoveNode { node, wait, force } => {
            let removes = |node| RemoveNode { node, force: *force }.into();
            let (node, command) = for_node(access, (node, None), removes)?;
            if *wait {
                access.wait_drained(node).await?;
            }
            access.command(command.into()).await?;
            "REMOVE NODE"
        }
        of_bucket_or_index => alter(access, of_bucket_or_index).await?,
    };
    Ok(tag.to_owned())
}

/// Executes a statement that changes the placement or a setting of a bucket or an index.
async fn alter(access: &AuditedAccess, statement: &Admin) -> Result<&'static str> {
    match statement {
        Admin::MoveSlice { index, slice, from, to } => {
            let nodes = (from.as_deref(), &**to);
            let command = |info: &IndexInfo| move_slice(access, info, *slice, nodes);
            run_on_index(access, index, command).await.map(|_| "ALTER INDEX")
        }
        Admin::MoveVbuckets { bucket, vbuckets, to } => {
            let command = |bucket, to| HandOver { bucket, vbuckets: vbuckets.clone(), to }.into();
            move_to(access, bucket, to, command).await
        }
        Admin::MoveBucket { bucket, to } => {
            move_to(access, bucket, to, |bucket, to| MoveBucket { bucket, to }.into()).await
        }
        Admin::SetCopies { bucket, copies } => {
            run_for_bucket(access, bucket, |bucket| SetCopies { bucket, copies: *copies }.into())
                .await
        }
        Admin::SetVersionIdle { bucket, idle_ms } => {
            let command = |bucket| SetVersionIdle { bucket, idle_ms: *idle_ms }.into();
            run_for_bucket(access, bucket, command).await
        }
        Admin::CancelVersion { bucket, version } => {
            let command = |bucket| CancelVersion { bucket, version: version.clone() }.into();
            run_for_bucket(access, bucket, command).await
        }
        Admin::CancelVbuckets { bucket } => {
            run_for_bucket(access, bucket, |bucket| CancelHandOver { bucket }.into()).await
        }
        Admin::SeparateIncludedColumns { index, separate } => {
            let command = |index| SetSeparateIncludedColumns { index, separate: *separate }.into();
            run_for_index(access, index, command).await
        }
        Admin::SetSliceBytesMax { index, bytes } => {
            run_for_index(access, index, |index| SetSliceBytesMax { index, bytes: *bytes }.into())
                .await
        }
        Admin::SetReplicas { index, replicas } => {
            run_for_index(access, index, |index| SetReplicas { index, replicas: *replicas }.into())
                .await
        }
        _ => Err(Error::internal("the statement is about no bucket or index")),
    }
}

/// Executes a command about the bucket with a name.
async fn run_for_bucket(
    access: &AuditedAccess,
    name: &str,
    command: impl FnOnce(BucketId) -> Command + Send,
) -> Result<&'static str> {
    run_on_bucket(access, name, |bucket| Ok(command(bucket))).await.map(|_| "ALTER BUCKET")
}

/// Executes a command about the index with a name.
async fn run_for_index(
    access: &AuditedAccess,
    name: &str,
    command: impl Fn(IndexId) -> Command + Send + Sync,
) -> Result<&'static str> {
    run_on_index(access, name, |index| Ok(command(index.id))).await.map(|_| "ALTER INDEX")
}

/// Moves a bucket, or some of its vbuckets, to a projector.
async fn move_to(
    access: &AuditedAccess,
    name: &str,
    to: &str,
    command: impl Fn(BucketId, NodeId) -> Command + Send + Sync,
) -> Result<&'static str> {
    let to = (to, Some(Role::Projector));
    let moves = |bucket| Ok(for_node(access, to, |node| command(bucket, node))?.1);
    run_on_bucket(access, name, moves).await.map(|_| "ALTER BUCKET")
}

/// Rebalances one index, or all indexes. `rebalance` plans the moves, or plans and starts them.
pub async fn rebalance<F: Future<Output = Result<RebalancePlan>>>(
    access: &Access,
    name: Option<&str>,
    rebalance: impl FnOnce(Option<IndexId>) -> F,
) -> Result<RebalancePlan> {
    let Some(name) = name else { return rebalance(None).await };
    let planned = rebalance(Some(find_index(access, name).await?.id)).await;
    planned.map_err(|refused| {
        if refused.code == ErrorCode::Changed { unknown_name_error(name) } else { refused }
    })
}

/// The advice for an added coordinator that does not vote yet.
const NOT_VOTING: &str = "start it with its --id, an empty --data and the others in --coordinators; it votes by itself when it has the log, \
                          and SHOW NODES tells; REMOVE COORDINATOR takes it back";

/// Adds or removes a coordinator. If an added coordinator does not vote yet, sends a remark,
/// since this is not an error.
async fn change_coordinators(
    access: &AuditedAccess,
    change: &CoordinatorChange,
    remarks: &Remarks,
) -> Result<String> {
    let changed = access.change_coordinators(change.clone()).await?;
    if let Some(lacks) = changed.lacks {
        remarks.send(lacks, Some(NOT_VOTING));
    }
    Ok(match change {
        CoordinatorChange::Add { .. } => "ADD COORDINATOR".to_owned(),
        CoordinatorChange::Remove { .. } => "REMOVE COORDINATOR".to_owned(),
    })
}

/// Returns the node that a statement names, and the statement's command. Checks the sender's
/// privilege before it looks up the node.
fn for_node(
    access: &Access,
    (name, role): (&str, Option<Role>),
    command: impl Fn(NodeId) -> Command,
) -> Result<(NodeId, Command)> {
    // The privilege that a command needs does not depend on its node.
    access.check_command(&command(NodeId(0)))?;
    let node = find_node(&access.catalog(), name, role)?;
    Ok((node, command(node)))
}

/// Returns the command that moves a copy of a slice.
fn move_slice(
    access: &Access,
    info: &IndexInfo,
    slice: SliceNo,
    (from, to): (Option<&str>, &str),
) -> Result<Command> {
    let catalog = &access.catalog();
    let planned = |from, to| {
        let (index, generation, reason) = (info.id, info.generation, "asked for".into());
        let moves = vec![PlannedMove { index, generation, slice, from, to, reason }];
        Command::StartMoves(StartMoves { moves })
    };
    let of_no_node = planned(None, None);
    access.check_command(&of_no_node)?;
    let copies = info.topology.replicas(slice);
    let Some(first) = copies.first() else {
        let (name, slices) = (&info.spec.name, info.topology.slices());
        let message = format!("index \"{name}\" has slices 0 to {}", slices.saturating_sub(1));
        return Err(Error::new(ErrorCode::InvalidParameter, message));
    };
    let from = match from {
        Some(from) => find_node(catalog, from, Some(Role::Indexer))?,
        None => *first,
    };
    Ok(planned(Some(from), Some(find_node(catalog, to, Some(Role::Indexer))?)))
}

/// Returns the node with a number or an address; an error if there is none.
fn find_node(catalog: &Catalog, name: &str, role: Option<Role>) -> Result<NodeId> {
    let number = name.parse().map(NodeId).ok();
    let found = catalog.nodes.values().find(|node| Some(node.id) == number || node.address == name);
    let hint = "SHOW NODES lists the numbers and addresses of nodes";
    let node = found.ok_or_else(|| {
        Error::new(ErrorCode::Unknown, format!("there is no node \"{name}\"")).with_hint(hint)
    })?;
    match role {
        Some(role) if node.role != role => Err(Error::new(
            ErrorCode::InvalidParameter,
            format!("node {} is a {}, not an {}", node.id, node.role.name(), role.name()),
        )
        .with_hint(hint)),
        _ => Ok(node.id),
    }
}

/// Returns the lines of the result of EXPLAIN REBALANCE.
pub fn explain(catalog: &Catalog, plan: &RebalancePlan) -> Vec<String> {
    if plan.moves.is_empty() {
        return vec!["Nothing to move: the slices are balanced".into()];
    }
    let mut lines = vec![format!("Rebalance: {} moves", plan.moves.len())];
    for mv in &plan.moves {
        let index = catalog.indexes.get(&mv.index);
        let name = index.map_or_else(|| mv.index.to_string(), |index| index.spec.name.clone());
        let way = match (mv.from, mv.to) {
            (Some(from), Some(to)) => format!("from node {from} to node {to}"),
            (None, Some(to)) => format!("one more copy on node {to}"),
            (Some(from), None) => format!("no longer on node {from}"),
            (None, None) => String::new(),
        };
        lines.push(format!("  {name} slice {} {way}: {}", mv.slice, mv.reason));
    }
    lines.push("Nodes, before and after".into());
    for load in &plan.loads {
        let ((copies, then), (bytes, bytes_then)) = (load.copies, load.bytes);
        lines.push(format!(
            "  node {}: {copies} copies, {bytes} bytes; then {then} copies, {bytes_then} bytes",
            load.node
        ));
    }
    lines
}
