//! Entry points for fuzzers of the file USERS, of password verifiers, and of clients' tokens.

use proto::model::users::Users;

use super::tokens::user_of;
use super::users_file::FILE;
use super::verifier;

/// Reads `data` as the file USERS, first unchanged, then with its head, length and checksum
/// corrected.
pub fn users_file(data: &[u8]) {
    FILE.fuzz(data);
}

/// Reads `data` as a client's token, and as the text of a password verifier.
pub fn token(users: &Users, data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let _ = user_of(users, text, 0);
    if let Some(read) = verifier::parse(text) {
        let again = verifier::parse(&verifier::text(&read));
        assert_eq!(again.as_ref(), Some(&read), "a verifier is read as it is printed");
    }
}
