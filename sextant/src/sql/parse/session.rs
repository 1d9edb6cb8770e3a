//! Parses statements about the session: `SHOW`, `SET`, transactions, `DISCARD`, `DEALLOCATE`.

use proto::model::ids::TransactionId;
use sqlparser::tokenizer::Token;

use super::cursor::Cursor;
use crate::sql::ast::{Show, Statement, TransactionModes};
use crate::sql::error::{SqlResult, unsupported};

impl Cursor<'_> {
    pub(super) fn show(&mut self) -> SqlResult<Statement> {
        self.expect_word("SHOW")?;
        if self.eat_words(&["TIME", "ZONE"]) {
            return Ok(Statement::Show(Show::Setting("timezone".into())));
        }
        if self.eat_words(&["TRANSACTION", "ISOLATION", "LEVEL"]) {
            return Ok(Statement::Show(Show::Setting("transaction_isolation".into())));
        }
        if self.eat_word("TRANSACTION") {
            let id = TransactionId(self.integer("the number of a transaction")?);
            return Ok(Statement::Show(Show::Transaction(id)));
        }
        if self.eat_word("ALL") {
            return Ok(Statement::Show(Show::All));
        }
        if self.eat_word("GRANTS") {
            let user = match self.eat_word("FOR") {
                true => Some(self.user_name()?),
                false => None,
            };
            return Ok(Statement::Show(Show::Grants(user)));
        }
        let name = self.setting_name()?;
        Ok(Statement::Show(match name.as_str() {
            "buckets" => Show::Buckets,
            "copies" => Show::Copies,
            "indexes" => Show::Indexes,
            "nodes" => Show::Nodes,
            "slices" => Show::Slices,
            "moves" => Show::Moves,
            "rollbacks" => Show::Rollbacks,
            "holds" => Show::Holds,
            "versions" => Show::Versions,
            "users" => Show::Users,
            "transactions" => Show::Transactions,
            _ => Show::Setting(name),
        }))
    }

    /// Consumes the name of a setting, which may contain a dot.
    fn setting_name(&mut self) -> SqlResult<String> {
        let mut name = self.name("the name of a setting")?;
        while self.eat(&Token::Period) {
            name = format!("{name}.{}", self.name("the name of a setting")?);
        }
        Ok(name)
    }

    pub(super) fn set(&mut self) -> SqlResult<Statement> {
        self.expect_word("SET")?;
        if self.eat_words(&["SESSION", "CHARACTERISTICS", "AS"]) {
            self.expect_word("TRANSACTION")?;
            return Ok(Statement::SetCharacteristics(self.transaction_modes(true)?));
        }
        if self.eat_word("TRANSACTION") {
            return Ok(Statement::SetTransaction(self.transaction_modes(true)?));
        }
        let mut local = false;
        // A setting may have the name `local` or `session`.
        if matches!(self.peek_nth(1), Token::Word(_)) && !self.nth_is(1, "TO") {
            local = self.eat_word("LOCAL");
            let _ = !local && self.eat_word("SESSION");
        }
        if self.eat_words(&["TIME", "ZONE"]) {
            let value = self.setting_value()?;
            return Ok(Statement::Set { name: "timezone".into(), value, local });
        }
        if self.eat_word("NAMES") {
            let value = self.setting_value()?;
            return Ok(Statement::Set { name: "client_encoding".into(), value, local });
        }
        let name = self.setting_name()?;
        if !self.eat(&Token::Eq) && !self.eat_word("TO") {
            return Err(self.expected("= or TO"));
        }
        let value = self.setting_value()?;
        Ok(Statement::Set { name, value, local })
    }

    /// Consumes the value of a setting: words, strings and numbers, separated by commas. Returns
    /// `None` for `DEFAULT`.
    fn setting_value(&mut self) -> SqlResult<Option<String>> {
        if self.eat_word("DEFAULT") {
            return Ok(None);
        }
        let mut value = String::new();
        loop {
            if let Some(text) = self.eat_string() {
                value.push_str(&text);
            } else {
                if self.eat(&Token::Minus) {
                    value.push('-');
                }
                match self.peek() {
                    Token::Word(word) => value.push_str(&word.value),
                    Token::Number(text, _) => value.push_str(text),
                    _ => return Err(self.expected("a value")),
                }
                self.advance();
            }
            if !self.eat(&Token::Comma) {
                return Ok(Some(value));
            }
            value.push_str(", ");
        }
    }

    pub(super) fn reset(&mut self) -> SqlResult<Statement> {
        self.expect_word("RESET")?;
        if self.eat_word("ALL") {
            return Ok(Statement::ResetAll);
        }
        Ok(Statement::Set { name: self.setting_name()?, value: None, local: false })
    }

    /// Parses `BEGIN`, `COMMIT`, `ROLLBACK` and their other forms.
    pub(super) fn transaction(&mut self) -> SqlResult<Statement> {
        if self.eat_word("START") {
            self.expect_word("TRANSACTION")?;
            return Ok(Statement::Begin(self.transaction_modes(false)?));
        }
        if self.eat_word("BEGIN") {
            let _ = self.eat_word("WORK") || self.eat_word("TRANSACTION");
            return Ok(Statement::Begin(self.transaction_modes(false)?));
        }
        let commit = self.is("COMMIT") || self.is("END");
        self.advance();
        let _ = self.eat_word("WORK") || self.eat_word("TRANSACTION");
        if !commit && self.eat_word("TO") {
            self.eat_word("SAVEPOINT");
            return Ok(Statement::RollbackTo(self.name("the name of a savepoint")?));
        }
        if self.is("PREPARED") || self.is("AND") {
            let what = "prepared transactions and chains are not supported";
            return Err(self.error_at_next(unsupported(what, "COMMIT or ROLLBACK alone")));
        }
        Ok(if commit { Statement::Commit } else { Statement::Rollback })
    }

    /// Parses `SAVEPOINT name` and `RELEASE [SAVEPOINT] name`.
    pub(super) fn savepoint(&mut self) -> SqlResult<Statement> {
        if self.eat_word("RELEASE") {
            self.eat_word("SAVEPOINT");
            return Ok(Statement::Release(self.name("the name of a savepoint")?));
        }
        self.expect_word("SAVEPOINT")?;
        Ok(Statement::Savepoint(self.name("the name of a savepoint")?))
    }

    /// Parses `READ ONLY`, `ISOLATION LEVEL …` and similar modes, separated by commas or spaces.
    fn transaction_modes(&mut self, required: bool) -> SqlResult<TransactionModes> {
        const LEVELS: [(&[&str], &str); 4] = [
            (&["SERIALIZABLE"], "serializable"),
            (&["REPEATABLE", "READ"], "repeatable read"),
            (&["READ", "COMMITTED"], "read committed"),
            (&["READ", "UNCOMMITTED"], "read uncommitted"),
        ];
        let mut modes = TransactionModes::default();
        let mut found = false;
        loop {
            if self.eat_words(&["READ", "ONLY"]) {
                modes.read_only = Some(true);
            } else if self.eat_words(&["READ", "WRITE"]) {
                modes.read_only = Some(false);
            } else if self.eat_words(&["ISOLATION", "LEVEL"]) {
                let level = LEVELS.iter().find(|(words, _)| self.eat_words(words));
                let (_, name) = level.ok_or_else(|| self.expected("an isolation level"))?;
                modes.isolation = Some(name);
            } else if !self.eat_words(&["NOT", "DEFERRABLE"]) && !self.eat_word("DEFERRABLE") {
                return match found || !required {
                    true => Ok(modes),
                    false => Err(self.expected("READ ONLY, READ WRITE or ISOLATION LEVEL")),
                };
            }
            found = true;
            self.eat(&Token::Comma);
        }
    }

    pub(super) fn discard(&mut self) -> SqlResult<Statement> {
        self.expect_words(&["DISCARD", "ALL"])?;
        Ok(Statement::DiscardAll)
    }

    /// Parses a statement that has no effect: drivers send it to reset a feature of sessions that
    /// Sextant does not have.
    pub(super) fn no_effect_statement(&mut self) -> SqlResult<Statement> {
        if self.eat_word("UNLISTEN") {
            self.expect(&Token::Mul)?;
            return Ok(Statement::Nothing { tag: "UNLISTEN" });
        }
        self.expect_words(&["CLOSE", "ALL"])?;
        Ok(Statement::Nothing { tag: "CLOSE CURSOR ALL" })
    }

    pub(super) fn deallocate(&mut self) -> SqlResult<Statement> {
        self.expect_word("DEALLOCATE")?;
        self.eat_word("PREPARE");
        if self.eat_word("ALL") {
            return Ok(Statement::Deallocate(None));
        }
        Ok(Statement::Deallocate(Some(self.name("the name of a prepared statement")?)))
    }
}
