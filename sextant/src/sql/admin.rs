//! Runs statements about the placement of slices, vbuckets and copies of buckets.

use proto::model::catalog::Catalog;
use proto::model::ids::NodeId;
use proto::model::moves::{PlannedMove, RebalancePlan, RebalanceRequest};
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
use super::backend::Backend;
use super::draining::tell_what_stays;
use super::remarks::Remarks;

/// Runs a statement and returns its command tag. The moves that it starts continue in the background; SHOW MOVES shows
/// their progress.
pub async fn run(backend: &dyn Backend, statement: &Admin, remarks: &Remarks) -> Result<String> {
    if let Admin::ChangeCoordinators(change) = statement {
        return change_coordinators(backend, change, remarks).await;
    }
    let (command, tag) = match statement {
        Admin::Rebalance { index } => {
            let request =
                RebalanceRequest { index: index.clone(), of_bucket: None, dry_run: false };
            let plan = backend.rebalance(request).await?;
            return Ok(format!("REBALANCE {}", plan.moves.len()));
        }
        Admin::CancelRebalance { index } => {
            let outcome =
                backend.command(Command::CancelMoves(CancelMoves { index: index.clone() })).await?;
            let count = if let Outcome::Moves(moves) = outcome { moves.len() } else { 0 };
            return Ok(format!("CANCEL REBALANCE {count}"));
        }
        Admin::CancelTransaction(id) => {
            if backend.cancel_transaction(*id).await? {
                return Ok("CANCEL TRANSACTION".to_owned());
            }
            let what = format!("transaction {id} is not open");
            return Err(Error::new(ErrorCode::Unknown, what)
                .with_hint("SHOW TRANSACTIONS lists the open transactions"));
        }
        Admin::DrainNode { node, drain } => {
            let drains = |node| Command::DrainNode(DrainNode { node, drain: *drain });
            let command = for_node(backend, (node, Some(Role::Indexer)), drains).await?;
            (command, if *drain { "DRAIN NODE" } else { "CANCEL DRAIN NODE" })
        }
        Admin::RemoveNode { node, wait, force } => {
            let remove = |node| Command::RemoveNode(RemoveNode { node, force: *force });
            let command = for_node(backend, (node, None), remove).await?;
            if let (true, Command::RemoveNode(RemoveNode { node, .. })) = (*wait, &command) {
                backend.wait_drained(*node).await?;
            }
            (command, "REMOVE NODE")
        }
        Admin::MoveSlice { .. } => (move_slice(backend, statement).await?, "ALTER INDEX"),
        Admin::MoveVbuckets { bucket, vbuckets, to } => {
            let hand_over = |to| {
                let (bucket, vbuckets) = (bucket.clone(), vbuckets.clone());
                Command::HandOver(HandOver { bucket, vbuckets, to })
            };
            (for_node(backend, (to, Some(Role::Projector)), hand_over).await?, "ALTER BUCKET")
        }
        Admin::MoveBucket { bucket, to } => {
            let moves = |to| Command::MoveBucket(MoveBucket { bucket: bucket.clone(), to });
            (for_node(backend, (to, Some(Role::Projector)), moves).await?, "ALTER BUCKET")
        }
        Admin::SetCopies { bucket, copies } => (
            Command::SetCopies(SetCopies { bucket: bucket.clone(), copies: *copies }),
            "ALTER BUCKET",
        ),
        Admin::SetVersionIdle { bucket, idle_ms } => {
            let (bucket, idle_ms) = (bucket.clone(), *idle_ms);
            (Command::SetVersionIdle(SetVersionIdle { bucket, idle_ms }), "ALTER BUCKET")
        }
        Admin::CancelVersion { bucket, version } => {
            let (bucket, version) = (bucket.clone(), version.clone());
            (Command::CancelVersion(CancelVersion { bucket, version }), "ALTER BUCKET")
        }
        Admin::CancelVbuckets { bucket } => {
            (Command::CancelHandOver(CancelHandOver { bucket: bucket.clone() }), "ALTER BUCKET")
        }
        Admin::SeparateIncludedColumns { index, separate } => (
            Command::SetSeparateIncludedColumns(SetSeparateIncludedColumns {
                index: index.clone(),
                separate: *separate,
            }),
            "ALTER INDEX",
        ),
        Admin::SetSliceBytesMax { index, bytes } => (
            Command::SetSliceBytesMax(SetSliceBytesMax { index: index.clone(), bytes: *bytes }),
            "ALTER INDEX",
        ),
        Admin::SetReplicas { index, replicas } => (
            Command::SetReplicas(SetReplicas { index: index.clone(), replicas: *replicas }),
            "ALTER INDEX",
        ),
        Admin::ChangeCoordinators(_) => return Err(Error::internal("it was run before")),
    };
    let drained = match &command {
        Command::DrainNode(DrainNode { node, drain: true }) => Some(*node),
        _ => None,
    };
    backend.command(command).await?;
    if let Some(node) = drained {
        tell_what_stays(backend, node, remarks).await;
    }
    Ok(tag.to_owned())
}

/// The advice on a new coordinator that does not vote yet.
const NOT_VOTING: &str = "start it with its --id, an empty --data and the others in --coordinators; it votes by itself when it has the log, \
                          and SHOW NODES tells; REMOVE COORDINATOR takes it back";

/// Adds or removes a coordinator. If a new one does not vote yet, the client gets a remark: it is a member anyway.
async fn change_coordinators(
    backend: &dyn Backend,
    change: &CoordinatorChange,
    remarks: &Remarks,
) -> Result<String> {
    let changed = backend.change_coordinators(change.clone()).await?;
    if let Some(lacks) = changed.lacks {
        remarks.tell(lacks, Some(NOT_VOTING));
    }
    Ok(match change {
        CoordinatorChange::Add { .. } => "ADD COORDINATOR".to_owned(),
        CoordinatorChange::Remove { .. } => "REMOVE COORDINATOR".to_owned(),
    })
}

/// The command of a statement about a node, which is looked up only for a sender that may send the command.
async fn for_node(
    backend: &dyn Backend,
    (name, role): (&str, Option<Role>),
    command: impl Fn(NodeId) -> Command + Send,
) -> Result<Command> {
    // The privilege that a command needs does not depend on its node.
    let of_no_node = command(NodeId(0));
    backend.may_send(&of_no_node).await?;
    Ok(command(find_node(&backend.catalog(), name, role)?))
}

async fn move_slice(backend: &dyn Backend, statement: &Admin) -> Result<Command> {
    let catalog = &*backend.catalog();
    let Admin::MoveSlice { index, slice, from, to } = statement else {
        return Err(Error::internal("the statement is not a move of a slice"));
    };
    let info = catalog.index(index).ok_or_else(|| {
        Error::new(ErrorCode::Unknown, format!("index \"{index}\" does not exist"))
            .with_hint("SHOW INDEXES lists the indexes")
    })?;
    let planned = |from, to| {
        Command::StartMoves(StartMoves {
            moves: vec![PlannedMove {
                index: info.id,
                generation: info.generation,
                slice: *slice,
                from,
                to,
                reason: "asked for".into(),
            }],
        })
    };
    let of_no_node = planned(None, None);
    backend.may_send(&of_no_node).await?;
    let copies = info.topology.replicas(*slice);
    let Some(first) = copies.first() else {
        let slices = info.topology.slices();
        let message = format!("index \"{index}\" has slices 0 to {}", slices.saturating_sub(1));
        return Err(Error::new(ErrorCode::InvalidParameter, message));
    };
    let from = match from {
        Some(from) => find_node(catalog, from, Some(Role::Indexer))?,
        None => *first,
    };
    Ok(planned(Some(from), Some(find_node(catalog, to, Some(Role::Indexer))?)))
}

/// Finds a node by its number or its address.
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

/// The lines of EXPLAIN REBALANCE.
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
