use proto::model::ids::UserId;
use proto::model::users::Grants;

use super::*;
use crate::auth::verifier::derive;

const FIRST: &str = "n,,n=user,r=rOprNGfwEbeRWgbNEkqO";
const SERVER_NONCE: &str = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
const NONCE: &str = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";

fn salt() -> [u8; 16] {
    STANDARD.decode("W22ZaJ0SNY7soEsUEjb6gQ==").unwrap().try_into().unwrap()
}

/// Returns the users: "user" with password "pencil", valid until a time.
fn users(until_unix_ms: Option<u64>) -> Users {
    let user = User {
        id: UserId(1),
        name: "user".into(),
        verifier: Some(derive("pencil", salt(), ITERATIONS)),
        until_unix_ms,
        tokens: Vec::new(),
        grants: Grants::default(),
        limits: Default::default(),
        secret_no: 3,
    };
    let bare = User { name: "bare".into(), id: UserId(2), verifier: None, ..user.clone() };
    let all = [user, bare].map(|user| (user.name.clone(), Arc::new(user)));
    Users { mock_key: Secret32::new([9; 32]), by_name: all.into(), ..Users::default() }
}

fn begin(
    mechanism: Mechanism,
    first: &str,
    end_point: Option<&[u8]>,
) -> Result<(Exchange, String), Failure> {
    let account = Account::of(&users(None), "user", 0);
    Exchange::begin(mechanism, first.as_bytes(), account, (end_point, SERVER_NONCE))
}

/// Returns the client's final message for a password.
fn client_final(password: &str, first: &str, answer: &str, bound: &[u8]) -> String {
    let (_, bare) = split_header(first).unwrap();
    let words: Vec<&str> = answer.split(',').collect();
    let (nonce, iterations) = (words[0], words[2][2..].parse().unwrap());
    let salt = STANDARD.decode(&words[1][2..]).unwrap().try_into().unwrap();
    let without = format!("c={},{nonce}", STANDARD.encode(bound));
    let message = format!("{bare},{answer},{without}");
    // `ClientKey` is computed here from scratch, since a verifier does not have it.
    let salted = {
        let mut last = hmac(password.as_bytes(), &[&salt as &[u8; 16], &[0, 0, 0, 1]]);
        let mut all = last;
        for _ in 1..iterations {
            last = hmac(password.as_bytes(), &[&last]);
            all.iter_mut().zip(last).for_each(|(all, last)| *all ^= last);
        }
        all
    };
    let mut key = hmac(&salted, &[b"Client Key"]);
    let stored: [u8; 32] = Sha256::digest(key).into();
    let signature = hmac(&stored, &[message.as_bytes()]);
    key.iter_mut().zip(signature).for_each(|(key, signature)| *key ^= signature);
    format!("{without},p={}", STANDARD.encode(key))
}

#[test]
fn the_example_of_rfc_7677() {
    let (exchange, answer) = begin(Mechanism::Unbound, FIRST, None).unwrap();
    assert_eq!(answer, format!("r={NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"));
    let last = format!("c=biws,r={NONCE},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=");
    assert_eq!(client_final("pencil", FIRST, &answer, b"n,,"), last);
    let (user, signature) = exchange.finish(last.as_bytes()).unwrap();
    assert_eq!((user.name.as_str(), user.secret_no), ("user", 3));
    assert_eq!(signature, "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=");
}

#[test]
fn a_wrong_password_an_unknown_user_and_one_without_a_password_are_refused_alike() {
    let attempt = |users: &Users, name, password, now| {
        let account = Account::of(users, name, now);
        let begun =
            Exchange::begin(Mechanism::Unbound, FIRST.as_bytes(), account, (None, SERVER_NONCE));
        let (exchange, answer) = begun.unwrap();
        let outcome = exchange.finish(client_final(password, FIRST, &answer, b"n,,").as_bytes());
        (answer, outcome.map(|(user, _)| user.name.clone()))
    };
    let lasting = users(None);
    assert_eq!(attempt(&lasting, "user", "pencil", 0).1, Ok("user".to_owned()));
    assert_eq!(attempt(&lasting, "user", "pencil2", 0).1, Err(Failure::Refused));
    for unknown in ["nobody", "bare"] {
        let (answer, outcome) = attempt(&lasting, unknown, "pencil", 0);
        assert_eq!(outcome, Err(Failure::Refused));
        assert!(answer.ends_with(",i=4096"), "{answer}");
        assert_eq!(answer, attempt(&lasting, unknown, "x", 0).0, "the salt of a name stays");
    }
    let (one, other) = (attempt(&lasting, "nobody", "x", 0).0, attempt(&lasting, "none", "x", 0).0);
    assert_ne!(one, other, "names have different salts");
    let ending = users(Some(1_000));
    assert_eq!(attempt(&ending, "user", "pencil", 999).1, Ok("user".to_owned()));
    assert_eq!(attempt(&ending, "user", "pencil", 1_000).1, Err(Failure::Refused));
}

#[test]
fn a_mock_verifier_cannot_be_used() {
    // Its StoredKey is no SHA-256 of a known key, and its account has no user.
    let account = Account::of(&users(None), "nobody", 0);
    assert!(account.user.is_none());
}

#[test]
fn a_proof_is_bound_to_the_connection() {
    let first = FIRST.replacen("n,,", "p=tls-server-end-point,,", 1);
    let bound = |end: &[u8]| [b"p=tls-server-end-point,,", end].concat();
    let run = |end: &[u8]| {
        let (exchange, answer) = begin(Mechanism::Bound, &first, Some(b"hash")).unwrap();
        exchange
            .finish(client_final("pencil", &first, &answer, &bound(end)).as_bytes())
            .map(|(user, _)| user.name.clone())
    };
    assert_eq!(run(b"hash"), Ok("user".to_owned()));
    assert!(matches!(run(b"other"), Err(Failure::Protocol(_))));
    assert!(matches!(run(b""), Err(Failure::Protocol(_))));
}

#[test]
fn an_offer_of_channel_binding_that_a_client_did_not_see_is_refused() {
    let y = FIRST.replacen("n,,", "y,,", 1);
    assert!(begin(Mechanism::Unbound, &y, None).is_ok(), "the server offers none");
    assert!(begin(Mechanism::Unbound, &y, Some(b"hash")).is_err(), "a downgrade");
    assert!(begin(Mechanism::Unbound, FIRST, Some(b"hash")).is_ok(), "the client cannot");
    let p = FIRST.replacen("n,,", "p=tls-server-end-point,,", 1);
    for (mechanism, end_point) in [
        (Mechanism::Unbound, Some(&b"hash"[..])),
        (Mechanism::Unbound, None),
        (Mechanism::Bound, None),
    ] {
        assert!(begin(mechanism, &p, end_point).is_err(), "{mechanism:?} {end_point:?}");
    }
    for flag in ["n,,", "y,,", "p=tls-unique,,", "p=,,"] {
        let first = FIRST.replacen("n,,", flag, 1);
        assert!(begin(Mechanism::Bound, &first, Some(b"hash")).is_err(), "{flag}");
    }
}

#[test]
fn malformed_messages_are_refused() {
    for first in [
        "",
        ",",
        ",,",
        "n,,",
        "n,,n=user",
        "n,,n=user,",
        "n,,n=user,r=",
        "n,,n=user,r=a b",
        "n,,n=user,r=\u{e9}",
        "n,,r=abc,n=user",
        "n,a=other,n=user,r=abc",
        "n,,m=x,n=user,r=abc",
        "x,,n=user,r=abc",
        "n,,n=user,s=abc",
    ] {
        assert!(begin(Mechanism::Unbound, first, None).is_err(), "{first:?}");
    }
    let invalid = Exchange::begin(
        Mechanism::Unbound,
        b"n,,n=\xff,r=abc",
        Account::of(&users(None), "user", 0),
        (None, SERVER_NONCE),
    );
    assert!(invalid.is_err());
    let good = format!("c=biws,r={NONCE},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=");
    let finish = |last: &str| {
        let (exchange, _) = begin(Mechanism::Unbound, FIRST, None).unwrap();
        exchange.finish(last.as_bytes()).is_ok()
    };
    assert!(finish(&good));
    for cut in 0..good.len() {
        assert!(!finish(&good[..cut]), "cut at {cut}");
    }
    for (from, to) in [
        ("c=biws", "c=eSws"),
        ("c=", "d="),
        ("NGfw", "NGfx"),
        (",p=d", ",p=e"),
        (",p=", ",q="),
        ("QKqO", ""),
    ] {
        if good.contains(from) {
            assert!(!finish(&good.replacen(from, to, 1)), "{from} → {to}");
        }
    }
    let extended = good.replacen(",p=", ",x=1,p=", 1);
    assert!(!finish(&extended), "an extension is a part of what the client signs");
}

#[test]
fn a_nonce_is_printable_and_new() {
    let env = proto::env::Env::real();
    let (one, other) = (nonce(&*env.random), nonce(&*env.random));
    assert!(one.len() == 32 && one != other, "{one} {other}");
    assert!(one.bytes().all(|byte| byte.is_ascii_graphic() && byte != b','));
}
