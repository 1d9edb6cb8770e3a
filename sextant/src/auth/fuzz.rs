//! Entry points for fuzzers: the file of users, verifiers, and tokens of clients.

use proto::model::users::Users;

use super::tokens::user_of;
use super::users_file;
use super::verifier;

/// Reads the file USERS, first unchanged, then with its head, its length and its checksum corrected.
pub fn kept_users(data: &[u8]) {
    let _ = users_file::decode(data);
    let Some(body) = data.get(users_file::ENVELOPE.bytes_before()..) else { return };
    if let Ok(read) = users_file::decode(&users_file::ENVELOPE.seal(body)) {
        users_file::encode(&read).expect("users that were read can be encoded");
    }
}

/// Reads a token of a client, and the text of a verifier.
pub fn token(users: &Users, data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let _ = user_of(users, text, 0);
    if let Some(read) = verifier::parse(text) {
        let again = verifier::parse(&verifier::print(&read));
        assert_eq!(again.as_ref(), Some(&read), "a verifier is read as it is printed");
    }
}
