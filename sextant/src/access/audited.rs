//! The handle of the changes of definitions, users, places of data, and nodes.

use std::ops::Deref;

use proto::Result;
use proto::model::ids::{IndexId, TransactionId};
use proto::model::moves::{RebalancePlan, RebalanceRequest};
use proto::model::users::{Privilege, UserCommand};
use proto::rpc::api::{CoordinatorChange, CoordinatorChanged};
use proto::rpc::command::{Command, Expected, Need, Outcome, Proposal};

use super::calls::Access;
use crate::audit::Attempt;
use crate::flow::DefinitionPlace;

/// The access of one audited statement. The audit line is written before the first change is sent.
///
/// Each change by a user takes one of a limited number of places for definitions in flight. Rights
/// are checked after the wait for the place, so that the result still holds when the change is
/// sent.
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
    /// Runs a replicated command, whose request and sender this call sets. It returns after the outcome is committed and visible in this
    /// process's catalog. A refusal is an error; the catalog then shows the reason.
    pub async fn command(&self, proposal: Proposal) -> Result<Outcome> {
        let _place = self.definition_place().await?;
        self.may_send(&proposal.command)?;
        self.check(|rights| rights.leaves_reserve(&proposal.command))?;
        let ran = self.propose(proposal).await;
        ran.map_err(|error| match &self.rights {
            Some(rights) => rights.without_names(error),
            None => error,
        })
    }

    /// Changes the users or their privileges. It returns after the outcome is committed and this process has received it. A refusal is an
    /// error.
    pub async fn change_users(&self, command: UserCommand) -> Result<Outcome> {
        let command = Command::Users(Box::new(command));
        let Some(rights) = &self.rights else { return self.propose(command.into()).await };
        let need = command.need();
        let sets_own_password = matches!(&need, Need::OwnPassword(name) if rights.is_self(name));
        let is_of_sender = matches!(
            &need,
            Need::OwnPassword(name) | Need::Oneself(name) if rights.is_self(name)
        );
        let _place = rights.definition_place().await?;
        rights.meets(&need)?;
        let expected = if is_of_sender { Expected::Sender } else { Expected::Anything };
        let proposal = Proposal { expected, ..rights.with_own_end(command)?.into() };
        let changed = self.propose(proposal).await?;
        if let Outcome::User { cas, .. } = changed
            && sets_own_password
        {
            rights.note_own_password(cas);
        }
        Ok(changed)
    }

    /// Starts the moves of a rebalance of an index or of all. Returns its plan.
    pub async fn rebalance(&self, index: Option<IndexId>) -> Result<RebalancePlan> {
        let _place = self.definition_place().await?;
        self.may_rebalance(index)?;
        let request = RebalanceRequest { index, dry_run: false };
        self.cluster.rebalance(request, &self.attempt).await
    }

    /// Adds or removes a member of the coordinator. It returns after the change is made and visible in this process's catalog.
    pub async fn change_coordinators(
        &self,
        change: CoordinatorChange,
    ) -> Result<CoordinatorChanged> {
        let _place = self.definition_place().await?;
        self.check(|rights| rights.on_all(Privilege::Admin))?;
        let principal = self.principal();
        tracing::debug!(%principal, ?change, "changing the coordinators");
        self.cluster.change_coordinators(change, &self.attempt).await
    }

    /// Rolls back the open transaction with this id. Returns false if there is none, or if the
    /// principal may not know of it.
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
            if rights.view()?.on(open.bucket).is_empty() {
                return Ok(false);
            }
            if !rights.is_own(&open.owner) {
                rights.on(Privilege::Admin, open.bucket)?;
            }
            is_found = true;
        }
        Ok(is_found)
    }

    /// Waits for the place of a user's definition; a trusted principal needs none.
    async fn definition_place(&self) -> Result<Option<DefinitionPlace>> {
        match &self.rights {
            Some(rights) => rights.definition_place().await.map(Some),
            None => Ok(None),
        }
    }

    async fn propose(&self, proposal: Proposal) -> Result<Outcome> {
        let principal = self.principal();
        tracing::debug!(%principal, ?proposal.command, "running a command");
        let proposal = Proposal { sender: principal.user_id(), ..proposal };
        self.cluster.command(proposal, &self.attempt).await
    }
}
