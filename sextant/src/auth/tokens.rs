//! Tokens for log-ins: `sxt_<number in hex>_<32 random bytes in base64url>`. The number
//! identifies the token. The random bytes are the secret; only their SHA-256 is stored, which is
//! safe without a slow hash, because 256 random bits cannot be guessed.

use std::fmt;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use proto::env::Random;
use proto::model::ids::TokenId;
use proto::model::users::{Secret32, User, Users};
use sha2::{Digest, Sha256};

/// The beginning of each token's text. Tools that search texts for leaked secrets recognize
/// tokens by it.
const PREFIX: &str = "sxt_";

/// The maximum length of a token's text, in bytes.
const TEXT_BYTES_MAX: usize = 80;

/// The random bytes of a new token that has no number yet.
pub struct FreshToken([u8; 32]);

impl FreshToken {
    /// Draws the random bytes.
    pub fn draw(random: &dyn Random) -> Self {
        let mut bytes = [0; 32];
        for word in bytes.chunks_exact_mut(8) {
            word.copy_from_slice(&random.next_u64().to_be_bytes());
        }
        Self(bytes)
    }

    /// Returns the hash of the random bytes, for commands and the replicated state.
    pub fn sha256(&self) -> Secret32 {
        Secret32::new(Sha256::digest(self.0).into())
    }

    /// Returns the token's text, with its number.
    pub fn text(&self, id: TokenId) -> String {
        format!("{PREFIX}{:x}_{}", id.0, URL_SAFE_NO_PAD.encode(self.0))
    }
}

impl fmt::Debug for FreshToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FreshToken(…)")
    }
}

/// The reason why a token is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenRefusal {
    /// The token does not exist.
    Unknown,
    /// The token has expired.
    Ended,
}

/// Returns the user and the number of a token if the token is valid at a time; otherwise the
/// reason of the refusal.
pub fn user_of<'a>(
    users: &'a Users,
    text: &str,
    now_unix_ms: u64,
) -> Result<(&'a Arc<User>, TokenId), TokenRefusal> {
    let (id, hash) = parsed(text).ok_or(TokenRefusal::Unknown)?;
    let (user, token) = users.token(id).ok_or(TokenRefusal::Unknown)?;
    match token.sha256.matches(&hash) {
        false => Err(TokenRefusal::Unknown),
        true if now_unix_ms >= token.until_unix_ms => Err(TokenRefusal::Ended),
        true => Ok((user, id)),
    }
}

/// Returns the number of a token and the hash of its random bytes; `None` if the text is not a
/// token.
fn parsed(text: &str) -> Option<(TokenId, [u8; 32])> {
    if text.len() > TEXT_BYTES_MAX {
        return None;
    }
    let (id, random) = text.strip_prefix(PREFIX)?.split_once('_')?;
    // `from_str_radix` takes a sign and capital letters.
    let is_hex = id.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let id = u64::from_str_radix(id, 16).ok().filter(|_| is_hex)?;
    let random: [u8; 32] = URL_SAFE_NO_PAD.decode(random).ok()?.try_into().ok()?;
    Some((TokenId(id), Sha256::digest(random).into()))
}

#[cfg(test)]
mod tests {
    use proto::env::Env;
    use proto::model::ids::UserId;
    use proto::model::users::{Grants, HashedToken};

    use super::*;

    fn user(name: &str, id: u64, tokens: Vec<HashedToken>) -> (String, Arc<User>) {
        let user = User {
            id: UserId(id),
            name: name.into(),
            verifier: None,
            until_unix_ms: None,
            tokens,
            grants: Grants::default(),
            limits: Default::default(),
            secret_no: 0,
        };
        (name.to_owned(), Arc::new(user))
    }

    #[test]
    fn a_token_is_valid_until_it_expires() {
        let random = Env::real().random;
        let (one, two) = (FreshToken::draw(&*random), FreshToken::draw(&*random));
        let hashed = |token: &FreshToken, id, until_unix_ms| HashedToken {
            id: TokenId(id),
            sha256: token.sha256(),
            until_unix_ms,
        };
        let ada = user("ada", 1, vec![hashed(&one, 7, 500), hashed(&two, 0xab, 1_000)]);
        let users = Users { by_name: [ada, user("bob", 2, Vec::new())].into(), ..Users::default() };
        let found =
            |text: &str, now| user_of(&users, text, now).map(|(user, id)| (user.id.0, id.0));
        assert_eq!(found(&one.text(TokenId(7)), 499), Ok((1, 7)));
        assert_eq!(found(&one.text(TokenId(7)), 500), Err(TokenRefusal::Ended));
        assert_eq!(found(&two.text(TokenId(0xab)), 999), Ok((1, 0xab)));
        let text = two.text(TokenId(0xab));
        assert!(text.starts_with("sxt_ab_") && text.len() == 7 + 43, "{text}");
        let wrong = [
            two.text(TokenId(7)),
            two.text(TokenId(8)),
            String::new(),
            "sxt_".to_owned(),
            "sxt_ab".to_owned(),
            "sxt_ab_".to_owned(),
            text.replace("sxt_ab", "sxt_AB"),
            text.replace("sxt_ab", "sxt_+ab"),
            text.replace("sxt_ab", "sxt_"),
            text.clone() + "=",
            text.clone() + "A",
            text[..text.len() - 1].to_owned(),
            "x".repeat(1 << 20),
        ];
        for text in wrong {
            assert_eq!(found(&text, 0), Err(TokenRefusal::Unknown), "{text:.100}");
        }
        assert!(!format!("{one:?}").contains(&one.text(TokenId(7))[6..]));
    }
}
