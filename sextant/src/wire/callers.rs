//! Checks the rights of a caller at the port for other processes, by its certificate.
//!
//! With certificates, each connection has a holder, which the handshake has verified: a node or
//! an operator of this cluster. The table of methods contains the kinds of holders that may call
//! each method. If a request names a node as its sender, that node must be the holder.
//! Coordinators are an exception, since they forward requests of others.

use std::fmt;
use std::sync::Arc;

use coordinator::sender_of_message;
use proto::model::ids::NodeId;
use proto::model::node::Role;
use proto::rpc::command::{Command, Join, RequiredRights, SendingProcess};
use tonic::{Extensions, Status};

use super::methods::{Bytes, Heartbeat, Proposal, SyncReport, WatchKind};
use crate::limited::PeerInfo;
use crate::tls::Identity;

/// The reason why the callers of a port for other processes are trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerTrust {
    /// Each caller has authenticated itself with the certificate of a node or an operator.
    Certificates,
    /// Callers are not authenticated: the simulation, and `--insecure` on loopback addresses.
    Insecure,
}

/// The caller of a request at the port for other processes.
#[derive(Clone)]
pub(super) enum Caller {
    /// An unknown caller, because callers are not authenticated.
    Unchecked,
    /// The holder of the certificate with which the caller has authenticated itself.
    Holder(Arc<Identity>),
}

impl Caller {
    /// Returns the caller on a connection. If certificates are required and the connection has no
    /// holder, returns an error before any of its requests is decoded.
    pub fn on_connection(trust: PeerTrust, connection: &Extensions) -> Result<Self, Status> {
        if trust == PeerTrust::Insecure {
            return Ok(Self::Unchecked);
        }
        let holder = connection.get::<PeerInfo>().and_then(|peer| peer.holder.clone());
        holder.map(Self::Holder).ok_or_else(|| {
            Status::unauthenticated("this port needs the certificate of a node or an operator")
        })
    }

    /// Returns an error unless the caller may call a method.
    pub fn may_call(&self, method: &str, holders: &[&str]) -> Result<(), Status> {
        self.check_kind(holders, || format!("may not call {method}"))
    }

    /// Returns an error unless the caller may propose a command.
    fn may_propose(&self, command: &str, holders: &[&str]) -> Result<(), Status> {
        self.check_kind(holders, || format!("may not propose {command}"))
    }

    /// Returns an error unless the caller's kind is in `holders`.
    fn check_kind(&self, holders: &[&str], refusal: impl FnOnce() -> String) -> Result<(), Status> {
        let Self::Holder(holder) = self else { return Ok(()) };
        let kind = match &**holder {
            Identity::Node { role, .. } => role.name(),
            Identity::Operator { .. } => "operator",
            Identity::User { .. } => "user",
        };
        match holders.contains(&kind) {
            true => Ok(()),
            false => Err(refused(holder, refusal())),
        }
    }

    /// Returns an error unless the caller is the node that a request names. A coordinator is
    /// always allowed, because it forwards requests of others.
    fn check_node(&self, node: NodeId, role: Option<Role>, doing: &str) -> Result<(), Status> {
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
                Err(refused(holder, format!("{doing} for {role} {node}")))
            }
        }
    }
}

/// Logs and returns the refusal of a caller.
fn refused(holder: &Identity, what: impl fmt::Display) -> Status {
    let text = format!("refused: {holder} {what}");
    tracing::warn!("a call was {text}");
    Status::permission_denied(text)
}

/// Checks that a heartbeat is sent by the node that it describes.
pub(super) fn check_heartbeat(
    caller: &Caller,
    (heartbeat,): (Heartbeat,),
) -> Result<(Heartbeat,), Status> {
    caller.check_node(heartbeat.node, Some(heartbeat.report.role()), "sends a heartbeat")?;
    Ok((heartbeat,))
}

/// Checks that a call of `sync` is sent by the projector that the call names.
pub(super) fn check_sync(
    caller: &Caller,
    (report,): (SyncReport,),
) -> Result<(SyncReport,), Status> {
    caller.check_node(report.projector, Some(Role::Projector), "reports positions")?;
    Ok((report,))
}

/// Checks that Raft messages are sent by the coordinator that they name. Coordinators do not
/// forward Raft messages of others.
pub(super) fn check_raft(
    caller: &Caller,
    (messages,): (Vec<Bytes>,),
) -> Result<(Vec<Bytes>,), Status> {
    if let Caller::Holder(holder) = caller {
        for message in &messages {
            // An unreadable message is refused where it is delivered.
            let Ok(from) = sender_of_message(message) else { continue };
            let is_own = matches!(&**holder, Identity::Node { node, .. } if *node == from);
            if !is_own {
                return Err(refused(holder, format!("sends a message of coordinator {from}")));
            }
        }
    }
    Ok((messages,))
}

/// Checks a call of `watch`. Only processes that authenticate users may receive the users, since
/// they include the hashes of their secrets.
pub(super) fn check_watch(
    caller: &Caller,
    (wanted,): (WatchKind,),
) -> Result<(WatchKind,), Status> {
    if wanted == WatchKind::Users {
        caller.may_call("watch the users", &["router", "coordinator"])?;
    }
    Ok((wanted,))
}

/// Checks a proposal of a command. Nodes may propose commands about themselves; only routers and
/// operators may propose definitions. A new cluster must have the id that is in the certificates.
pub(super) fn check_proposal(
    caller: &Caller,
    (mut proposal,): (Proposal,),
) -> Result<(Proposal,), Status> {
    let Caller::Holder(holder) = caller else { return Ok((proposal,)) };
    match proposal.command.need() {
        RequiredRights::Process(SendingProcess::Node(node, role)) => {
            caller.check_node(node, role, "reports")?
        }
        RequiredRights::Process(SendingProcess::Projector) => {
            caller.may_propose("a change of copies", &["projector", "coordinator"])?;
        }
        RequiredRights::Process(SendingProcess::Coordinator) => {
            caller.may_propose("--skip-epochs", &["coordinator"])?;
        }
        RequiredRights::Process(SendingProcess::Leader) => {
            caller.may_propose("a command of the leader", &["coordinator"])?;
        }
        _ => {
            caller.may_propose("a definition", &["router", "operator", "coordinator"])?;
            // Routers keep an audit of the users' requests.
            if let Identity::Operator { .. } = &**holder {
                tracing::info!(command = ?proposal.command, "an operator has sent a command");
            }
        }
    }
    if let Command::Join(Join { request }) = &mut proposal.command {
        request.fresh = holder.cluster();
    }
    Ok((proposal,))
}

#[cfg(test)]
mod tests {
    use proto::model::identity::{ClusterId, JoinRequest, NodeProof};
    use proto::model::ids::BucketId;
    use proto::model::node::NodeInfo;
    use proto::rpc::api::IndexerReport;
    use proto::rpc::command::{DropVersion, Join, PartitionsLost, RegisterNode, RemoveNode};

    use super::*;

    const CLUSTER: ClusterId = ClusterId(7);

    fn node(role: Role, node: u64) -> Caller {
        Caller::Holder(Arc::new(Identity::Node { cluster: CLUSTER, role, node: NodeId(node) }))
    }

    fn operator() -> Caller {
        Caller::Holder(Arc::new(Identity::Operator { cluster: CLUSTER }))
    }

    fn proposed(caller: &Caller, command: Command) -> Result<Command, String> {
        match check_proposal(caller, (command.into(),)) {
            Ok((proposal,)) => Ok(proposal.command),
            Err(status) => Err(status.message().to_owned()),
        }
    }

    fn info(role: Role, id: u64) -> NodeInfo {
        NodeInfo { id: NodeId(id), role, address: "a:1".into(), zone: String::new() }
    }

    #[test]
    fn holderless_connections_need_insecure() {
        let nobody = Extensions::new();
        let refused = Caller::on_connection(PeerTrust::Certificates, &nobody).err();
        assert_eq!(refused.map(|status| status.code()), Some(tonic::Code::Unauthenticated));
        let caller = Caller::on_connection(PeerTrust::Insecure, &nobody).expect("insecure");
        caller.may_call("raft", &["coordinator"]).expect("anybody");
    }

    #[test]
    fn a_node_joins_and_registers_as_itself_and_gives_the_cluster_of_its_certificate() {
        let join = |role, id| {
            Command::Join(Join {
                request: Box::new(JoinRequest {
                    node: info(role, id),
                    cluster: None,
                    fresh: ClusterId(1),
                    proof: NodeProof(1),
                }),
            })
        };
        let indexer = node(Role::Indexer, 201);
        match proposed(&indexer, join(Role::Indexer, 201)) {
            Ok(Command::Join(Join { request: join })) => assert_eq!(join.fresh, CLUSTER),
            other => panic!("{other:?}"),
        }
        for (role, id) in [(Role::Indexer, 202), (Role::Projector, 201)] {
            for command in
                [join(role, id), Command::RegisterNode(RegisterNode { node: info(role, id) })]
            {
                let why = proposed(&indexer, command).expect_err("another node");
                assert!(why.contains("indexer 201") && why.contains(&id.to_string()), "{why}");
                assert!(why.contains(role.name()), "{why}");
            }
            // A coordinator forwards requests of others.
            proposed(&node(Role::Coordinator, 1), join(role, id)).expect("passed on");
        }
        proposed(&operator(), join(Role::Indexer, 201)).expect_err("an operator is no node");
    }

    #[test]
    fn definitions_come_from_routers_operators_and_coordinators() {
        let definition = || Command::RemoveNode(RemoveNode { node: NodeId(201), force: false });
        for caller in [operator(), node(Role::Router, 301), node(Role::Coordinator, 2)] {
            proposed(&caller, definition()).expect("a definition");
        }
        for caller in [node(Role::Indexer, 201), node(Role::Projector, 101)] {
            proposed(&caller, definition()).expect_err("no definition");
        }
        let of_leader = || Command::DropVersion(DropVersion { data_set: BucketId(1), version: 1 });
        for caller in [operator(), node(Role::Router, 301), node(Role::Projector, 101)] {
            proposed(&caller, of_leader()).expect_err("a command of the leader");
        }
        let lost = |node| {
            let (bucket, partitions) = (BucketId(1), Vec::new());
            Command::PartitionsLost(PartitionsLost { bucket, node: NodeId(node), partitions })
        };
        proposed(&node(Role::Projector, 101), lost(101)).expect("its own");
        proposed(&node(Role::Projector, 101), lost(102)).expect_err("of another one");
        proposed(&node(Role::Router, 301), lost(301)).expect_err("no projector");
    }

    #[test]
    fn reports_must_name_their_sender() {
        let report = |node| SyncReport {
            projector: NodeId(node),
            buckets: Vec::new(),
            left_out: Vec::new(),
            halved: Vec::new(),
        };
        check_sync(&node(Role::Projector, 101), (report(101),)).expect("its own");
        check_sync(&node(Role::Coordinator, 1), (report(101),)).expect("passed on");
        check_sync(&node(Role::Projector, 101), (report(102),)).expect_err("of another one");
        check_sync(&node(Role::Indexer, 101), (report(101),)).expect_err("no projector");
        let beat = |node| Heartbeat::new(NodeId(node), 0, IndexerReport::default());
        check_heartbeat(&node(Role::Indexer, 201), (beat(201),)).expect("its own");
        check_heartbeat(&node(Role::Coordinator, 1), (beat(201),)).expect("passed on");
        check_heartbeat(&node(Role::Indexer, 202), (beat(201),)).expect_err("of another one");
        check_heartbeat(&node(Role::Router, 201), (beat(201),)).expect_err("no indexer");
    }

    #[test]
    fn a_coordinator_sends_messages_of_raft_for_itself_only() {
        // The first bytes of a message are its version, group, kind and sender.
        let from = |node| Bytes::from(vec![1, 0, 0, node, 0]);
        let caller = node(Role::Coordinator, 2);
        check_raft(&caller, (vec![from(2), from(2)],)).expect("its own");
        let why = check_raft(&caller, (vec![from(2), from(3)],)).expect_err("of another one");
        assert!(why.message().contains("coordinator 2"), "{why}");
        assert!(why.message().contains("coordinator 3"), "{why}");
    }
}
