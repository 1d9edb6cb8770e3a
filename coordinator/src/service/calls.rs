//! The incoming calls of a member.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use proto::model::copies::CopiesChange;
use proto::model::cut::{Cut, EpochMark};
use proto::model::identity::UniqueId;
use proto::model::ids::{BucketId, Epoch, LocalIndexId, TopologyNo};
use proto::model::moment::Moment;
use proto::model::moves::{RebalancePlan, RebalanceRequest};
use proto::model::node::NodeInfo;
use proto::model::topology::IndexTopology;
use proto::rpc::api::{
    CoordinatorApi, CoordinatorChange, CoordinatorChanged, CoordinatorMembers, CoordinatorStatus,
    CoveringEpochs, FixedMoment, Heartbeat, HeartbeatReply, ResultStream, SyncReply, SyncReport,
    WatchKind, WatchMessage,
};
use proto::rpc::command::{
    AppliedCommand, ChangeCopies, Command, Join, Outcome, Proposal, RegisterNode, RemoveNode,
    RequiredRights, SendingProcess, SkipEpochs, StartMoves,
};
use proto::{Error, ErrorCode, Result};

use super::ask_members::known_members;
use super::coordinator::Coordinator;
use super::covering::wait_for_epoch;
use super::members::change_members;
use super::moments::{epoch_at, fix_moment};
use super::reports::{heartbeat, sync};
use super::watch::watch;
use crate::leader::Leader;
use crate::leader::driver::member::Member;
use crate::leader::nodes::bootstrap::changes_membership;
use crate::raft::{RaftMessage, not_leader};
use crate::state::Decisions;

/// The interval at which a waiting command checks whether the leader's bootstrap is complete.
const BOOTSTRAP_LOOK: Duration = Duration::from_millis(20);

/// Returns true for a command by which a process joins; all other commands change a definition.
fn is_join(command: &Command) -> bool {
    matches!(command, Command::Join(_) | Command::RegisterNode(_))
}

/// Waits until a command may be proposed. A change of the membership waits until the leader has
/// received all reports that it needs. A change of a definition waits as long as nodes may still
/// report that the coordinator is an older copy of itself.
async fn wait_until_allowed(member: &Member, command: &Command) -> Result<()> {
    let waits = |member: &Member| {
        let now_ms = member.now_ms();
        member.as_leader(|leader| {
            let view = member.replica.view();
            let is_member = match command {
                Command::RegisterNode(RegisterNode { node }) => member.members().contains(node.id),
                _ => false,
            };
            let waits =
                changes_membership(&view.state, command) && !leader.is_active(&view.state, now_ms);
            let holds = !is_join(command) && leader.waits_for_reports(&view.state, now_ms);
            Ok(!is_member && (waits || holds))
        })
    };
    while waits(member)? {
        tokio::time::sleep(BOOTSTRAP_LOOK).await;
    }
    Ok(())
}

/// Returns the leader's decisions about a proposal. The inner error refuses the command. The
/// outer error means that this member cannot decide, because it does not lead or its data is an
/// older copy.
fn decide(member: &Member, proposal: &Proposal) -> Result<std::result::Result<Decisions, Error>> {
    let command = &proposal.command;
    match command {
        Command::Join(Join { request: join }) => check_join(member, &join.node)?,
        Command::RegisterNode(RegisterNode { node }) => check_join(member, node)?,
        _ => {}
    }
    let unique = if command.creates() { member.random_id() } else { UniqueId::default() };
    let (now_ms, decided) = (member.now_ms(), Decisions { unique, ..Decisions::default() });
    member.as_leader(|leader| {
        let view = member.replica.view();
        let state = &view.state;
        let judged = match command {
            Command::Join(Join { request: join }) => {
                let replaces = leader.judge_join(state, join, now_ms);
                return Ok(replaces.map(|replaces| Decisions { replaces, ..decided }));
            }
            Command::SkipEpochs(SkipEpochs) => {
                let checked = leader.check_owners(state);
                return Ok(checked
                    .map(|()| Decisions { newest: leader.newest_reported_numbers(), ..decided }));
            }
            Command::RegisterNode(RegisterNode { node }) => {
                leader.judge_registration(state, node, now_ms)
            }
            _ => {
                leader.check_not_older_copy(state)?;
                leader.note_statement(state, command);
                match command {
                    Command::RemoveNode(RemoveNode { node, force: true }) => {
                        leader.check_forced_removal(state, *node, now_ms)
                    }
                    _ => Ok(()),
                }
            }
        };
        let silent = leader.silent_nodes_for(state, command, now_ms);
        Ok(judged.map(|()| Decisions { silent, ..decided }))
    })
}

/// Refuses a node that would change the catalog if there is evidence that this coordinator is an
/// older copy of itself. Registered nodes may join, and then report the numbers that they know.
fn check_join(member: &Member, node: &NodeInfo) -> Result<()> {
    member.as_leader(|leader| {
        let view = member.replica.view();
        match view.state.node(node.id).is_some_and(|known| **known == *node) {
            true => Ok(()),
            false => leader.check_not_older_copy(&view.state),
        }
    })
}

/// Plans a rebalance from the leader's memory, and starts its moves.
async fn rebalance_here(member: &Member, request: RebalanceRequest) -> Result<RebalancePlan> {
    let now_ms = member.now_ms();
    let plan = member.as_leader(|leader| {
        let view = member.replica.view();
        leader.check_not_older_copy(&view.state)?;
        leader.rebalance(&view.state, &request, now_ms)
    })?;
    if request.dry_run || plan.moves.is_empty() {
        return Ok(plan);
    }
    let command = Command::StartMoves(StartMoves { moves: plan.moves.clone() });
    match member.propose_here(Decisions::default(), command.into()).await?.outcome {
        Outcome::Refused(error) => Err(error),
        _ => Ok(plan),
    }
}

#[async_trait]
impl CoordinatorApi for Coordinator {
    async fn propose(&self, proposal: Proposal) -> Result<AppliedCommand> {
        if is_only_for_leader(&proposal.command) {
            let what = "only the leading coordinator may propose this command";
            return Err(Error::new(ErrorCode::InvalidParameter, what));
        }
        match self.member.forward_to()? {
            Some(leader) => leader.propose(proposal).await,
            None => {
                wait_until_allowed(&self.member, &proposal.command).await?;
                match decide(&self.member, &proposal)? {
                    Ok(decided) => self.member.propose_here(decided, proposal).await,
                    Err(refused) => Ok(AppliedCommand::refused(refused)),
                }
            }
        }
    }

    async fn sync(&self, report: SyncReport) -> Result<SyncReply> {
        sync(&self.member, report).await
    }

    async fn heartbeat(&self, beat: Heartbeat) -> Result<HeartbeatReply> {
        heartbeat(&self.member, beat).await
    }

    async fn epoch_covering(
        &self,
        bucket: BucketId,
        cut: Cut,
        history: Option<u64>,
        at_least: Epoch,
        timeout_ms: u64,
    ) -> Result<CoveringEpochs> {
        wait_for_epoch(&self.member, bucket, cut, (history, at_least), timeout_ms).await
    }

    async fn watch(&self, wanted: WatchKind) -> Result<ResultStream<WatchMessage>> {
        let role = self.member.raft.role();
        // A member that is cut off would show a stale state.
        if role.borrow().leader.is_none() {
            return Err(not_leader(None));
        }
        Ok(watch(self.member.replica.clone(), role, wanted))
    }

    async fn status(&self) -> Result<CoordinatorStatus> {
        let role = *self.member.raft.role().borrow();
        let (committed, applied) = self.member.raft.progress();
        let now_ms = self.member.now_ms();
        let members = known_members(&self.member);
        let mut leader = self.member.leader();
        let view = self.member.replica.view();
        let silent_ms = self.member.members_silent_ms(now_ms);
        let told = |leader: &Leader| leader.node_status(&view.state, &silent_ms, now_ms);
        let nodes = leader.as_ref().map_or_else(Vec::new, told);
        let active = leader.as_mut().is_some_and(|l| l.is_active(&view.state, now_ms));
        let differences = leader.as_ref().map_or_else(Vec::new, |l| l.differences(&view.state));
        let left_out = leader.as_ref().map_or_else(Vec::new, |l| l.left_out());
        let halved = leader.as_ref().map_or_else(Vec::new, |l| l.halved());
        let holds = leader.as_ref().map_or_else(Vec::new, |l| l.epoch_holds(&view.state, now_ms));
        let waits = |l: &Leader| l.version_waits(&view.state, now_ms);
        let version_waits = leader.as_ref().map_or_else(Vec::new, waits);
        let past_slow = leader.as_ref().map_or_else(Vec::new, |l| l.epochs_past_slow_indexers());
        drop(leader);
        Ok(CoordinatorStatus {
            node: self.member.config.node,
            leader: role.leader,
            term: role.term,
            committed,
            applied,
            catalog_cas: view.catalog.cas,
            active,
            differences,
            nodes,
            left_out,
            halved,
            holds,
            members: Box::new(members),
            version_waits,
            past_slow,
        })
    }

    async fn rebalance(&self, request: RebalanceRequest) -> Result<RebalancePlan> {
        match self.member.forward_to()? {
            Some(leader) => leader.rebalance(request).await,
            None => {
                wait_until_allowed(
                    &self.member,
                    &Command::StartMoves(StartMoves { moves: Vec::new() }),
                )
                .await?;
                rebalance_here(&self.member, request).await
            }
        }
    }

    async fn topology(
        &self,
        index: LocalIndexId,
        number: TopologyNo,
    ) -> Result<Arc<IndexTopology>> {
        self.member.replica.view().state.topology(index, number)
    }

    async fn epoch_mark(&self, bucket: BucketId, epoch: Epoch) -> Result<Option<EpochMark>> {
        let view = self.member.replica.view();
        let epochs = view.state.bucket(bucket).map(|bucket| bucket.epochs);
        if epochs.is_none_or(|epochs| epochs.last().epoch < epoch) {
            let bucket = view.state.bucket_text(bucket);
            let what = format!("this member does not know epoch {epoch} of {bucket} yet");
            return Err(Error::unavailable(what));
        }
        Ok(epochs.and_then(|epochs| epochs.mark(epoch)).cloned())
    }

    async fn moment(
        &self,
        bucket: BucketId,
        at_least: Epoch,
        timeout_ms: u64,
    ) -> Result<FixedMoment> {
        fix_moment(&self.member, bucket, at_least, timeout_ms).await
    }

    async fn epoch_at(&self, bucket: BucketId, moment: Moment) -> Result<Epoch> {
        epoch_at(&self.member, bucket, moment).await
    }

    async fn raft(&self, messages: Vec<Bytes>) -> Result<()> {
        for message in messages {
            let message = RaftMessage::decode(&message)?;
            self.member.record_message_from(message.from);
            self.member.raft.deliver(message);
        }
        Ok(())
    }

    async fn members(&self) -> Result<CoordinatorMembers> {
        Ok(known_members(&self.member))
    }

    async fn change_members(&self, change: CoordinatorChange) -> Result<CoordinatorChanged> {
        change_members(&self.member, change).await
    }
}

/// Returns true if only the leader may propose the command. Projectors may propose changes of
/// copies other than a joining one.
fn is_only_for_leader(command: &Command) -> bool {
    let is_join = |change: &ChangeCopies| matches!(change.change, CopiesChange::Join(_));
    command.need() == RequiredRights::Process(SendingProcess::Leader)
        || matches!(command, Command::ChangeCopies(change) if is_join(change))
}

#[cfg(test)]
mod tests {
    use proto::model::ids::NodeId;
    use proto::rpc::command::ChangeCopies;

    use super::*;

    #[test]
    fn only_the_leader_may_add_a_joining_copy() {
        let is_own = |change: fn(NodeId) -> CopiesChange| {
            let change = change(NodeId(1));
            is_only_for_leader(&Command::ChangeCopies(ChangeCopies {
                bucket: BucketId(1),
                revision: 1,
                change,
            }))
        };
        assert!(is_own(CopiesChange::Join));
        let of_copies = [
            CopiesChange::Grow,
            CopiesChange::Shrink,
            CopiesChange::Promote,
            CopiesChange::Give,
            CopiesChange::Leave,
        ];
        assert!(!of_copies.into_iter().any(is_own));
    }
}
