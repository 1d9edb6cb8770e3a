//! Applies commands to the state, one by one, in the order of the log.

use proto::plant::{self, Plant};
use proto::rpc::command::{Command, Expected, Outcome, Proposal, RequiredRights};
use proto::{Error, ErrorCode, Result, of_command};

use super::capacity::limits::longest_prefix;
use super::consequence::Consequence;
use super::context::StateContext;
use super::decisions::Decisions;
use super::effect::{Apply, Change, Effect};

/// The length limit, in bytes, of each text of a refusal that is stored for retries. A refusal
/// may quote a name of any length.
const REFUSAL_BYTES_MAX: usize = 1 << 10;

impl StateContext {
    /// Applies a proposal at a position of the log. Returns the outcome, and the effects outside
    /// of the state. A repeated request only returns its stored answer.
    pub fn apply(
        &mut self,
        position: u64,
        decided: &Decisions,
        proposal: &Proposal,
    ) -> (Outcome, Vec<Effect>) {
        self.clock.set_position(position);
        self.clock.set_time(decided.unix_ms);
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
        self.count_change(&effects);
        let broken = || if effects.is_empty() { Ok(()) } else { self.check() };
        debug_assert_eq!(broken(), Ok(()), "after {:?}", proposal.command);
        if let Some(id) = proposal.request {
            self.requests.keep(id, position, outcome.clone());
        }
        (outcome, effects)
    }

    /// Increments `cas` if a command had effects. If the catalog or the users have changed, tells
    /// the sub-states.
    pub(super) fn count_change(&mut self, effects: &[Effect]) {
        if effects.is_empty() {
            return;
        }
        let of_catalog = effects.contains(&Effect::CatalogChanged);
        let cas = self.clock.count_change(of_catalog);
        if of_catalog {
            self.carry_out(&Consequence::CatalogChanged);
        }
        if effects.contains(&Effect::UsersChanged) {
            self.carry_out(&Consequence::UsersChanged { cas });
        }
    }

    /// Applies the command of a proposal. Refuses it if the objects from which it was made have
    /// changed since ([`Expected`]).
    fn run(&mut self, decided: &Decisions, proposal: &Proposal) -> Change {
        self.check_expected(proposal)?;
        of_command!(&proposal.command, command => command.apply(self, decided))
    }

    /// Checks that the objects from which a command was made have not changed since.
    fn check_expected(&self, Proposal { sender, expected, command, .. }: &Proposal) -> Result<()> {
        match expected {
            Expected::Anything => Ok(()),
            Expected::Indexes(seen) => {
                seen.iter().try_for_each(|(id, defined)| self.check_defined(*id, *defined))
            }
            Expected::Sender => {
                let named = match command.need() {
                    RequiredRights::Oneself(name) | RequiredRights::OwnPassword(name) => Some(name),
                    _ => None,
                };
                let found = named.zip(*sender);
                let found =
                    found.and_then(|(name, sender)| self.users.current().find_user(&name, sender));
                let gone = || Error::new(ErrorCode::UnknownUser, "the user was dropped");
                found.map(drop).ok_or_else(gone)
            }
        }
    }
}

/// Truncates the texts of a refusal to [`REFUSAL_BYTES_MAX`] each, because the refusal is stored
/// for retries.
fn shortened(mut error: Error) -> Error {
    for text in std::iter::once(&mut error.message).chain(&mut error.hint) {
        text.truncate(longest_prefix(text, REFUSAL_BYTES_MAX).len());
    }
    error
}
