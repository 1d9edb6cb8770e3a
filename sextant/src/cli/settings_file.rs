//! The settings file of a role: TOML whose keys are the names of its flags, with `_` for `-`.
//!
//! A key accepts the same values as its flag, with the same limits and errors. An error contains
//! the number of the line.

use clap::builder::Resettable;
use clap::{ArgAction, Args, Command};
use proto::{Error, ErrorCode, Result};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The flags that an operator gives only at a single start. The file cannot contain them.
const FLAGS_ONLY: [&str; 3] = ["config", "force_new_cluster", "skip_epochs"];

/// Returns the error for an invalid settings file.
fn file_error(what: impl Into<String>) -> Error {
    Error::new(ErrorCode::InvalidParameter, what)
}

/// Parses the text of a settings file.
pub fn read<A: Args>(text: &str) -> Result<A> {
    // Environment variables are not part of the file, and must not be read here.
    let command = A::augment_args(command()).mut_args(|arg| arg.env(Resettable::Reset));
    let table = DeTable::parse(text).map_err(|error| file_error(error.to_string().trim_end()))?;
    let mut all = Vec::new();
    for (key, value) in table.get_ref() {
        let at = |error: Error| {
            let line = text[..key.span().start].matches('\n').count() + 1;
            error.context(format!("line {line}"))
        };
        all.extend(flags(&command, key.get_ref(), value.get_ref()).map_err(at)?);
    }
    let found = command.try_get_matches_from(all);
    found.and_then(|found| A::from_arg_matches(&found)).map_err(|error| first_line(&error))
}

/// Returns a command without flags, for the parser of the flags.
fn command() -> Command {
    Command::new("file").no_binary_name(true).disable_help_flag(true)
}

/// Returns the command-line flags for a key, one for each of its values.
fn flags(all: &Command, key: &str, value: &DeValue<'_>) -> Result<Vec<String>> {
    let flag = key.replace('_', "-");
    let is_setting = !key.contains('-') && !FLAGS_ONLY.contains(&key);
    let mut known = all.get_arguments().filter(|_| is_setting);
    let Some(argument) = known.find(|known| known.get_long() == Some(&flag)) else {
        return Err(file_error(format!("there is no setting {key:?}"))
            .with_hint("docs/configuration.md and `sextant ROLE --help` list the settings"));
    };
    let takes_many = matches!(argument.get_action(), ArgAction::Append);
    let values = match value {
        DeValue::Array(items) => items.iter().map(Spanned::get_ref).map(flag_value).collect(),
        one => flag_value(one).map(|word| vec![word]),
    };
    let values: Option<Vec<_>> = values;
    let values = values.filter(|values| takes_many || values.len() == 1).ok_or_else(|| {
        let list = if takes_many { ", or a list of these" } else { "" };
        file_error(format!("setting {key} takes a text, a whole number, or true or false{list}"))
    })?;
    let flags: Vec<_> = values.iter().map(|value| format!("--{flag}={value}")).collect();
    let alone = command().arg(argument.clone());
    alone.try_get_matches_from(&flags).map_err(|error| first_line(&error))?;
    Ok(flags)
}

/// Returns a value of the file as the text of a flag's value; `None` for a value that no flag can
/// have.
fn flag_value(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Boolean(is) => Some(is.to_string()),
        DeValue::Integer(number) => {
            let number = i64::from_str_radix(number.as_str(), number.radix()).ok()?;
            Some(number.to_string())
        }
        _ => None,
    }
}

/// Returns the first line of a command line error; the following lines are about `--help`.
fn first_line(error: &clap::Error) -> Error {
    let text = error.to_string();
    let first = text.lines().next().unwrap_or_default();
    file_error(first.strip_prefix("error: ").unwrap_or(first))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::role::Args as RoleArgs;

    #[test]
    fn errors_name_the_line_and_problem() {
        for (text, line, what) in [
            ("id = 1\nstatement_max = 5", 2, "there is no setting \"statement_max\""),
            ("id = 1\n\nstatements_max = 0", 3, "'0' for '--statements-max"),
            ("statements_max = 'many'", 1, "'many' for '--statements-max"),
            ("memory_mb = 8", 1, "'8' for '--memory-mb"),
            ("memory_mb = 99999999999999999999", 1, "setting memory_mb takes"),
            ("insecure = 'perhaps'", 1, "'perhaps' for '--insecure"),
            ("auth = 'both'", 1, "'both' for '--auth"),
            ("id = [1, 2]", 1, "setting id takes"),
            ("auth = []", 1, "setting auth takes"),
            ("id = 1.5", 1, "setting id takes"),
            ("coordinators = [[1]]", 1, "or a list of these"),
            ("zone = { a = 1 }", 1, "setting zone takes"),
            ("skip_epochs = true", 1, "there is no setting \"skip_epochs\""),
            ("tls-key = 'a'", 1, "there is no setting \"tls-key\""),
            ("id = 1\nid = 2", 2, "duplicate key"),
            ("id == 1", 1, "id == 1"),
        ] {
            let error = read::<RoleArgs>(text).expect_err(text).to_string();
            assert!(error.contains(&format!("line {line}")), "{text}: {error}");
            assert!(error.contains(what), "{text}: {error}");
        }
    }

    #[test]
    fn keys_accept_values_of_flags() {
        let text = "id = 0x10\ncoordinators = ['1=a:1', '2=b:1,3=c:1']\nzone = ''\ninsecure = true";
        let found = format!("{:?}", read::<RoleArgs>(text).expect("good"));
        for part in ["id: Some(16)", "[\"1=a:1\", \"2=b:1\", \"3=c:1\"]", "zone: Some(\"\")"] {
            assert!(found.contains(part), "{part}: {found}");
        }
        assert!(found.contains("insecure: Some(true)"), "{found}");
        assert!(read::<RoleArgs>("").is_ok());
    }
}
