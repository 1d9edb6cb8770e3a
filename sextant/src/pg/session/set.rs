//! The statement SET, which changes settings of a session and modes of its transactions.

use proto::{Error, ErrorCode, Result};

use super::known_settings::check;
use super::state::SessionState;
use super::transaction::Transaction;
use super::values::TRANSACTION_READ_ONLY;
use crate::sql::ast::TransactionModes;

impl SessionState {
    /// Changes a setting of the session or, with `local`, of the transaction. A read-only
    /// transaction cannot become writable, because its epoch may not allow writes.
    pub(in crate::pg) fn set(
        &mut self,
        name: &str,
        value: Option<&str>,
        local: bool,
    ) -> Result<()> {
        let was_read_only = self.settings.is_read_only();
        let has_read =
            matches!(&self.transaction, Transaction::Open(open) if open.buckets.has_moment());
        if let Some(value) = value
            && name == TRANSACTION_READ_ONLY
            && was_read_only
            && has_read
            && check(name, value)? == "off"
        {
            let what = "transaction read-write mode must be set before any query";
            return Err(Error::new(ErrorCode::TooLate, what));
        }
        self.settings.set(name, value, local)
    }

    /// Sets modes of the present transaction, or the defaults for later transactions. After an
    /// error, none of the modes is changed.
    pub(in crate::pg) fn set_modes(
        &mut self,
        modes: &TransactionModes,
        prefix: &str,
    ) -> Result<()> {
        let before = self.settings.savepoint();
        let set = self.set_each_mode(modes, prefix);
        set.inspect_err(|_| self.settings.rollback_to(&before))
    }

    /// Sets each mode. `prefix` distinguishes the settings of the transaction from the defaults.
    fn set_each_mode(&mut self, modes: &TransactionModes, prefix: &str) -> Result<()> {
        if let Some(read_only) = modes.read_only {
            let value = if read_only { "on" } else { "off" };
            self.set(&format!("{prefix}_read_only"), Some(value), false)?;
        }
        match modes.isolation {
            Some(level) => self.set(&format!("{prefix}_isolation"), Some(level), false),
            None => Ok(()),
        }
    }
}
