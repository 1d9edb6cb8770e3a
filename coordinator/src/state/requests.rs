//! Answers that are kept for retries, so that a request that is sent twice is executed once.
//!
//! The table is part of the replicated state, so a new leader knows the answers of the old one. It is bounded: each
//! client keeps its last answers, and only the most recently active clients stay. A client numbers its requests, so a
//! retry that is older than all kept answers is recognized and refused, never executed again. A client is a process
//! whose sessions send concurrently. A late request may be older than many finished ones, so many answers are kept.

use std::collections::BTreeMap;

use proto::rpc::command::{Outcome, RequestId};
use proto::{Error, ErrorCode};
use serde::{Deserialize, Serialize};

/// The number of clients with kept answers. DDL comes from few clients.
const CLIENTS_MAX: usize = 1024;
/// Answers per client: more than the sessions of a process send while one of them retries.
const ANSWERS_MAX: usize = 4096;
/// Answers of all clients: a few MiB of a snapshot.
const ANSWERS_IN_ALL_MAX: usize = 16_384;

/// The kept answers, by client.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Requests(BTreeMap<u64, Client>);

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Client {
    /// The log position of the client's last request.
    position: u64,
    answers: BTreeMap<u64, Outcome>,
    /// The newest request whose answer was dropped.
    forgotten: Option<u64>,
}

impl Requests {
    /// The kept answer to a request; a refusal if the request is older than all kept answers.
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

    /// Keeps the answer to a request.
    pub fn keep(&mut self, id: RequestId, position: u64, outcome: Outcome) {
        let client = self.0.entry(id.client).or_default();
        client.position = position;
        client.answers.insert(id.sequence, outcome);
        if client.answers.len() > ANSWERS_MAX
            && let Some((sequence, _)) = client.answers.pop_first()
        {
            client.forgotten = Some(sequence);
        }
        while self.0.len() > CLIENTS_MAX || self.kept() > ANSWERS_IN_ALL_MAX {
            let oldest = self.0.iter().min_by_key(|(_, client)| client.position);
            let Some(oldest) = oldest.map(|(id, _)| *id) else { return };
            self.0.remove(&oldest);
        }
    }

    fn kept(&self) -> usize {
        self.0.values().map(|client| client.answers.len()).sum()
    }
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
    fn a_request_that_a_thousand_others_overtook_is_still_executed() {
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
        assert!(requests.kept() <= ANSWERS_IN_ALL_MAX);
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
