//! Stores answers to requests, so that a request that is sent twice is executed once.
//!
//! The table is part of the replicated state, so a new leader knows the answers of the old one.
//! It is bounded, in bytes too: it has the last answers to each client, and only the most
//! recently active clients. A client numbers its requests, so a retry that is older than all
//! stored answers is recognized and refused, never executed again. A client is a process whose
//! sessions send concurrently. A late request may be older than many finished ones, so many
//! answers are stored.

use std::collections::BTreeMap;

use proto::rpc::command::{Outcome, RequestId, encoded_bytes};
use proto::{Error, ErrorCode};
use serde::{Deserialize, Serialize};

use super::capacity::limits::{ANSWER_BYTES_IN_ALL_MAX, CLIENTS_MAX};

/// The limit of stored answers per client: more than the sessions of a process send while one of
/// them retries.
const ANSWERS_MAX: usize = 4096;
/// The limit of stored answers of all clients.
const ANSWERS_IN_ALL_MAX: usize = 16_384;
/// The encoded size limit of the number of a request.
const NUMBER_BYTES_MAX: usize = 10;

/// The stored answers to requests, by client.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Requests(BTreeMap<u64, Client>);

/// The stored answers to one client.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Client {
    /// The log position of the client's last request.
    position: u64,
    answers: BTreeMap<u64, Outcome>,
    /// The encoded size of the answers, in bytes.
    bytes: usize,
    /// The newest request whose answer was dropped.
    forgotten: Option<u64>,
}

impl Requests {
    /// Returns the stored answer to a request, or a refusal if the request is older than all
    /// stored answers of its client; `None` for a new request.
    pub fn answer(&self, id: RequestId) -> Option<Outcome> {
        let client = self.0.get(&id.client)?;
        if let Some(answer) = client.answers.get(&id.sequence) {
            return Some(answer.clone());
        }
        let too_old = client.forgotten.is_some_and(|forgotten| id.sequence <= forgotten);
        too_old.then(|| {
            Outcome::Refused(
                Error::new(
                    ErrorCode::InvalidParameter,
                    format!("request {} is too old to be sent again", id.sequence),
                )
                .with_hint("look whether it was done, and send it as a new request if not"),
            )
        })
    }

    /// Stores the answer to a request, and drops old answers that exceed the limits.
    pub fn keep(&mut self, id: RequestId, position: u64, outcome: Outcome) {
        let client = self.0.entry(id.client).or_default();
        client.position = position;
        client.insert(id.sequence, outcome);
        if client.answers.len() > ANSWERS_MAX {
            client.drop_oldest_answer();
        }
        while self.0.len() > CLIENTS_MAX || self.stored_count() > ANSWERS_IN_ALL_MAX {
            let Some(oldest) = self.least_active() else { return };
            self.0.remove(&oldest);
        }
        while self.bytes() > ANSWER_BYTES_IN_ALL_MAX {
            let Some(oldest) = self.least_active() else { return };
            let last_client = self.0.len() == 1;
            match self.0.get_mut(&oldest) {
                // A damaged snapshot may have another number of bytes than its answers.
                Some(client) if last_client && !client.answers.is_empty() => {
                    client.drop_oldest_answer()
                }
                _ => drop(self.0.remove(&oldest)),
            }
        }
    }

    /// Returns the client whose last request is the oldest.
    fn least_active(&self) -> Option<u64> {
        self.0.iter().min_by_key(|(_, client)| client.position).map(|(id, _)| *id)
    }

    /// Returns the number of stored answers.
    fn stored_count(&self) -> usize {
        self.0.values().map(|client| client.answers.len()).sum()
    }

    fn bytes(&self) -> usize {
        self.0.values().map(|client| client.bytes).sum()
    }
}

impl Client {
    fn insert(&mut self, sequence: u64, outcome: Outcome) {
        self.bytes += answer_bytes(&outcome);
        if let Some(old) = self.answers.insert(sequence, outcome) {
            self.bytes = self.bytes.saturating_sub(answer_bytes(&old));
        }
    }

    /// Drops the answer to the client's oldest request.
    fn drop_oldest_answer(&mut self) {
        if let Some((sequence, outcome)) = self.answers.pop_first() {
            self.bytes = self.bytes.saturating_sub(answer_bytes(&outcome));
            self.forgotten = Some(sequence);
        }
    }
}

fn answer_bytes(outcome: &Outcome) -> usize {
    NUMBER_BYTES_MAX + encoded_bytes(outcome)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(client: u64, sequence: u64) -> RequestId {
        RequestId { client, sequence }
    }

    #[test]
    fn the_first_answer_stays_and_very_old_requests_are_refused() {
        let mut requests = Requests::default();
        assert_eq!(requests.answer(id(1, 1)), None);
        let many = ANSWERS_MAX as u64 + 1;
        (1..=many).for_each(|sequence| requests.keep(id(1, sequence), sequence, Outcome::Done));
        assert_eq!(requests.answer(id(1, many)), Some(Outcome::Done));
        assert!(
            matches!(requests.answer(id(1, 1)), Some(Outcome::Refused(_))),
            "the answer is no longer kept"
        );
        assert_eq!(requests.answer(id(1, many + 1)), None, "a new one");
        assert_eq!(requests.answer(id(2, 1)), None, "another client's");
    }

    #[test]
    fn a_request_older_than_many_others_is_still_executed() {
        let mut requests = Requests::default();
        (2..=1000).for_each(|sequence| requests.keep(id(1, sequence), sequence, Outcome::Done));
        assert_eq!(requests.answer(id(1, 1)), None, "it was never done");
    }

    #[test]
    fn the_answers_of_all_clients_are_bounded() {
        let mut requests = Requests::default();
        for n in 0..3 * ANSWERS_IN_ALL_MAX as u64 {
            requests.keep(id(n / ANSWERS_MAX as u64, n), n, Outcome::Done);
            assert_eq!(requests.answer(id(n / ANSWERS_MAX as u64, n)), Some(Outcome::Done));
        }
        assert!(requests.stored_count() <= ANSWERS_IN_ALL_MAX);
    }

    #[test]
    fn long_answers_of_a_single_client_are_bounded_in_bytes() {
        let mut requests = Requests::default();
        let long = || Outcome::Refused(Error::internal("x".repeat(2000)));
        (1..=3000).for_each(|sequence| requests.keep(id(1, sequence), sequence, long()));
        let bytes = encoded_bytes(&requests);
        assert!(bytes < ANSWER_BYTES_IN_ALL_MAX + 100, "{bytes}");
        assert_eq!(requests.answer(id(1, 3000)), Some(long()));
        assert_ne!(requests.answer(id(1, 1)), Some(long()), "the oldest one is forgotten");
    }

    #[test]
    fn the_least_recently_active_client_is_dropped_first() {
        let mut requests = Requests::default();
        let many = CLIENTS_MAX as u64;
        (1..=many).for_each(|client| requests.keep(id(client, 1), client, Outcome::Done));
        requests.keep(id(1, 2), many + 1, Outcome::Done);
        requests.keep(id(many + 1, 1), many + 2, Outcome::Done);
        assert_eq!(requests.answer(id(2, 1)), None);
        assert_eq!(requests.answer(id(1, 1)), Some(Outcome::Done));
    }
}
