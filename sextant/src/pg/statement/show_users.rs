//! The results of `SHOW USERS` and `SHOW GRANTS`. They show the kinds of secrets and their expiry
//! times, but never the secrets.

use proto::expr::ColumnType;
use proto::model::catalog::Catalog;
use proto::model::users::{HashedToken, Privileges, User, Users};
use proto::{Error, ErrorCode, Result};

use crate::dates;
use crate::quoted_name::quoted_name;
use crate::rows::value::Datum;

/// The columns of `SHOW USERS`.
pub(super) const USERS: [(&str, ColumnType); 6] = [
    ("user", ColumnType::Text),
    ("password", ColumnType::Text),
    ("tokens", ColumnType::Text),
    ("sessions_max", ColumnType::Int8),
    ("statements_max", ColumnType::Int8),
    ("privileges_on_all", ColumnType::Text),
];

/// The columns of `SHOW GRANTS`.
pub(super) const GRANTS: [(&str, ColumnType); 3] =
    [("user", ColumnType::Text), ("on", ColumnType::Text), ("privileges", ColumnType::Text)];

/// Returns a row for each user, ordered by name.
pub(super) fn users(users: &Users) -> Vec<Vec<Datum>> {
    let limit = |limit: Option<u32>| limit.map_or(Datum::NULL, |max| Datum::int(max.into()));
    let row = |user: &User| {
        vec![
            Datum::text(&*user.name),
            password(user),
            texts(user.tokens.iter().map(token)),
            limit(user.limits.sessions_max),
            limit(user.limits.statements_max),
            texts(names(user.grants.all)),
        ]
    };
    users.by_name.values().map(|user| row(user)).collect()
}

/// Returns a text about the password of a user; NULL without a password.
fn password(user: &User) -> Datum {
    match (&user.verifier, user.until_unix_ms) {
        (None, _) => Datum::NULL,
        (Some(_), None) => Datum::text("scram-sha-256"),
        (Some(_), Some(until)) => {
            Datum::text(format!("scram-sha-256 until {}", dates::text(until)))
        }
    }
}

/// Returns a text about a token.
fn token(token: &HashedToken) -> String {
    format!("{} until {}", token.id, dates::text(token.until_unix_ms))
}

/// Returns the names of privileges.
fn names(privileges: Privileges) -> impl Iterator<Item = String> {
    privileges.iter().map(|privilege| privilege.name().to_owned())
}

/// Returns texts as one text, separated by commas; NULL if there are none.
fn texts(texts: impl Iterator<Item = String>) -> Datum {
    let texts: Vec<String> = texts.collect();
    if texts.is_empty() { Datum::NULL } else { Datum::text(texts.join(", ")) }
}

/// Returns the privileges of one user, or of all users. For each user, the privileges on all
/// buckets come first, then those on single buckets, ordered by name.
pub(super) fn grants(
    users: &Users,
    catalog: &Catalog,
    of: Option<&str>,
) -> Result<Vec<Vec<Datum>>> {
    if let Some(name) = of.filter(|name| users.find_by_name(name).is_none()) {
        let what = format!("user \"{name}\" does not exist");
        return Err(
            Error::new(ErrorCode::UnknownUser, what).with_hint("SHOW USERS lists the users")
        );
    }
    let shown = users.by_name.values().filter(|user| of.is_none_or(|name| name == user.name));
    Ok(shown.flat_map(|user| grants_of(user, catalog)).collect())
}

/// Returns the rows with the privileges of one user.
fn grants_of(user: &User, catalog: &Catalog) -> Vec<Vec<Datum>> {
    let row = |on: Datum, privileges| vec![Datum::text(&*user.name), on, texts(names(privileges))];
    let all = Some(user.grants.all).filter(|all| !all.is_empty());
    let on_all = all.map(|all| row(Datum::text("ALL"), all));
    // A bucket that is not in the catalog is left out, with its name and its number.
    let mut on_buckets: Vec<(&str, Privileges)> = (user.grants.buckets.iter())
        .filter_map(|(id, own)| Some((&*catalog.buckets.get(id)?.name, *own)))
        .collect();
    on_buckets.sort_unstable_by_key(|(name, _)| *name);
    let on_buckets =
        on_buckets.into_iter().map(|(name, own)| row(Datum::text(quoted_name(name)), own));
    on_all.into_iter().chain(on_buckets).collect()
}
