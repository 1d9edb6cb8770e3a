//! Parses statements about users and privileges: `CREATE USER`, `ALTER USER`, `DROP USER`,
//! `GRANT`, `REVOKE`.
//!
//! PostgreSQL's spelling of passwords is accepted too, since its tools send it: psql's `\password`
//! sends `ALTER USER u PASSWORD 'SCRAM-SHA-256$…'`. Errors of these statements quote nothing of the
//! text.

use proto::model::ids::TokenId;
use proto::model::users::{GrantOn, Privilege, Privileges, UserLimits};
use proto::{Error, ErrorCode};
use sqlparser::tokenizer::Token;

use super::cursor::{Cursor, is_reserved_name};
use crate::dates;
use crate::sql::ast::{AlterUser, HiddenText, SecretText, Statement, UserStatement};
use crate::sql::error::{SqlError, SqlResult, unsupported};

/// The maximum of a user's limit.
const LIMIT_MAX: u64 = 1_000_000;

/// The names of privileges in PostgreSQL, each with the name of the same privilege in Sextant.
const POSTGRES_NAMES: [(&str, &str); 8] = [
    ("SELECT", "scan"),
    ("INSERT", "write"),
    ("UPDATE", "write"),
    ("DELETE", "write"),
    ("TRUNCATE", "define"),
    ("CREATE", "define"),
    ("CONNECT", "scan"),
    ("USAGE", "scan"),
];

impl Cursor<'_> {
    /// Parses `CREATE USER u [PASSWORD '…' [VALID UNTIL '…'] | TOKEN [VALID UNTIL '…']] [WITH
    /// (…)]`, after the first two words.
    pub(super) fn create_user(&mut self) -> SqlResult<Statement> {
        self.has_secrets = true;
        let place = self.error_at_next(Error::new(
            ErrorCode::ReservedName,
            "no user has the name public or none, or one that begins with pg_",
        ));
        let name = self.user_name()?;
        if is_reserved_name(&name) || ["public", "none"].contains(&&*name) {
            return Err(place);
        }
        self.skip_with();
        let secret = match () {
            () if self.eat_password_null() => None,
            () => self.eat_secret()?,
        };
        let limits = self.user_limits()?;
        if secret.is_none() && !self.at_end() && limits == UserLimits::default() {
            return Err(self.expected("PASSWORD, TOKEN or WITH (…)"));
        }
        Ok(Statement::User(UserStatement::Create { name, secret, limits }))
    }

    /// Parses `ALTER USER u PASSWORD … | TOKEN … | DROP TOKEN n | WITH (…)`, after the first two
    /// words.
    pub(super) fn alter_user(&mut self) -> SqlResult<Statement> {
        self.has_secrets = true;
        let name = self.user_name()?;
        self.skip_with();
        let change = match () {
            () if self.eat_password_null() => AlterUser::DropPassword,
            () if self.eat_words(&["DROP", "TOKEN"]) => {
                AlterUser::DropToken(TokenId(self.integer("the number of a token")?))
            }
            () if self.is("WITH") => AlterUser::Limits(self.user_limits()?),
            () => match self.eat_secret()? {
                Some(secret) => AlterUser::Secret(secret),
                None => return Err(self.expected("PASSWORD, TOKEN, DROP TOKEN or WITH (…)")),
            },
        };
        Ok(Statement::User(UserStatement::Alter { name, change }))
    }

    /// Parses `DROP USER [IF EXISTS] u`, after the first two words.
    pub(super) fn drop_user(&mut self) -> SqlResult<Statement> {
        let if_exists = self.eat_words(&["IF", "EXISTS"]);
        let name = self.user_name()?;
        Ok(Statement::User(UserStatement::Drop { name, if_exists }))
    }

    /// Returns an error for `ROLE` and `GROUP`, which Sextant does not have.
    pub(super) fn refuse_role(&self) -> SqlResult<()> {
        if !self.is("ROLE") && !self.is("GROUP") {
            return Ok(());
        }
        let hint = "CREATE USER, ALTER USER and DROP USER; privileges are granted to users";
        Err(self.error_at_next(unsupported("there are no roles and no groups", hint)))
    }

    /// Parses `GRANT privilege, … ON b | ALL TO u` and `GRANT ALL TO u`.
    pub(super) fn grant(&mut self) -> SqlResult<Statement> {
        self.expect_word("GRANT")?;
        // `ALL` includes all privileges: an administrator may do everything.
        let all = [Privilege::Admin].into_iter().collect();
        let (privileges, on) = self.privileges_on(all)?;
        self.expect_word("TO")?;
        let user = self.user_name()?;
        Ok(Statement::User(UserStatement::Grant { user, privileges, on }))
    }

    /// Parses `REVOKE privilege, … ON b | ALL FROM u` and `REVOKE ALL FROM u`.
    pub(super) fn revoke(&mut self) -> SqlResult<Statement> {
        self.expect_word("REVOKE")?;
        let (privileges, on) = self.privileges_on(Privilege::ALL.into_iter().collect())?;
        self.expect_word("FROM")?;
        let user = self.user_name()?;
        Ok(Statement::User(UserStatement::Revoke { user, privileges, on }))
    }

    /// Parses `privilege, … ON b | ALL`, or `ALL [PRIVILEGES] [ON b | ALL]`, where `ALL` means
    /// the privileges `all`.
    fn privileges_on(&mut self, all: Privileges) -> SqlResult<(Privileges, GrantOn<String>)> {
        let is_all = self.eat_word("ALL");
        let privileges = match is_all {
            true => {
                let _ = self.eat_word("PRIVILEGES");
                all
            }
            false => {
                let mut privileges = vec![self.privilege()?];
                while self.eat(&Token::Comma) {
                    privileges.push(self.privilege()?);
                }
                privileges.into_iter().collect()
            }
        };
        if !self.eat_word("ON") {
            return match is_all {
                true => Ok((privileges, GrantOn::All)),
                false => Err(self.expected("ON")),
            };
        }
        let on = match self.eat_word("ALL") {
            true => GrantOn::All,
            false => GrantOn::Bucket(self.object_name("the name of a bucket, or ALL")?),
        };
        Ok((privileges, on))
    }

    /// Parses the name of a privilege.
    fn privilege(&mut self) -> SqlResult<Privilege> {
        let names = Privilege::ALL.map(Privilege::name).join(", ");
        let Token::Word(word) = self.peek() else {
            return Err(self.expected(&format!("a privilege: {names}")));
        };
        let named = Privilege::find_by_name(&word.value.to_lowercase());
        if let Some(privilege) = named.filter(|_| word.quote_style.is_none()) {
            self.advance();
            return Ok(privilege);
        }
        let ours = POSTGRES_NAMES.iter().find(|(theirs, _)| self.is(theirs));
        let mut error = self.expected(&format!("a privilege: {names}"));
        error.error.hint =
            ours.map(|(theirs, ours)| format!("the privilege for {theirs} is {ours}"));
        Err(error)
    }

    /// Parses the name of a user.
    pub(super) fn user_name(&mut self) -> SqlResult<String> {
        self.name("the name of a user")
    }

    /// Skips the optional `WITH` that PostgreSQL allows before options without parentheses.
    fn skip_with(&mut self) {
        if self.is("WITH") && self.peek_nth(1) != &Token::LParen {
            self.advance();
        }
    }

    /// Consumes `PASSWORD NULL` if it follows. Returns true if it does.
    fn eat_password_null(&mut self) -> bool {
        self.eat_words(&["PASSWORD", "NULL"]) || self.eat_words(&["ENCRYPTED", "PASSWORD", "NULL"])
    }

    /// Parses `PASSWORD '…' [VALID UNTIL '…']` or `TOKEN [VALID UNTIL '…']`; `None` if neither
    /// follows.
    fn eat_secret(&mut self) -> SqlResult<Option<SecretText>> {
        if self.eat_word("TOKEN") {
            let until_unix_ms = self.valid_until()?;
            return Ok(Some(SecretText::Token { until_unix_ms }));
        }
        if !self.eat_words(&["ENCRYPTED", "PASSWORD"]) && !self.eat_word("PASSWORD") {
            return Ok(None);
        }
        let place = self.expected("a password in single quotes");
        let password = self.eat_string().ok_or_else(|| place.clone())?;
        if password.is_empty() {
            let error = Error::new(ErrorCode::InvalidParameter, "a password is not empty")
                .with_hint("PASSWORD NULL: the user has no password");
            return Err(SqlError { error, ..place });
        }
        let until_unix_ms = self.valid_until()?.filter(|until| *until < u64::MAX);
        let password = HiddenText(password);
        Ok(Some(SecretText::Password { password, until_unix_ms }))
    }

    /// Parses an optional `VALID UNTIL '…'`.
    fn valid_until(&mut self) -> SqlResult<Option<u64>> {
        if !self.eat_words(&["VALID", "UNTIL"]) {
            return Ok(None);
        }
        let place = self.expected("a moment in UTC: '2027-01-31' or '2027-01-31 12:00:00'");
        let text = self.eat_string().ok_or_else(|| place.clone())?;
        dates::unix_ms(&text).map(Some).ok_or(place)
    }

    /// Parses `WITH (sessions_max = n, statements_max = n)`.
    fn user_limits(&mut self) -> SqlResult<UserLimits> {
        let mut limits = UserLimits::default();
        for option in self.with_options()? {
            let value = match option.name.as_str() {
                "sessions_max" => &mut limits.sessions_max,
                "statements_max" => &mut limits.statements_max,
                _ => return Err(option.unknown_error("sessions_max and statements_max")),
            };
            *value = Some(option.integer(0, LIMIT_MAX)? as u32);
        }
        Ok(limits)
    }
}

#[cfg(test)]
#[path = "users_tests.rs"]
mod tests;
