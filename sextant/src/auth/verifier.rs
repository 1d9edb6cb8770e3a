//! Password verifiers (RFC 5802, RFC 7677), from which the server checks a password without
//! storing it. They are derived from a password, or parsed from PostgreSQL's text form
//! `SCRAM-SHA-256$<iterations>:<salt>$<StoredKey>:<ServerKey>`, which clients may send in place
//! of a password.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use proto::model::users::{ScramVerifier, Secret32};
use sha2::{Digest, Sha256};

/// The number of rounds of PBKDF2 in new verifiers, the same as in PostgreSQL. A client computes
/// these rounds at each log-in, and drivers refuse much larger numbers.
pub const ITERATIONS: u32 = 4096;

/// The beginning of a verifier's text.
const SCHEME: &str = "SCRAM-SHA-256$";

/// The size of a salt, in bytes.
pub const SALT_BYTES: usize = 16;

/// Derives the verifier of a password. The computation takes milliseconds, so asynchronous callers
/// run it on a blocking thread.
pub fn derive(password: &str, salt: [u8; SALT_BYTES], iterations: u32) -> ScramVerifier {
    let salted = salted_password(prepared(password).as_bytes(), &salt, iterations);
    let client_key = hmac(&salted, &[b"Client Key"]);
    let stored_key = Sha256::digest(client_key).into();
    let server_key = hmac(&salted, &[b"Server Key"]);
    ScramVerifier {
        salt,
        iterations,
        stored_key: Secret32::new(stored_key),
        server_key: Secret32::new(server_key),
    }
}

/// Parses the text of a verifier; `None` if the text is something else, such as a password.
pub fn parse(text: &str) -> Option<ScramVerifier> {
    let (head, keys) = text.strip_prefix(SCHEME)?.split_once('$')?;
    let (iterations, salt) = head.split_once(':')?;
    let (stored_key, server_key) = keys.split_once(':')?;
    // `parse` of a number takes a sign.
    let has_digits_only = iterations.bytes().all(|byte| byte.is_ascii_digit());
    Some(ScramVerifier {
        salt: decoded(salt)?,
        iterations: iterations.parse().ok().filter(|n| has_digits_only && *n > 0)?,
        stored_key: Secret32::new(decoded(stored_key)?),
        server_key: Secret32::new(decoded(server_key)?),
    })
}

/// Returns PostgreSQL's text form of a verifier.
pub fn text(verifier: &ScramVerifier) -> String {
    let ScramVerifier { salt, iterations, stored_key, server_key } = verifier;
    let [salt, stored_key, server_key] =
        [&salt[..], stored_key.bytes(), server_key.bytes()].map(|bytes| STANDARD.encode(bytes));
    format!("{SCHEME}{iterations}:{salt}${stored_key}:{server_key}")
}

/// Returns a password in the form that is hashed: prepared by SASLprep (RFC 4013), or unchanged
/// if it has a character that SASLprep forbids. PostgreSQL and its drivers do the same.
fn prepared(password: &str) -> std::borrow::Cow<'_, str> {
    stringprep::saslprep(password).unwrap_or(std::borrow::Cow::Borrowed(password))
}

/// Computes `Hi` of RFC 5802, which is PBKDF2 with one block of output.
fn salted_password(password: &[u8], salt: &[u8], iterations: u32) -> [u8; 32] {
    // The key is hashed once, and its state is cloned for each round.
    let keyed = new_hmac(password);
    let round = |bytes: &[&[u8]]| -> [u8; 32] {
        let mut mac = keyed.clone();
        bytes.iter().for_each(|bytes| mac.update(bytes));
        mac.finalize().into_bytes().into()
    };
    let mut last = round(&[salt, &1_u32.to_be_bytes()]);
    let mut all = last;
    for _ in 1..iterations {
        last = round(&[&last]);
        all.iter_mut().zip(last).for_each(|(all, last)| *all ^= last);
    }
    all
}

/// Returns an HMAC-SHA-256 computation with a key.
fn new_hmac(key: &[u8]) -> Hmac<Sha256> {
    Hmac::<Sha256>::new_from_slice(key).expect("a key of HMAC has any length")
}

/// Returns the HMAC-SHA-256 of the concatenated parts.
pub(super) fn hmac(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    let mut mac = new_hmac(key);
    parts.iter().for_each(|part| mac.update(part));
    mac.finalize().into_bytes().into()
}

/// Decodes base64 of exactly `N` bytes; `None` for any other text.
fn decoded<const N: usize>(text: &str) -> Option<[u8; N]> {
    STANDARD.decode(text).ok()?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The salt of the example in RFC 7677.
    const SALT: &str = "W22ZaJ0SNY7soEsUEjb6gQ==";

    #[test]
    fn the_keys_of_the_example_in_rfc_7677_are_derived() {
        let verifier = derive("pencil", decoded(SALT).unwrap(), 4096);
        // `ServerSignature` and `ClientProof` of the example are checked in the tests of `scram`.
        let expected = "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=";
        assert_eq!(text(&verifier), expected);
        assert_eq!(parse(expected), Some(verifier));
    }

    #[test]
    fn passwords_are_prepared_as_clients_do_or_taken_as_they_are() {
        let salt = [7; 16];
        let same = |a, b| derive(a, salt, 2) == derive(b, salt, 2);
        assert!(same("I\u{ad}X", "IX"), "a soft hyphen is mapped to nothing");
        assert!(same("\u{2168}", "IX"), "compatibility characters");
        assert!(!same("IX", "ix"));
        assert!(!same("a\u{7}", "a"), "a forbidden character is taken as it is");
        assert!(!same("", "a"));
    }

    #[test]
    fn invalid_verifiers_are_refused() {
        let good = text(&derive("x", [1; 16], 1));
        assert!(parse(&good).is_some());
        let bad = [
            "pencil".to_owned(),
            String::new(),
            SCHEME.to_owned(),
            good.replace("SHA-256", "SHA-1"),
            good.replace("$1:", "$0:"),
            good.replace("$1:", "$+1:"),
            good.replace("$1:", "$99999999999:"),
            good.replace("=:", ":"),
            good.clone() + "x",
            good.replacen("AQ", "", 1),
        ];
        for text in bad {
            assert_eq!(parse(&text), None, "{text}");
        }
    }
}
