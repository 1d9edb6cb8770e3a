use super::super::values::SETTINGS_BYTES_MAX;
use super::*;

#[test]
fn settings_are_checked_kept_and_reset() {
    let mut settings = Settings::default();
    for (name, value, shown) in [
        ("consistency", "REQUEST_PLUS", "request_plus"),
        ("statement_timeout", "2s", "2000"),
        ("hedge_after", "Off", "off"),
        ("hedge_after", "30ms", "30"),
        ("client_encoding", "utf-8", "UTF8"),
        ("application_name", "psql", "psql"),
        ("my.own", "x", "x"),
        ("client_min_messages", "Debug", "debug2"),
        ("datestyle", "iso, dmy", "ISO, DMY"),
        ("extra_float_digits", " 0", "0"),
        ("timezone", "europe/berlin", "Europe/Berlin"),
        ("timezone", "-5", "<-05>+05"),
        ("timezone", "5.5", "<+05:30>-05:30"),
        ("timezone", "GMT-03:00", "GMT-03:00"),
        ("intervalstyle", "ISO_8601", "iso_8601"),
        ("synchronous_commit", "Remote_Apply", "remote_apply"),
        ("work_mem", "64MB", "64MB"),
        ("jit", "true", "on"),
        ("at_plus", " 2:0/1/5 1:3/a/7 ", "1:3/a/7 2:0/1/5"),
    ] {
        settings.set(name, Some(value), false).unwrap();
        assert_eq!(settings.show(name).unwrap(), shown, "{name}");
    }
    assert_eq!(settings.consistency(BucketId(1)), Consistency::RequestPlus);
    settings.set("consistency", None, false).unwrap();
    assert!(matches!(settings.consistency(BucketId(1)), Consistency::AtPlus(_)));
    assert_eq!(settings.consistency(BucketId(9)), Consistency::Any);
    for (name, value, state) in [
        ("consistency", "strong", "22023"),
        ("statement_timeout", "-1", "22023"),
        ("hedge_after", "0", "22023"),
        ("hedge_after", "soon", "22023"),
        ("statement_timeout", "5 days", "22023"),
        ("client_encoding", "LATIN1", "0A000"),
        ("server_version", "17", "22023"),
        ("at_plus", "nonsense", "22023"),
        ("colour", "red", "42704"),
        ("default_transaction_read_only", "perhaps", "22023"),
        ("default_transaction_isolation", "snapshot", "22023"),
        ("standard_conforming_strings", "off", "0A000"),
        ("idle_session_timeout", "-5", "22023"),
        ("client_min_messages", "loud", "22023"),
        ("datestyle", "German", "0A000"),
        ("datestyle", "tomorrow", "22023"),
        ("extra_float_digits", "4", "22023"),
        ("timezone", "Europe/Atlantis", "22023"),
        ("timezone", "PST", "22023"),
        ("timezone", "200", "22023"),
        ("intervalstyle", "german", "22023"),
        ("work_mem", "abc", "22023"),
        ("work_mem", "1kB", "22023"),
        ("jit", "perhaps", "22023"),
        ("lock_timeout", "soon", "22023"),
        ("synchronous_commit", "later", "22023"),
    ] {
        assert_eq!(
            settings.set(name, Some(value), false).unwrap_err().code.sqlstate(),
            state,
            "{name}"
        );
    }
    settings.reset();
    assert_eq!(settings.show("statement_timeout").unwrap(), "0");
    assert!(settings.all().iter().any(|(name, _)| name == "write_position"));
}

#[test]
fn a_change_ends_with_rollback_and_a_local_one_with_commit_too() {
    let shown = |settings: &Settings| {
        ["application_name", "statement_timeout", "transaction_read_only"]
            .map(|name| settings.show(name).unwrap())
    };
    let mut settings = Settings::default();
    settings.set("application_name", Some("before"), false).unwrap();
    settings.set("default_transaction_read_only", Some("1"), false).unwrap();
    for commit in [false, true] {
        settings.begin();
        settings.set("application_name", Some("kept"), false).unwrap();
        settings.set("statement_timeout", Some("1s"), true).unwrap();
        settings.set("transaction_read_only", Some("off"), false).unwrap();
        assert_eq!(shown(&settings), ["kept", "1000", "off"]);
        assert!(!settings.is_read_only());
        settings.end(commit);
        let name = if commit { "kept" } else { "before" };
        assert_eq!(shown(&settings), [name, "0", "on"]);
        assert!(settings.is_read_only());
    }
    settings.set("statement_timeout", Some("1s"), true).unwrap();
    assert_eq!(settings.show("statement_timeout").unwrap(), "0", "there is no transaction");
    settings.begin();
    settings.reset();
    settings.end(false);
    assert_eq!(settings.show("application_name").unwrap(), "kept");
}

#[test]
fn a_reset_restores_the_values_of_the_start_up_packet() {
    let given = [
        ("application_name", "pool", "psql"),
        ("default_transaction_read_only", "on", "off"),
        ("statement_timeout", "5000", "7"),
        ("hedge_after", "30", "off"),
        ("consistency", "request_plus", "any"),
        ("at_plus", "1:3/a/7", ""),
        ("my.own", "x", "y"),
    ];
    let shown = |settings: &Settings| given.map(|(name, ..)| settings.show(name).unwrap());
    let mut settings = Settings::default();
    for (name, value, _) in given {
        settings.set(name, Some(value), false).unwrap();
    }
    settings.start();
    let begin = shown(&settings);
    let change = |settings: &mut Settings| {
        for (name, _, other) in given {
            settings.set(name, Some(other), false).unwrap();
        }
        settings.set("work_mem", Some("64MB"), false).unwrap();
        shown(settings)
    };
    let changed = change(&mut settings);
    assert!(begin.iter().zip(&changed).all(|(one, other)| one != other), "{changed:?}");
    for (name, ..) in given {
        settings.set(name, None, false).unwrap();
    }
    assert_eq!(shown(&settings), begin, "RESET name");
    change(&mut settings);
    settings.reset();
    assert_eq!(shown(&settings), begin, "RESET ALL");
    assert_eq!(settings.show("work_mem").unwrap(), "4MB", "a default");
    for commit in [false, true] {
        change(&mut settings);
        settings.begin();
        settings.reset();
        settings.end(commit);
        assert_eq!(&shown(&settings), if commit { &begin } else { &changed });
    }
}

#[test]
fn a_value_that_is_refused_does_not_come_with_the_end_of_the_transaction() {
    let (mut settings, long) = (Settings::default(), "x".repeat(SETTINGS_BYTES_MAX * 2 / 3));
    settings.begin();
    settings.set("my.own", Some(&long), true).unwrap();
    assert!(settings.set("my.other", Some(&long), false).is_err());
    settings.end(true);
    assert_eq!(settings.show("my.other").ok(), Settings::default().show("my.other").ok());
}

#[test]
fn a_transaction_keeps_its_modes_over_reset_all() {
    let mut settings = Settings::default();
    settings.begin();
    settings.set("transaction_read_only", Some("on"), false).unwrap();
    settings.reset();
    assert!(settings.is_read_only());
    settings.end(true);
    assert!(!settings.is_read_only());
}
