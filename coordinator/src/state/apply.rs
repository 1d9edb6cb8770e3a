//! Applies commands to the state, one by one, in the order of the log.

use std::sync::Arc;

use proto::model::identity::UniqueId;
use proto::model::ids::BucketId;
use proto::plant::{self, Plant};
use proto::rpc::command::{Command, Expected, Need, Outcome, Proposal};
use proto::{Error, ErrorCode, Result};

use super::capacity::limits::beginning;
use super::context::StateContext;
use super::decisions::Decisions;
use super::effect::{Apply, Change, Effect};

/// The length limit of a kept refusal and of its hint. A refusal may quote a name of any length.
const REFUSAL_BYTES_MAX: usize = 1 << 10;

/// The most time that may pass between two commands.
const STEP_MS_MAX: u64 = 10_000;

impl StateContext {
    /// Applies a proposal.
    pub fn apply(
        &mut self,
        position: u64,
        decided: &Decisions,
        proposal: &Proposal,
    ) -> (Outcome, Vec<Effect>) {
        let Decisions { unix_ms, .. } = *decided;
        self.position = position;
        let passed_ms = unix_ms.saturating_sub(std::mem::replace(&mut self.told_ms, unix_ms));
        self.steady_ms += passed_ms.min(STEP_MS_MAX);
        // The clock of a new leader may be slower than that of the old one.
        self.unix_ms = self.unix_ms.max(unix_ms);
        if let Some(id) = proposal.request
            && let Some(answer) = self.requests.answer(id)
            && !plant::is(Plant::DoneTwice)
        {
            return (answer, Vec::new());
        }
        let (outcome, effects) = match self.run(decided, proposal) {
            Ok((outcome, effects)) => (outcome, effects),
            Err(error) => (Outcome::Refused(shortened(error)), Vec::new()),
        };
        if !effects.is_empty() {
            self.cas += 1;
        }
        if effects.contains(&Effect::CatalogChanged) {
            self.catalog_cas = self.cas;
            self.forget_topologies();
        }
        if effects.contains(&Effect::UsersChanged) {
            Arc::make_mut(&mut self.users).cas = self.cas;
        }
        let broken = || if effects.is_empty() { Ok(()) } else { self.check() };
        debug_assert_eq!(broken(), Ok(()), "after {:?}", proposal.command);
        if let Some(id) = proposal.request {
            self.requests.keep(id, position, outcome.clone());
        }
        (outcome, effects)
    }

    /// Runs the command of a proposal, if it was made from what there is.
    fn run(&mut self, decided: &Decisions, proposal: &Proposal) -> Change {
        self.check_expected(proposal)?;
        self.change(&proposal.command, decided)
    }

    /// Checks that what a command was made from has not changed since.
    fn check_expected(&self, Proposal { sender, expected, command, .. }: &Proposal) -> Result<()> {
        match expected {
            Expected::Anything => Ok(()),
            Expected::Indexes(seen) => {
                seen.iter().try_for_each(|(id, defined)| self.check_defined(*id, *defined))
            }
            Expected::Sender => {
                let named = match command.need() {
                    Need::Oneself(name) | Need::OwnPassword(name) => Some(name),
                    _ => None,
                };
                let found = named.zip(*sender);
                let found = found.and_then(|(name, sender)| self.users.same(&name, sender));
                let gone = || Error::new(ErrorCode::UnknownUser, "the user was dropped");
                found.map(drop).ok_or_else(gone)
            }
        }
    }

    fn change(&mut self, command: &Command, decided: &Decisions) -> Change {
        match command {
            Command::CreateBucket(command) => command.apply(self, decided),
            Command::DropBucket(command) => command.apply(self, decided),
            Command::CreateIndex(command) => command.apply(self, decided),
            Command::BuildIndexes(command) => command.apply(self, decided),
            Command::DropIndex(command) => command.apply(self, decided),
            Command::RenameIndex(command) => command.apply(self, decided),
            Command::SetReplicas(command) => command.apply(self, decided),
            Command::SetSeparateIncludedColumns(command) => command.apply(self, decided),
            Command::SetSliceBytesMax(command) => command.apply(self, decided),
            Command::BuildGeneration(command) => command.apply(self, decided),
            Command::IndexReady(command) => command.apply(self, decided),
            Command::CancelBuild(command) => command.apply(self, decided),
            Command::DropGeneration(command) => command.apply(self, decided),
            Command::GrowIndex(command) => command.apply(self, decided),
            Command::SplitSlice(command) => command.apply(self, decided),
            Command::CreateDataSet(command) => command.apply(self, decided),
            Command::SetVersionIdle(command) => command.apply(self, decided),
            Command::LoadVersion(command) => command.apply(self, decided),
            Command::CancelVersion(command) => command.apply(self, decided),
            Command::PartitionsLoaded(command) => command.apply(self, decided),
            Command::PartitionsLost(command) => command.apply(self, decided),
            Command::VersionFailed(command) => command.apply(self, decided),
            Command::OwnPartitions(command) => command.apply(self, decided),
            Command::BuildVersion(command) => command.apply(self, decided),
            Command::SwitchVersion(command) => command.apply(self, decided),
            Command::DropVersion(command) => command.apply(self, decided),
            Command::StartMoves(command) => command.apply(self, decided),
            Command::AdvanceMove(command) => command.apply(self, decided),
            Command::EndMove(command) => command.apply(self, decided),
            Command::CancelMoves(command) => command.apply(self, decided),
            Command::HandOver(command) => command.apply(self, decided),
            Command::HandedOver(command) => command.apply(self, decided),
            Command::CancelHandOver(command) => command.apply(self, decided),
            Command::RegisterNode(command) => command.apply(self, decided),
            Command::Join(command) => command.apply(self, decided),
            Command::DrainNode(command) => command.apply(self, decided),
            Command::RemoveNode(command) => command.apply(self, decided),
            Command::PlaceLost(command) => command.apply(self, decided),
            Command::SetCopies(command) => command.apply(self, decided),
            Command::MoveBucket(command) => command.apply(self, decided),
            Command::ChangeCopies(command) => command.apply(self, decided),
            Command::OpenSource(command) => command.apply(self, decided),
            Command::PromoteEpochs(command) => command.apply(self, decided),
            Command::Rollback(command) => command.apply(self, decided),
            Command::SkipEpochs(command) => command.apply(self, decided),
            Command::Users(command) => command.apply(self, decided),
        }
    }

    /// Creates a bucket with a random id, unless it exists.
    pub(super) fn creating(
        &mut self,
        unique: UniqueId,
        create: impl FnOnce(&mut Self) -> Change,
    ) -> Change {
        let newest = self.last_bucket;
        let made = create(self)?;
        if self.last_bucket > newest {
            self.bucket_ids.insert(BucketId(self.last_bucket), unique);
        }
        Ok(made)
    }
}

/// Cuts the texts of a refusal, which is kept for retries.
fn shortened(mut error: Error) -> Error {
    for text in std::iter::once(&mut error.message).chain(&mut error.hint) {
        text.truncate(beginning(text, REFUSAL_BYTES_MAX).len());
    }
    error
}
