//! The limit of the number of sessions. The last eighth of them is for administrators, so that an
//! administrator can always inspect the cluster and stop others.

use std::sync::{Arc, Mutex};

use proto::lock::lock;
use proto::{Error, ErrorCode, Result};

use crate::flow::reserved;

/// The number of sessions and its limit. A clone is cheap and shares the number.
#[derive(Clone)]
pub(in crate::pg) struct SessionPlaces {
    count_max: usize,
    taken: Arc<Mutex<usize>>,
}

/// The permission for one session. It is given back when this value is dropped.
pub(in crate::pg) struct SessionPermit(SessionPlaces);

impl SessionPlaces {
    pub(in crate::pg) fn new(count_max: usize) -> Self {
        Self { count_max, taken: Arc::default() }
    }

    /// Counts a new session. Returns an error if all sessions that the user may use are in use.
    pub(in crate::pg) fn take(&self, is_administrator: bool) -> Result<SessionPermit> {
        let open = match is_administrator {
            true => self.count_max,
            false => self.count_max - reserved(self.count_max),
        };
        let mut taken = lock(&self.taken);
        if *taken >= open {
            let mut what = format!("{taken} sessions are open");
            if *taken < self.count_max {
                what += ", and the other places are for administrators";
            }
            return Err(Error::new(ErrorCode::TooBusy, what)
                .with_hint("close some sessions, or try again later"));
        }
        *taken += 1;
        Ok(SessionPermit(self.clone()))
    }
}

impl Drop for SessionPermit {
    fn drop(&mut self) {
        *lock(&self.0.taken) -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_eighth_of_the_sessions_is_for_administrators() {
        let places = SessionPlaces::new(8);
        let mut taken: Vec<_> = (0..7).map(|_| places.take(false).expect("a place")).collect();
        let refused = places.take(false).err().expect("a refusal");
        assert!(
            refused.message.contains("7 sessions") && refused.message.contains("administrators")
        );
        taken.push(places.take(true).expect("a place of an administrator"));
        let refused = places.take(true).err().expect("a refusal");
        assert_eq!(refused.message, "8 sessions are open");
        taken.truncate(6);
        assert!(places.take(false).is_ok());
    }
}
