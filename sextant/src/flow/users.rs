//! The limits of sessions and statements of each user, so that one user cannot use all of them. A
//! *place* is the permission for one session or statement.
//!
//! A session has its place from the log-in to its end. A statement, a gRPC call or an HTTP
//! request has a place from its beginning to the end of its answer. A statement that ends a
//! transaction is counted but never refused, since it releases resources for which others may
//! wait. An eighth of all places for statements is for administrators, so that an administrator
//! can always inspect the cluster and stop others. A quarter of the places is for SQL statements,
//! since a gRPC connection has many calls at once, and each takes a place before its request has
//! arrived.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use proto::lock::lock;
use proto::model::ids::UserId;
use proto::model::users::{Privilege, User};
use proto::{Error, ErrorCode, Result};

use super::limits::ClientLimits;
use super::refusals::{Limit, Refusals};

/// The running sessions and statements of users, with their limits. Clones share the counts.
#[derive(Clone)]
pub struct UserPlaces(Arc<Shared>);

/// The counts of sessions and statements, shared by all clones.
struct Shared {
    limits: ClientLimits,
    refusals: Refusals,
    table: Mutex<Table>,
}

/// A kind of work that counts as a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// A statement of an SQL session.
    Statement,
    /// A statement that ends a transaction, which is never refused.
    EndOfTransaction,
    /// A gRPC call or an HTTP request.
    Call,
}

/// The running statements, and the sessions and statements of each user.
#[derive(Default)]
struct Table {
    statements: u32,
    /// The number of gRPC calls and HTTP requests among the running statements.
    calls: u32,
    /// The counts of each user that has a session or a statement.
    by_user: BTreeMap<UserId, Counts>,
}

/// The numbers of sessions and statements of one user.
#[derive(Clone, Copy, Default)]
struct Counts {
    sessions: u32,
    statements: u32,
}

impl Table {
    /// Subtracts sessions and statements that have ended from the counts of a user.
    fn release(&mut self, user: UserId, places: Counts) {
        let Some(counts) = self.by_user.get_mut(&user) else { return };
        counts.sessions -= places.sessions;
        counts.statements -= places.statements;
        if counts.sessions == 0 && counts.statements == 0 {
            self.by_user.remove(&user);
        }
    }

    /// Returns the counts of a user.
    fn of(&self, user: UserId) -> Counts {
        self.by_user.get(&user).copied().unwrap_or_default()
    }
}

/// The permission for one session. It is given back when this value is dropped.
pub struct SessionPlace {
    places: UserPlaces,
    user: UserId,
}

/// The permission for one statement, call or request. It is given back when this value is
/// dropped.
pub struct StatementPlace {
    places: UserPlaces,
    user: Option<UserId>,
    work: Work,
}

/// Returns how many of `places` sessions or statements are reserved for administrators.
pub fn reserved(places: usize) -> usize {
    places / 8
}

/// Returns true if a user may use the places that are reserved for administrators.
pub fn is_administrator(user: &User) -> bool {
    user.grants.all.allow(Privilege::Admin)
}

impl UserPlaces {
    /// Returns a counter with these limits and nothing running.
    pub fn new(limits: ClientLimits, refusals: Refusals) -> Self {
        Self(Arc::new(Shared { limits, refusals, table: Mutex::default() }))
    }

    /// Counts a new session of a user. Returns an error if the user has reached a limit.
    pub fn session(&self, user: &User) -> Result<SessionPlace> {
        let own = user.limits.sessions_max;
        let most = own.unwrap_or(self.0.limits.user_sessions_max);
        let mut table = lock(&self.0.table);
        let count = table.of(user.id).sessions;
        if count >= most {
            let what = format!("user {:?} has {count} sessions at this router", user.name);
            return Err(self.user_limit_error(
                Limit::UserSessions,
                what,
                ("sessions_max", own, most),
            ));
        }
        table.by_user.entry(user.id).or_default().sessions += 1;
        Ok(SessionPlace { places: self.clone(), user: user.id })
    }

    /// Counts new work of a user, or of a trusted client (`None`). Returns an error if a limit is
    /// reached.
    pub fn statement(&self, user: Option<&User>, work: Work) -> Result<StatementPlace> {
        let limits = &self.0.limits;
        let ends = work == Work::EndOfTransaction;
        let calls_max = (limits.statements_max - limits.statements_max / 4).max(1);
        let mut table = lock(&self.0.table);
        let open = match user.is_none_or(is_administrator) {
            true => limits.statements_max,
            false => limits.statements_max - reserved(limits.statements_max as usize) as u32,
        };
        if table.statements >= open && !ends {
            let mut what = format!("{} statements run at this router", table.statements);
            if table.statements < limits.statements_max {
                what += ", and its other places are for administrators";
            }
            return Err(self.0.refusals.refuse(Limit::Statements, ErrorCode::TooBusy, what));
        }
        if work == Work::Call && table.calls >= calls_max {
            let what = format!(
                "{} calls run at this router, and its other places are for SQL",
                table.calls
            );
            return Err(self.0.refusals.refuse(Limit::Statements, ErrorCode::TooBusy, what));
        }
        if let Some(user) = user {
            let own = user.limits.statements_max;
            let most = own.unwrap_or(limits.user_statements_max);
            let count = table.of(user.id).statements;
            if count >= most && !ends {
                let what = format!("user {:?} runs {count} statements at this router", user.name);
                let limit = ("statements_max", own, most);
                return Err(self.user_limit_error(Limit::UserStatements, what, limit));
            }
            table.by_user.entry(user.id).or_default().statements += 1;
        }
        table.statements += 1;
        table.calls += u32::from(work == Work::Call);
        Ok(StatementPlace { places: self.clone(), user: user.map(|user| user.id), work })
    }

    /// Returns the number of running statements.
    #[cfg(test)]
    pub fn running(&self) -> u32 {
        lock(&self.0.table).statements
    }

    /// Counts a refusal and returns its error. The hint says whether the user's individual limit
    /// or a setting is reached.
    fn user_limit_error(
        &self,
        limit: Limit,
        what: String,
        (name, own, most): (&str, Option<u32>, u32),
    ) -> Error {
        let error = self.0.refusals.refuse(limit, ErrorCode::TooBusy, what);
        let setting = limit.setting();
        error.with_hint(match own {
            Some(_) => format!("the user has {name} = {most}, which ALTER USER changes"),
            None => format!(
                "the setting {setting} = {most} is the limit; ALTER USER … WITH ({name} = n) gives the user its own"
            ),
        })
    }
}

impl Drop for SessionPlace {
    fn drop(&mut self) {
        let place = Counts { sessions: 1, statements: 0 };
        lock(&self.places.0.table).release(self.user, place);
    }
}

impl StatementPlace {
    /// Returns true if the limits were not checked, because the statement ends a transaction.
    pub fn is_exempt(&self) -> bool {
        self.work == Work::EndOfTransaction
    }
}

impl Drop for StatementPlace {
    fn drop(&mut self) {
        let mut table = lock(&self.places.0.table);
        table.statements -= 1;
        table.calls -= u32::from(self.work == Work::Call);
        if let Some(user) = self.user {
            table.release(user, Counts { sessions: 0, statements: 1 });
        }
    }
}

#[cfg(test)]
mod tests {
    use proto::model::users::{Grants, UserLimits};

    use super::*;

    fn user(id: u64, sessions_max: Option<u32>, statements_max: Option<u32>) -> User {
        User {
            id: UserId(id),
            name: format!("user {id}"),
            verifier: None,
            until_unix_ms: None,
            tokens: Vec::new(),
            grants: Grants::default(),
            limits: UserLimits { sessions_max, statements_max },
            secret_no: 0,
        }
    }

    fn hint<T>(refused: Result<T>) -> String {
        let error = refused.err().expect("a refusal");
        assert_eq!(error.code.sqlstate(), "53300");
        error.hint.unwrap_or_default()
    }

    #[test]
    fn sessions_are_limited_by_user() {
        let limits = ClientLimits { user_sessions_max: 3, ..ClientLimits::default() };
        let refusals = Refusals::default();
        let places = UserPlaces::new(limits, refusals.clone());
        let (ada, bob) = (user(1, Some(2), None), user(2, None, None));
        let first = places.session(&ada).expect("a place");
        let _second = places.session(&ada).expect("a place");
        assert!(hint(places.session(&ada)).contains("sessions_max = 2"));
        let _other = places.session(&bob).expect("a place of another user");
        drop(first);
        let _again = places.session(&ada).expect("the place that was given back");
        let all: Vec<_> = (1..3).map(|_| places.session(&bob).expect("a place")).collect();
        assert!(hint(places.session(&bob)).contains("user_sessions_max = 3"));
        drop(all);
        assert_eq!(lock(&places.0.table).by_user.len(), 2, "users without places are forgotten");
        assert!(refusals.by_setting().any(|counted| counted == ("user_sessions_max", 2)));
    }

    #[test]
    fn statements_count_by_user_and_in_all() {
        let limits =
            ClientLimits { user_statements_max: 2, statements_max: 4, ..ClientLimits::default() };
        let places = UserPlaces::new(limits, Refusals::default());
        let (ada, bob) = (user(1, None, None), user(2, None, Some(1)));
        let of = |user| places.statement(user, Work::Statement);
        let first = of(Some(&ada)).expect("a place");
        let second = of(Some(&ada)).expect("a place");
        assert!(hint(of(Some(&ada))).contains("user_statements_max = 2"));
        let end =
            places.statement(Some(&ada), Work::EndOfTransaction).expect("the end of a transaction");
        drop(end);
        let third = of(Some(&bob)).expect("a place of another user");
        assert!(hint(of(Some(&bob))).contains("statements_max = 1"));
        let fourth = of(None).expect("a client that is trusted");
        assert!(hint(of(None)).contains("statements_max"));
        drop((first, second, third, fourth));
        let table = lock(&places.0.table);
        assert_eq!((table.statements, table.by_user.len()), (0, 0));
    }

    #[test]
    fn the_last_eighth_of_all_statements_is_for_administrators() {
        let limits = ClientLimits { statements_max: 16, ..ClientLimits::default() };
        let places = UserPlaces::new(limits, Refusals::default());
        let (ada, mut root) = (user(1, None, None), user(2, None, None));
        root.grants.all = [Privilege::Admin].into_iter().collect();
        let all: Vec<_> = (0..14)
            .map(|_| places.statement(Some(&ada), Work::Statement).expect("a place"))
            .collect();
        let refused = places.statement(Some(&ada), Work::Statement).err().expect("a refusal");
        assert!(refused.message.contains("administrators"), "{refused}");
        let end =
            places.statement(Some(&ada), Work::EndOfTransaction).expect("the end of a transaction");
        assert!(end.is_exempt());
        let root =
            places.statement(Some(&root), Work::Statement).expect("a place of an administrator");
        assert!(hint(places.statement(None, Work::Statement)).contains("statements_max"));
        drop((all, end, root));
    }

    #[test]
    fn calls_leave_a_quarter_of_all_places_to_sql() {
        let limits = ClientLimits { statements_max: 8, ..ClientLimits::default() };
        let places = UserPlaces::new(limits, Refusals::default());
        let calls: Vec<_> =
            (0..6).map(|_| places.statement(None, Work::Call).expect("a place")).collect();
        let refused = places.statement(None, Work::Call).err().expect("the rest is for SQL");
        assert!(refused.message.contains("for SQL"), "{refused}");
        let statements: Vec<_> =
            (0..2).map(|_| places.statement(None, Work::Statement).expect("a place")).collect();
        assert!(places.statement(None, Work::Statement).is_err(), "all places are taken");
        drop((calls, statements));
        assert_eq!(lock(&places.0.table).calls, 0);
    }
}
