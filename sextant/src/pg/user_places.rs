//! The sessions of single users: so that one of them does not take the places of all.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use proto::lock::lock;
use proto::model::ids::UserId;
use proto::model::users::User;
use proto::{Error, ErrorCode, Result};

/// The sessions of a user at a router, unless it has a limit of its own.
const USER_SESSIONS_MAX: u32 = 200;

/// The number of sessions of each user that has any; cheap to clone.
#[derive(Clone, Default)]
pub(super) struct UserPlaces(Arc<Mutex<BTreeMap<UserId, u32>>>);

/// The place of a session; it is free again on drop.
pub(super) struct UserPlace {
    places: UserPlaces,
    user: UserId,
}

impl UserPlaces {
    /// Takes a place for a session of a user; an error if it has as many as it may.
    pub(super) fn take(&self, user: &User) -> Result<UserPlace> {
        let most = user.limits.sessions_max.unwrap_or(USER_SESSIONS_MAX);
        let mut sessions = lock(&self.0);
        let count = sessions.entry(user.id).or_default();
        if *count >= most {
            let what = format!("user {:?} has {count} sessions at this router", user.name);
            return Err(Error::new(ErrorCode::TooBusy, what).with_hint(format!(
                "close some; the limit of the user is sessions_max = {most}, which ALTER USER changes"
            )));
        }
        *count += 1;
        Ok(UserPlace { places: self.clone(), user: user.id })
    }
}

impl Drop for UserPlace {
    fn drop(&mut self) {
        let mut sessions = lock(&self.places.0);
        if let Some(count) = sessions.get_mut(&self.user) {
            *count -= 1;
            if *count == 0 {
                sessions.remove(&self.user);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proto::model::users::{Grants, UserLimits};

    use super::*;

    fn user(id: u64, sessions_max: Option<u32>) -> User {
        User {
            id: UserId(id),
            name: format!("user {id}"),
            verifier: None,
            until_unix_ms: None,
            tokens: Vec::new(),
            grants: Grants::default(),
            limits: UserLimits { sessions_max, statements_max: None },
            secret_no: 0,
        }
    }

    #[test]
    fn a_user_has_as_many_sessions_as_it_may_and_takes_none_of_others() {
        let places = UserPlaces::default();
        let (ada, bob) = (user(1, Some(2)), user(2, None));
        let first = places.take(&ada).expect("a place");
        let _second = places.take(&ada).expect("a place");
        let error = places.take(&ada).err().expect("two are the most");
        assert_eq!(error.code.sqlstate(), "53300");
        assert!(error.hint.is_some_and(|hint| hint.contains("sessions_max = 2")));
        let _other = places.take(&bob).expect("a place of another user");
        drop(first);
        let _again = places.take(&ada).expect("the place that was given back");
        let all: Vec<_> = (1..USER_SESSIONS_MAX).map(|_| places.take(&bob)).collect();
        assert!(all.iter().all(Result::is_ok) && places.take(&bob).is_err());
        drop(all);
        assert_eq!(lock(&places.0).len(), 2, "users without sessions are forgotten");
    }
}
