use super::super::parse;
use super::*;

fn one(sql: &str) -> UserStatement {
    let parsed = parse(sql).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    match &parsed[..] {
        [only] => match &only.statement {
            Statement::User(user) => user.clone(),
            other => panic!("{other:?}"),
        },
        _ => panic!("{} statements", parsed.len()),
    }
}

fn set(privileges: &[Privilege]) -> Privileges {
    privileges.iter().copied().collect()
}

fn password(text: &str, until_unix_ms: Option<u64>) -> SecretText {
    SecretText::Password { password: HiddenText(text.into()), until_unix_ms }
}

#[test]
fn users_are_made_with_a_password_a_token_or_neither() {
    let create =
        |name: &str, secret, limits| UserStatement::Create { name: name.into(), secret, limits };
    let none = UserLimits::default();
    assert_eq!(one("CREATE USER Ada"), create("ada", None, none));
    assert_eq!(one("create user \"Ada L\" password NULL"), create("Ada L", None, none));
    let with = Some(password("it's", None));
    for sql in [
        "CREATE USER ada PASSWORD 'it''s'",
        "CREATE USER ada WITH PASSWORD 'it''s'",
        "CREATE USER ada WITH ENCRYPTED PASSWORD 'it''s'",
        "CREATE USER ada PASSWORD 'it''s' VALID UNTIL 'infinity'",
    ] {
        assert_eq!(one(sql), create("ada", with.clone(), none));
    }
    let limits = UserLimits { sessions_max: Some(4), statements_max: Some(0) };
    let until = Some(1_801_353_600_000);
    assert_eq!(
        one(
            "CREATE USER ada PASSWORD 'x' VALID UNTIL '2027-01-31' WITH (sessions_max = 4, statements_max = 0);"
        ),
        create("ada", Some(password("x", until)), limits)
    );
    let limits = UserLimits { sessions_max: Some(1), statements_max: None };
    assert_eq!(one("CREATE USER ada WITH (sessions_max = 1)"), create("ada", None, limits));
    for (sql, until_unix_ms) in [
        ("CREATE USER ada TOKEN", None),
        ("CREATE USER ada TOKEN VALID UNTIL '2027-01-31'", until),
        ("CREATE USER ada TOKEN VALID UNTIL 'infinity'", Some(u64::MAX)),
    ] {
        assert_eq!(one(sql), create("ada", Some(SecretText::Token { until_unix_ms }), none));
    }
}

#[test]
fn users_are_changed_and_dropped() {
    let alter = |change| UserStatement::Alter { name: "ada".into(), change };
    let verifier = "SCRAM-SHA-256$4096:c2FsdA==$c3RvcmVk:c2VydmVy";
    assert_eq!(
        one(&format!("ALTER USER ada PASSWORD '{verifier}'")),
        alter(AlterUser::Secret(password(verifier, None)))
    );
    assert_eq!(one("ALTER USER ada WITH PASSWORD NULL"), alter(AlterUser::DropPassword));
    let token = AlterUser::Secret(SecretText::Token { until_unix_ms: None });
    assert_eq!(one("ALTER USER ada TOKEN"), alter(token));
    assert_eq!(one("ALTER USER ada DROP TOKEN 7"), alter(AlterUser::DropToken(TokenId(7))));
    let limits = UserLimits { sessions_max: None, statements_max: Some(9) };
    assert_eq!(one("ALTER USER ada WITH (statements_max = 9)"), alter(AlterUser::Limits(limits)));
    let drop = |if_exists| UserStatement::Drop { name: "ada".into(), if_exists };
    assert_eq!(one("DROP USER ada"), drop(false));
    assert_eq!(one("DROP USER IF EXISTS ada"), drop(true));
}

#[test]
fn privileges_are_granted_on_a_bucket_or_on_all() {
    use Privilege::{Admin, Scan, Write};
    let grant = |privileges: &[Privilege], on| UserStatement::Grant {
        user: "ada".into(),
        privileges: set(privileges),
        on,
    };
    let bucket = |name: &str| GrantOn::Bucket(name.into());
    assert_eq!(one("GRANT scan, Write ON public.B TO Ada"), grant(&[Scan, Write], bucket("b")));
    assert_eq!(one("GRANT scan ON ALL TO ada"), grant(&[Scan], GrantOn::All));
    assert_eq!(one("GRANT scan ON \"all\" TO ada"), grant(&[Scan], bucket("all")));
    for sql in ["GRANT ALL TO ada", "GRANT ALL PRIVILEGES ON ALL TO ada", "GRANT ALL ON ALL TO ada"]
    {
        assert_eq!(one(sql), grant(&[Admin], GrantOn::All));
    }
    assert_eq!(one("GRANT ALL ON b TO ada"), grant(&[Admin], bucket("b")));
    let revoke = |privileges: &[Privilege], on| UserStatement::Revoke {
        user: "ada".into(),
        privileges: set(privileges),
        on,
    };
    assert_eq!(one("REVOKE scan ON b FROM ada"), revoke(&[Scan], bucket("b")));
    assert_eq!(one("REVOKE ALL FROM ada"), revoke(&Privilege::ALL, GrantOn::All));
    assert_eq!(one("REVOKE ALL ON b FROM ada"), revoke(&Privilege::ALL, bucket("b")));
}

#[test]
fn what_is_written_otherwise_is_refused_with_a_hint() {
    let hint = |sql: &str| {
        let error = parse(sql).unwrap_err().error;
        error.hint.unwrap_or_else(|| panic!("{sql}: {}", error.message))
    };
    for sql in ["CREATE ROLE ada LOGIN", "ALTER ROLE ada LOGIN", "DROP ROLE ada", "CREATE GROUP g"]
    {
        assert!(hint(sql).contains("USER"), "{sql}");
    }
    assert_eq!(hint("GRANT SELECT ON b TO ada"), "the privilege for SELECT is scan");
    assert!(hint("CREATE USER ada PASSWORD ''").contains("PASSWORD NULL"));
    for sql in [
        "CREATE USER ada SUPERUSER",
        "CREATE USER ada PASSWORD",
        "CREATE USER ada PASSWORD 'x' TOKEN",
        "CREATE USER ada TOKEN VALID UNTIL 'soon'",
        "CREATE USER ada WITH (sessions_max = -1)",
        "CREATE USER ada WITH (sessions_max = 1000001)",
        "CREATE USER ada WITH (sessions = 1)",
        "ALTER USER ada",
        "ALTER USER ada DROP TOKEN",
        "GRANT scan TO ada",
        "GRANT scan ON b",
        "GRANT scan ON b TO ada WITH GRANT OPTION",
        "GRANT ON b TO ada",
        "GRANT \"scan\" ON b TO ada",
        "REVOKE scan ON b TO ada",
    ] {
        assert!(parse(sql).is_err(), "{sql}");
    }
}

/// An error must not quote a secret, since clients log errors.
#[test]
fn no_error_quotes_a_secret_and_no_statement_prints_one() {
    let wrong = [
        "CREATE USER ada PASSWORD 'hunter2' VALID UNTIL 'hunter2'",
        "CREATE USER ada PASSWORD 'x' 'hunter2'",
        "CREATE USER ada 'hunter2'",
        "CREATE USER 'hunter2'",
        "CREATE USER ada PASSWORD hunter2",
        "CREATE USER ada PASSWORD \"hunter2\"",
        "CREATE USER ada PASSWORD $$x$$ $$hunter2$$",
        "CREATE USER ada PASSWORD = 'hunter2'",
        "CREATE USER ada PASSWORD 'x' WITH (sessions_max = 'hunter2')",
        "ALTER USER ada SET password 'hunter2'",
        "ALTER USER ada TOKEN 'hunter2'",
        "ALTER USER ada PASSWORD E'hunter2' x",
        "ALTER USER ada PASSWORD 'hunter2",
        "ALTER USER ada PASSWORD $$hunter2",
        "ALTER USER ada PASSWORD U&'\\hunter2'",
        "ALTER USER ada PASSWORD 'x'; ALTER USER ada 'hunter2'",
    ];
    for sql in wrong {
        let error = parse(sql).expect_err(sql);
        let printed = format!("{error:?} {}", error.error);
        assert!(!printed.contains("hunter2"), "{sql}: {printed}");
    }
    let printed = format!("{:?}", parse("CREATE USER ada PASSWORD 'hunter2'").unwrap());
    assert!(printed.contains("ada") && !printed.contains("hunter2"), "{printed}");
}
