use proto::model::ids::{TokenId, UserId};
use proto::model::users::{Grants, HashedToken, Users};

use super::*;
use crate::auth::tokens::FreshToken;

const HOME: (&str, &str) = ("127.0.0.1:7432", "127.0.0.1:5000");
const AWAY: (&str, &str) = ("10.0.0.1:7432", "10.0.0.9:5000");

fn user(name: &str, id: u64, secret_no: u64, tokens: Vec<HashedToken>) -> Arc<User> {
    Arc::new(User {
        id: UserId(id),
        name: name.into(),
        verifier: None,
        until_unix_ms: None,
        tokens,
        grants: Grants::default(),
        limits: Default::default(),
        secret_no,
    })
}

fn known(cas: u64, users: Vec<Arc<User>>) -> Arc<Users> {
    let by_name = users.into_iter().map(|user| (user.name.clone(), user)).collect();
    Arc::new(Users { cas, by_name, ..Users::default() })
}

fn code<T: std::fmt::Debug>(refused: Result<T>) -> ErrorCode {
    refused.expect_err("a refusal").code
}

#[tokio::test]
async fn trusting_doors_let_in_clients_of_this_machine_only() {
    let doors = LoginPolicy::trust(&Env::real());
    let (home, away) = (Link::between(HOME.0, HOME.1), Link::between(AWAY.0, AWAY.1));
    assert_eq!(doors.greet(&home), Ok(LoginStep::Trusted));
    assert_eq!(doors.request_principal(&home, PortProtocol::Http, None), Ok(Principal::Trusted));
    assert_eq!(code(doors.greet(&away)), ErrorCode::BadLogin);
    assert_eq!(code(doors.request_principal(&away, PortProtocol::Http, None)), ErrorCode::BadLogin);
    assert_eq!(code(doors.greet(&Link::between(AWAY.0, HOME.1))), ErrorCode::BadLogin);
}

#[tokio::test]
async fn proofs_do_not_cross_the_network_in_clear() {
    let doors = LoginPolicy::for_users(Arc::default(), None, 10, &Env::real());
    assert_eq!(doors.greet(&Link::between(HOME.0, HOME.1)), Ok(LoginStep::Proof));
    assert_eq!(code(doors.greet(&Link::between(AWAY.0, AWAY.1))), ErrorCode::BadLogin);
}

#[tokio::test]
async fn a_token_is_a_proof_until_it_is_withdrawn() {
    let env = Env::real();
    let token = FreshToken::draw(&*env.random);
    let hashed = HashedToken { id: TokenId(3), sha256: token.sha256(), until_unix_ms: u64::MAX };
    let ended = FreshToken::draw(&*env.random);
    let past = HashedToken { id: TokenId(4), sha256: ended.sha256(), until_unix_ms: 1 };
    let users = Arc::new(NewestUsers::new(known(1, vec![user("ada", 1, 0, vec![hashed, past])])));
    let doors = LoginPolicy::for_users(Arc::clone(&users), None, 2, &env);
    let link = Link::between(HOME.0, HOME.1);
    let bearer = |token: &str| {
        doors.request_principal(
            &link,
            PortProtocol::Http,
            Some(format!("Bearer {token}").as_bytes()),
        )
    };
    let principal = bearer(&token.text(TokenId(3))).expect("a user");
    assert_eq!(principal.to_string(), "user \"ada\"");
    assert_eq!(doors.check(&principal), Ok(()));
    let lower = format!("bearer {}", token.text(TokenId(3)));
    assert!(doors.request_principal(&link, PortProtocol::Http, Some(lower.as_bytes())).is_ok());
    assert_eq!(code(doors.request_principal(&link, PortProtocol::Http, None)), ErrorCode::BadLogin);
    let basic = format!("Basic {}", token.text(TokenId(3)));
    assert_eq!(
        code(doors.request_principal(&link, PortProtocol::Http, Some(basic.as_bytes()))),
        ErrorCode::BadPassword
    );
    let late = bearer(&ended.text(TokenId(4))).expect_err("it has ended");
    assert!(late.message.contains("ended"), "{late}");
    assert_eq!(code(bearer("sxt_3_x")), ErrorCode::BadPassword);
    assert_eq!(code(bearer("sxt_3_x")), ErrorCode::TooBusy, "the third failure");
    assert!(bearer(&token.text(TokenId(3))).is_ok(), "a good token is not held up by others");
    users.learn(known(2, vec![user("ada", 1, 0, Vec::new())]));
    assert_eq!(code(doors.check(&principal)), ErrorCode::SessionEnded);
    assert!(bearer(&token.text(TokenId(3))).is_err());
}

#[tokio::test]
async fn a_session_ends_with_its_password_and_with_its_user() {
    let users = Arc::new(NewestUsers::new(known(1, vec![user("ada", 1, 5, Vec::new())])));
    let doors = LoginPolicy::for_users(Arc::clone(&users), None, 10, &Env::real());
    let link = Link::between(HOME.0, HOME.1);
    let principal = doors.admit(&user("ada", 1, 5, Vec::new()), &link);
    assert_eq!(doors.check(&principal), Ok(()));
    for (cas, others) in [
        (2, vec![user("ada", 1, 6, Vec::new())]),
        (3, vec![user("ada", 2, 5, Vec::new())]),
        (4, Vec::new()),
    ] {
        users.learn(known(cas, others));
        assert_eq!(code(doors.check(&principal)), ErrorCode::SessionEnded, "cas {cas}");
    }
    assert!(doors.check(&Principal::Trusted).is_err(), "nobody is trusted at these doors");
    assert!(doors.bad_password("ada").hint.is_some(), "there is no user at all");
}
