//! The old names of renamed settings. A setting with an old name is refused, and the error
//! contains the new name.

use std::convert::Infallible;
use std::str::FromStr;

use proto::{Error, ErrorCode, Result};

/// The value of a setting that was given by its old name. Its text does not matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OldName;

impl FromStr for OldName {
    type Err = Infallible;

    fn from_str(_: &str) -> std::result::Result<Self, Infallible> {
        Ok(Self)
    }
}

/// Refuses settings under old names. `settings` lists each old value with its old and its new name.
pub fn refuse_old_names(settings: &[(Option<OldName>, &str, &str)]) -> Result<()> {
    let Some((_, old, new)) = settings.iter().find(|(given, ..)| given.is_some()) else {
        return Ok(());
    };
    let flag = |name: &str| format!("--{}", name.replace('_', "-"));
    let message = format!("setting {old} ({}) is now called {new} ({})", flag(old), flag(new));
    Err(Error::new(ErrorCode::InvalidParameter, message)
        .with_hint("change its name in the settings file or on the command line"))
}
