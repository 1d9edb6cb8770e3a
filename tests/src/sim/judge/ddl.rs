//! The check that DDL is linearizable: there must be an order of all statements in which every
//! answer is right, and in which each statement is between its call and its answer.
//!
//! Statements about different indexes do not affect each other, so that each name has its own
//! history. The judge walks through its calls and answers and keeps all states that the index may
//! have, each with the statements in progress that have taken effect. At an answer, only the states
//! remain in which the statement has taken effect with this answer. If there are none, no order
//! explains the history. A statement without an answer may take effect at any later time, or never.

use std::collections::{BTreeMap, BTreeSet};

use proto::model::ids::IndexId;
use proto::rpc::command::Outcome;
use proto::{Error, ErrorCode};

/// A statement that was called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// CREATE INDEX; `lenient` adds IF NOT EXISTS.
    Create { lenient: bool },
    /// DROP INDEX; `lenient` adds IF EXISTS.
    Drop { lenient: bool },
}

/// The answer to a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The index has this id.
    Made(IndexId),
    /// The statement succeeded.
    Done,
    /// The statement was refused because the name is taken.
    Exists,
    /// The statement was refused because the index does not exist.
    Missing,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Call(usize),
    Return(usize),
}

/// The calls and answers of all indexes.
#[derive(Debug, Default)]
pub struct History {
    statements: Vec<(String, Asked, Option<Answer>)>,
    events: Vec<Event>,
}

/// The state of an index: absent, present with an unknown number, or present with a known number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum State {
    Absent,
    There(Option<IndexId>),
}

/// A possible state of an index, and the statements in progress that have taken effect in it.
type Configuration = (State, BTreeSet<usize>);

/// Returns the answer of an outcome; `None` if the outcome leaves open whether the statement took
/// effect.
pub fn answer(outcome: &Result<Outcome, Error>) -> Option<Answer> {
    match outcome {
        Ok(Outcome::Index(index)) => Some(Answer::Made(*index)),
        Ok(_) => Some(Answer::Done),
        Err(error) if error.code == ErrorCode::Exists => Some(Answer::Exists),
        Err(error) if error.code == ErrorCode::Unknown => Some(Answer::Missing),
        Err(_) => None,
    }
}

impl History {
    /// Records a call and returns its number.
    pub fn call(&mut self, name: &str, asked: Asked) -> usize {
        self.statements.push((name.to_owned(), asked, None));
        self.events.push(Event::Call(self.statements.len() - 1));
        self.statements.len() - 1
    }

    /// Records an answer.
    pub fn answered(&mut self, statement: usize, answer: Answer) {
        self.statements[statement].2 = Some(answer);
        self.events.push(Event::Return(statement));
    }

    /// Returns a text about a history that no order explains; `None` if there is none.
    pub fn judge(&self) -> Option<String> {
        let mut names: BTreeMap<&str, BTreeSet<Configuration>> = BTreeMap::new();
        let mut under_way: BTreeMap<&str, BTreeSet<usize>> = BTreeMap::new();
        for event in &self.events {
            let (Event::Call(at) | Event::Return(at)) = *event;
            let name = self.statements[at].0.as_str();
            let waiting = under_way.entry(name).or_default();
            let Event::Return(_) = event else {
                waiting.insert(at);
                continue;
            };
            let begin = || BTreeSet::from([(State::Absent, BTreeSet::new())]);
            let before = names.entry(name).or_insert_with(begin);
            let mut after = self.reachable(before, waiting);
            after.retain(|(_, effective)| effective.contains(&at));
            waiting.remove(&at);
            *before = after
                .into_iter()
                .map(|(state, mut effective)| {
                    effective.remove(&at);
                    (state, effective)
                })
                .collect();
            if before.is_empty() {
                let (_, asked, answer) = &self.statements[at];
                return Some(format!(
                    "no order of the statements about {name} explains that {asked:?} (number {at}) was \
                     answered {answer:?}: {:?}",
                    self.about(name)
                ));
            }
        }
        None
    }

    fn about(&self, name: &str) -> Vec<(usize, Asked, Option<Answer>)> {
        let all = self.statements.iter().enumerate();
        all.filter(|(_, of)| of.0 == name).map(|(at, of)| (at, of.1, of.2)).collect()
    }

    /// Returns all configurations to which the statements in progress can lead, in any order.
    fn reachable(
        &self,
        from: &BTreeSet<Configuration>,
        waiting: &BTreeSet<usize>,
    ) -> BTreeSet<Configuration> {
        let mut found = from.clone();
        let mut open: Vec<Configuration> = from.iter().cloned().collect();
        while let Some((state, effective)) = open.pop() {
            for at in waiting.difference(&effective) {
                let (_, asked, answer) = self.statements[*at];
                if let Some(next) = next(state, asked, answer) {
                    let mut effective = effective.clone();
                    effective.insert(*at);
                    if found.insert((next, effective.clone())) {
                        open.push((next, effective));
                    }
                }
            }
        }
        found
    }
}

/// Returns the state after a statement with this answer (or an unknown answer); `None` if that is
/// impossible.
fn next(state: State, asked: Asked, answer: Option<Answer>) -> Option<State> {
    use State::{Absent, There};
    match (asked, state, answer) {
        (Asked::Create { .. }, Absent, Some(Answer::Made(index))) => Some(There(Some(index))),
        (Asked::Create { .. }, Absent, None) => Some(There(None)),
        (Asked::Create { lenient: true }, There(known), Some(Answer::Made(index))) => {
            known.is_none_or(|known| known == index).then_some(There(Some(index)))
        }
        (Asked::Create { lenient: false }, There(_), Some(Answer::Exists)) => Some(state),
        (Asked::Create { .. }, There(_), None) => Some(state),
        (Asked::Drop { .. }, There(_), Some(Answer::Done) | None) => Some(Absent),
        (Asked::Drop { lenient: true }, Absent, Some(Answer::Done)) => Some(Absent),
        (Asked::Drop { lenient: false }, Absent, Some(Answer::Missing)) => Some(Absent),
        (Asked::Drop { .. }, Absent, None) => Some(Absent),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CREATE: Asked = Asked::Create { lenient: false };
    const DROP: Asked = Asked::Drop { lenient: false };

    /// Returns a history of statements one after another; a statement without an answer may take
    /// effect later.
    fn history(statements: &[(Asked, Option<Answer>)]) -> History {
        let mut history = History::default();
        for (asked, answer) in statements {
            let at = history.call("i", *asked);
            if let Some(answer) = answer {
                history.answered(at, *answer);
            }
        }
        history
    }

    #[test]
    fn an_explained_history_is_no_violation() {
        let made = |n| Some(Answer::Made(IndexId(n)));
        let right = [
            vec![(CREATE, made(1)), (CREATE, Some(Answer::Exists)), (DROP, Some(Answer::Done))],
            vec![(DROP, Some(Answer::Missing)), (CREATE, made(1))],
            // The first statement took effect, but late.
            vec![(CREATE, None), (DROP, Some(Answer::Missing)), (DROP, Some(Answer::Done))],
            vec![(CREATE, made(1)), (DROP, None), (CREATE, made(2))],
        ];
        right.iter().for_each(|statements| assert_eq!(history(statements).judge(), None));
    }

    #[test]
    fn an_unexplained_history_is_a_violation() {
        let made = |n| Some(Answer::Made(IndexId(n)));
        let wrong = [
            // The statement succeeded twice: the answer is that of the second attempt.
            vec![(CREATE, Some(Answer::Exists))],
            vec![(CREATE, made(1)), (CREATE, made(2))],
            vec![(CREATE, made(1)), (DROP, Some(Answer::Missing))],
            vec![(CREATE, made(1)), (Asked::Create { lenient: true }, made(2))],
        ];
        wrong.iter().for_each(|statements| assert!(history(statements).judge().is_some()));
    }
}
