//! Parses options in parentheses: `name = value, …`.

use std::collections::BTreeSet;

use proto::{Error, ErrorCode};
use sqlparser::tokenizer::Token;

use super::cursor::Cursor;
use crate::sql::error::{SqlError, SqlResult};
use crate::sql::units::{bytes, duration_ms};

/// The value of an option.
pub(super) enum OptionValue {
    Integer(u64),
    Boolean(bool),
    Text(String),
}

/// An option and its position in the text.
pub(super) struct WithOption {
    pub(super) name: String,
    value: OptionValue,
    place: SqlError,
}

impl WithOption {
    /// Returns an error at the position of the option.
    fn error(&self, code: ErrorCode, message: String) -> SqlError {
        SqlError { error: Error::new(code, message), position: self.place.position }
    }

    /// Returns the value as an integer within a range.
    pub(super) fn integer(&self, low: u64, high: u64) -> SqlResult<u64> {
        match self.value {
            OptionValue::Integer(value) if (low..=high).contains(&value) => Ok(value),
            _ => Err(self.error(
                ErrorCode::InvalidParameter,
                format!("{} must be a number from {low} to {high}", self.name),
            )),
        }
    }

    /// Returns the value as a duration in milliseconds, up to a maximum.
    pub(super) fn duration_ms(&self, ms_max: u64) -> SqlResult<u64> {
        let parsed = match &self.value {
            OptionValue::Integer(ms) => Some(*ms),
            OptionValue::Text(text) => duration_ms(text),
            OptionValue::Boolean(_) => None,
        };
        parsed.filter(|ms| *ms <= ms_max).ok_or_else(|| {
            let hours = ms_max / 3_600_000;
            let what =
                format!("{} must be a duration such as '10min', of at most {hours} h", self.name);
            self.error(ErrorCode::InvalidParameter, what)
        })
    }

    /// Returns the value as a number of bytes.
    pub(super) fn bytes(&self) -> SqlResult<u64> {
        let parsed = match &self.value {
            OptionValue::Integer(bytes) => Some(*bytes),
            OptionValue::Text(text) => bytes(text),
            OptionValue::Boolean(_) => None,
        };
        parsed.ok_or_else(|| {
            let what = format!("{} must be a size such as '10GB', or a number of bytes", self.name);
            self.error(ErrorCode::InvalidParameter, what)
        })
    }

    /// Returns the value as a name.
    pub(super) fn text(&self) -> SqlResult<String> {
        match &self.value {
            OptionValue::Text(text) => Ok(text.clone()),
            OptionValue::Integer(_) | OptionValue::Boolean(_) => Err(self.error(
                ErrorCode::InvalidParameter,
                format!("{} must be a name in quotes", self.name),
            )),
        }
    }

    pub(super) fn boolean(&self) -> SqlResult<bool> {
        match self.value {
            OptionValue::Boolean(value) => Ok(value),
            OptionValue::Integer(value @ (0 | 1)) => Ok(value == 1),
            OptionValue::Integer(_) | OptionValue::Text(_) => Err(self.error(
                ErrorCode::InvalidParameter,
                format!("{} must be true or false", self.name),
            )),
        }
    }

    /// Returns the value as one of these names.
    pub(super) fn one_of<T: Copy>(&self, names: &[(&str, T)]) -> SqlResult<T> {
        let given = match &self.value {
            OptionValue::Text(text) => text.to_lowercase(),
            OptionValue::Integer(_) | OptionValue::Boolean(_) => String::new(),
        };
        if let Some((_, value)) = names.iter().find(|(name, _)| *name == given) {
            return Ok(*value);
        }
        let quoted: Vec<_> = names.iter().map(|(name, _)| format!("'{name}'")).collect();
        let what = format!("{} must be one of {}", self.name, quoted.join(", "));
        Err(self.error(ErrorCode::InvalidParameter, what))
    }

    /// Returns the error for an option that is given by its old name.
    pub(super) fn renamed_error(&self, new: &str) -> SqlError {
        let mut error = self
            .error(ErrorCode::UnknownSetting, format!("option {} is now called {new}", self.name));
        error.error.hint = Some(format!("write {new} instead of {}", self.name));
        error
    }

    /// Returns the error for an unknown option.
    pub(super) fn unknown_error(&self, there_are: &str) -> SqlError {
        let message = format!("there is no option {}", self.name);
        let mut error = self.error(ErrorCode::UnknownSetting, message);
        error.error.hint = Some(format!("the options are {there_are}"));
        error
    }
}

impl Cursor<'_> {
    /// Parses `WITH (name = value, …)`, if it follows.
    pub(super) fn with_options(&mut self) -> SqlResult<Vec<WithOption>> {
        match self.eat_word("WITH") {
            true => self.distinct_options(),
            false => Ok(Vec::new()),
        }
    }

    /// Parses `(name = value, …)`. Returns an error if a name is repeated.
    pub(super) fn distinct_options(&mut self) -> SqlResult<Vec<WithOption>> {
        let mut names = BTreeSet::new();
        self.list(|cursor| {
            let option = cursor.with_option()?;
            match names.insert(option.name.clone()) {
                true => Ok(option),
                false => {
                    let message = format!("option {} is given twice", option.name);
                    Err(option.error(ErrorCode::Syntax, message))
                }
            }
        })
    }

    /// Parses `name = value`. A name alone means `true`.
    pub(super) fn with_option(&mut self) -> SqlResult<WithOption> {
        let place = self.expected("an option");
        let name = self.name("the name of an option")?;
        if !self.eat(&Token::Eq) {
            return Ok(WithOption { name, value: OptionValue::Boolean(true), place });
        }
        let value = match () {
            () if self.eat_word("TRUE") || self.eat_word("ON") => OptionValue::Boolean(true),
            () if self.eat_word("FALSE") || self.eat_word("OFF") => OptionValue::Boolean(false),
            () => match self.eat_string() {
                Some(text) => OptionValue::Text(text),
                None => OptionValue::Integer(self.integer("a number, true, false or a string")?),
            },
        };
        Ok(WithOption { name, value, place })
    }
}
