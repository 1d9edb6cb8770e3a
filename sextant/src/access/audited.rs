//! The handle for changes of definitions, users, data placement and nodes. Each change is
//! recorded in the audit.

use std::ops::Deref;

use proto::Result;
use proto::model::ids::{IndexId, TransactionId};
use proto::model::moves::{RebalancePlan, RebalanceRequest};
use proto::model::users::{Privilege, UserCommand};
use proto::rpc::api::{CoordinatorChange, CoordinatorChanged};
use proto::rpc::command::{Command, Expected, Outcome, Proposal, RequiredRights};

use super::calls::Access;
use crate::audit::Attempt;
use crate::flow::DefinitionPlace;

/// The access to the cluster for one audited statement, with the calls that change definitions,
/// users, data placement and nodes. The audit line is written before the first change is sent.
///
/// The number of definitions that users may send at the same time is limited, so a user's change
/// first waits for a place. Rights are checked after that wait, so that the result is still valid
/// when the change is sent.
pub struct AuditedAccess {
    access: Access,
    attempt: Attempt,
}

impl Access {
    /// Returns the access for one audited statement.
    pub fn audited(&self, attempt: &Attempt) -> AuditedAccess {
        AuditedAccess { access: self.clone(), attempt: attempt.clone() }
    }
}

/// Gives access to reads, since a statement that changes something also reads.
impl Deref for AuditedAccess {
    type Target = Access;

    fn deref(&self) -> &Access {
        &self.access
    }
}

impl AuditedAccess {
    /// Runs a replicated command and returns after its outcome is committed and visible in this
    /// process's catalog. This method sets the request id and the sender of the command. Returns
    /// an error if the command is refused; the catalog then shows the reason.
    pub async fn command(&self, proposal: Proposal) -> Result<Outcome> {
        let _place = self.wait_definition_place().await?;
        self.check_command(&proposal.command)?;
        self.check(|rights| rights.check_admin_reserve(&proposal.command))?;
        let ran = self.propose(proposal).await;
        ran.map_err(|error| match &self.rights {
            Some(rights) => rights.without_object_names(error),
            None => error,
        })
    }

    /// Changes the users or their privileges. Returns after the outcome is committed and this
    /// process has received it. Returns an error if the change is refused.
    pub async fn change_users(&self, command: UserCommand) -> Result<Outcome> {
        let command = Command::Users(Box::new(command));
        let Some(rights) = &self.rights else { return self.propose(command.into()).await };
        let need = command.need();
        let sets_own_password =
            matches!(&need, RequiredRights::OwnPassword(name) if rights.is_self(name));
        let is_of_sender = matches!(
            &need,
            RequiredRights::OwnPassword(name) | RequiredRights::Oneself(name) if rights.is_self(name)
        );
        let _place = rights.wait_definition_place().await?;
        rights.check_need(&need)?;
        let expected = if is_of_sender { Expected::Sender } else { Expected::Anything };
        let proposal = Proposal { expected, ..rights.with_previous_end_date(command)?.into() };
        let changed = self.propose(proposal).await?;
        if let Outcome::User { cas, .. } = changed
            && sets_own_password
        {
            rights.note_own_password(cas);
        }
        Ok(changed)
    }

    /// Starts the moves of slices that balance one index, or all indexes for `None`. Returns the
    /// plan of these moves.
    pub async fn rebalance(&self, index: Option<IndexId>) -> Result<RebalancePlan> {
        let _place = self.wait_definition_place().await?;
        self.may_rebalance(index)?;
        let request = RebalanceRequest { index, dry_run: false };
        self.cluster.rebalance(request, &self.attempt).await
    }

    /// Adds or removes a coordinator. Returns after the change is made and visible in this
    /// process's catalog.
    pub async fn change_coordinators(
        &self,
        change: CoordinatorChange,
    ) -> Result<CoordinatorChanged> {
        let _place = self.wait_definition_place().await?;
        self.check(|rights| rights.check_on_all(Privilege::Admin))?;
        let principal = self.principal();
        tracing::debug!(%principal, ?change, "changing the coordinators");
        self.cluster.change_coordinators(change, &self.attempt).await
    }

    /// Rolls back the open transaction with this id. Returns false if there is none, or if the
    /// principal has no right to know of it.
    pub async fn cancel_transaction(&self, transaction: TransactionId) -> Result<bool> {
        match self.may_cancel(transaction).await? {
            true => self.cluster.cancel_transaction(transaction, &self.attempt).await,
            false => Ok(false),
        }
    }

    /// Returns true if there are open transactions with this id and the principal may end them.
    async fn may_cancel(&self, transaction: TransactionId) -> Result<bool> {
        let Some(rights) = &self.rights else { return Ok(true) };
        let open = self.cluster.transactions().await?;
        let mut is_found = false;
        for open in open.iter().filter(|open| open.transaction == transaction) {
            if rights.view()?.privileges_on(open.bucket).is_empty() {
                return Ok(false);
            }
            if !rights.is_own_transaction(&open.owner) {
                rights.check_on(Privilege::Admin, open.bucket)?;
            }
            is_found = true;
        }
        Ok(is_found)
    }

    /// Waits for a place among the limited number of definitions that users send at the same
    /// time. Returns `None` for a trusted principal, which needs no place.
    async fn wait_definition_place(&self) -> Result<Option<DefinitionPlace>> {
        match &self.rights {
            Some(rights) => rights.wait_definition_place().await.map(Some),
            None => Ok(None),
        }
    }

    /// Sends a proposed command to the cluster under this statement's audit.
    async fn propose(&self, proposal: Proposal) -> Result<Outcome> {
        let principal = self.principal();
        tracing::debug!(%principal, ?proposal.command, "running a command");
        let proposal = Proposal { sender: principal.user_id(), ..proposal };
        self.cluster.command(proposal, &self.attempt).await
    }
}
