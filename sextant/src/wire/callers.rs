//! What a caller may do, by its certificate.
//!
//! Under certificates each connection has a holder: a node or an operator of this cluster, as the handshake has checked. The table of
//! methods names the holders that may call a method. A request may name a node too, as its sender. That has to be the holder
//! itself; only coordinators pass on requests of others.

use std::fmt;
use std::sync::Arc;

use coordinator::sender_of_message;
use proto::model::ids::NodeId;
use proto::model::node::Role;
use proto::rpc::command::Command;
use tonic::{Extensions, Status};

use super::methods::{Bytes, CommandRequest, Heartbeat, SyncReport};
use crate::limited::PeerInfo;
use crate::tls::Identity;

/// The reason to trust the callers of a port for other processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerTrust {
    /// Each caller has shown a certificate of a node or an operator.
    Certificates,
    /// Nobody is checked: the simulation, and `--insecure` on loopback addresses.
    Insecure,
}

/// The caller of a request.
#[derive(Clone)]
pub(super) enum Caller {
    /// Anybody, because nobody is checked.
    Unchecked,
    /// The holder of a certificate.
    Holder(Arc<Identity>),
}

impl Caller {
    /// The caller on a connection. A connection without a holder is refused before anything of its requests is decoded.
    pub fn on_connection(trust: PeerTrust, connection: &Extensions) -> Result<Self, Status> {
        if trust == PeerTrust::Insecure {
            return Ok(Self::Unchecked);
        }
        let holder = connection.get::<PeerInfo>().and_then(|peer| peer.holder.clone());
        holder.map(Self::Holder).ok_or_else(|| {
            Status::unauthenticated("this port needs the certificate of a node or an operator")
        })
    }

    /// Checks that the caller may call a method.
    pub fn may_call(&self, method: &str, holders: &[&str]) -> Result<(), Status> {
        let Self::Holder(holder) = self else { return Ok(()) };
        let kind = match &**holder {
            Identity::Node { role, .. } => role.name(),
            Identity::Operator { .. } => "operator",
            Identity::User { .. } => "user",
        };
        match holders.contains(&kind) {
            true => Ok(()),
            false => Err(refused(holder, &format!("may not call {method}"))),
        }
    }

    /// Checks that the caller is the node that a request names, or a coordinator, which passes on requests of others.
    fn is_node(&self, node: NodeId, role: Option<Role>, doing: &str) -> Result<(), Status> {
        let Self::Holder(holder) = self else { return Ok(()) };
        match &**holder {
            Identity::Node { role: Role::Coordinator, .. } => Ok(()),
            Identity::Node { role: own, node: number, .. }
                if *number == node && role.is_none_or(|role| role == *own) =>
            {
                Ok(())
            }
            _ => {
                let role = role.map_or("node", Role::name);
                Err(refused(holder, &format!("{doing} for {role} {node}")))
            }
        }
    }
}

fn refused(holder: &Identity, what: impl fmt::Display) -> Status {
    let text = format!("refused: {holder} {what}");
    tracing::warn!("a call was {text}");
    Status::permission_denied(text)
}

/// `heartbeat` of the node that sends it.
pub(super) fn of_heartbeat(
    caller: &Caller,
    (heartbeat,): (Heartbeat,),
) -> Result<(Heartbeat,), Status> {
    caller.is_node(heartbeat.node, None, "sends a heartbeat")?;
    Ok((heartbeat,))
}

/// `sync` of the projector that sends it.
pub(super) fn of_sync(caller: &Caller, (report,): (SyncReport,)) -> Result<(SyncReport,), Status> {
    caller.is_node(report.projector, Some(Role::Projector), "reports positions")?;
    Ok((report,))
}

/// `raft` of the coordinator that sends it. A coordinator passes on no messages of others.
pub(super) fn of_raft(
    caller: &Caller,
    (messages,): (Vec<Bytes>,),
) -> Result<(Vec<Bytes>,), Status> {
    if let Caller::Holder(holder) = caller {
        for message in &messages {
            // One that cannot be read is refused where it is delivered.
            let Ok(from) = sender_of_message(message) else { continue };
            let is_own = matches!(&**holder, Identity::Node { node, .. } if *node == from);
            if !is_own {
                return Err(refused(holder, format!("sends a message of coordinator {from}")));
            }
        }
    }
    Ok((messages,))
}

/// `propose`: nodes propose what concerns themselves; definitions come from routers and operators. A cluster that begins is
/// the one of the certificates.
pub(super) fn of_proposal(
    caller: &Caller,
    (mut request,): (CommandRequest,),
) -> Result<(CommandRequest,), Status> {
    let Caller::Holder(holder) = caller else { return Ok((request,)) };
    match &mut request.command {
        Command::Join(join) => {
            caller.is_node(join.node.id, Some(join.node.role), "joins")?;
            join.fresh = holder.cluster();
        }
        Command::RegisterNode(node) => caller.is_node(node.id, Some(node.role), "registers")?,
        Command::OpenSource { projector: node, .. }
        | Command::PartitionsLoaded { node, .. }
        | Command::PartitionsLost { node, .. }
        | Command::VersionFailed { node, .. } => {
            caller.is_node(*node, Some(Role::Projector), "reports")?;
        }
        Command::HandedOver { .. } | Command::ChangeCopies { .. } => {
            caller.may_call("propose for copies", &["projector", "coordinator"])?;
        }
        Command::SkipEpochs(_) => caller.may_call("propose SkipEpochs", &["coordinator"])?,
        _ => {
            caller.may_call("propose a definition", &["router", "operator", "coordinator"])?;
        }
    }
    Ok((request,))
}
