//! Functions that read the secrets of the command line. Secrets come from a file, the environment
//! or the terminal, and never from an argument, which any user of the machine could read.

use std::io::{BufRead, IsTerminal, Write};
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use proto::env::{Env, Random};
use proto::{Error, ErrorCode, Result};
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};

use crate::tls::read_private;

/// Reads the first line of a file that only its owner may read.
pub(super) async fn from_file(env: &Env, path: &Path) -> Result<String> {
    let (its_env, its_path) = (env.clone(), path.to_owned());
    let bytes = env.blocking(move || read_private(&*its_env.fs, &its_path)).await?;
    let bad =
        |what: &str| Error::new(ErrorCode::InvalidParameter, format!("{}: {what}", path.display()));
    let text = String::from_utf8(bytes).map_err(|_| bad("the file is not UTF-8"))?;
    let line = text.lines().next().unwrap_or_default();
    match line.is_empty() {
        true => Err(bad("the file has no password in its first line")),
        false => Ok(line.to_owned()),
    }
}

/// Returns the value of an environment variable; `None` if it is unset or empty.
pub(super) fn from_environment(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Asks for a secret at the terminal, without showing the answer; `None` if there is no terminal.
pub(super) fn from_terminal(prompt: &str) -> Result<Option<String>> {
    let input = std::io::stdin();
    if !input.is_terminal() {
        return Ok(None);
    }
    eprint!("{prompt}");
    std::io::stderr().flush()?;
    let shown = tcgetattr(&input).map_err(std::io::Error::from)?;
    let mut hidden = shown.clone();
    hidden.local_modes.remove(LocalModes::ECHO);
    tcsetattr(&input, OptionalActions::Now, &hidden).map_err(std::io::Error::from)?;
    let mut line = String::new();
    let read = input.lock().read_line(&mut line);
    tcsetattr(&input, OptionalActions::Now, &shown).map_err(std::io::Error::from)?;
    eprintln!();
    read?;
    Ok(Some(line.trim_end_matches(['\r', '\n']).to_owned()))
}

/// Returns a random password of 144 bits.
pub(super) fn draw(random: &dyn Random) -> String {
    let bytes: Vec<u8> = (0..3).flat_map(|_| random.next_u64().to_be_bytes()).take(18).collect();
    URL_SAFE_NO_PAD.encode(bytes)
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[tokio::test]
    #[allow(clippy::disallowed_methods, reason = "a test makes files with modes")]
    async fn only_a_private_secret_file_is_read() {
        let (env, dir) = (Env::real(), tempfile::tempdir().unwrap());
        let path = dir.path().join("password");
        for (text, mode, expected) in [
            ("pencil\n", 0o600, Some("pencil")),
            ("pencil\r\nmore", 0o400, Some("pencil")),
            (" a b ", 0o600, Some(" a b ")),
            ("\n", 0o600, None),
            ("", 0o600, None),
            ("pencil\n", 0o640, None),
            ("pencil\n", 0o604, None),
        ] {
            std::fs::remove_file(&path).ok();
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
            let read = from_file(&env, &path).await;
            let shown = read.as_deref().map_err(ToString::to_string);
            assert_eq!(shown.ok(), expected, "{text:?} {mode:o}");
            if let Err(error) = read {
                assert!(
                    error.to_string().contains("password") && !error.to_string().contains("pencil")
                );
            }
        }
    }

    #[test]
    fn a_drawn_password_has_no_characters_to_quote() {
        let random = Env::real().random;
        let (one, other) = (draw(&*random), draw(&*random));
        assert!(one.len() == 24 && one != other);
        assert!(one.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)));
    }
}
