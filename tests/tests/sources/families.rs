//! Tests that the families of the coordinator's state do not refer to each other: each has a
//! sub-state in `state.rs` of its folder, which only the commands of the family change. What a
//! command means for another family is a `Consequence`.
//!
//! Privacy ensures most of this: the fields of a sub-state are private, and its methods that change
//! it are visible in its folder alone. This test checks that it stays so.
#![allow(clippy::disallowed_methods, reason = "a test that reads source files")]

use super::structure::{Module, Sources};

/// The files that join the sub-states.
const JOINING: [&str; 2] = ["context", "carry_out"];

/// Returns the name of each family's sub-state, with the module that declares it.
fn sub_states(sources: &Sources) -> Vec<(Module, String)> {
    let declared = |(module, (_, text)): (&Module, &(std::path::PathBuf, String))| {
        let is_state = module.first()? == "state" && module.last()? == "state" && module.len() > 1;
        let after = text.split_once("pub(in crate::state) struct ").filter(|_| is_state)?.1;
        let name = after.split(|c: char| !c.is_alphanumeric()).next()?;
        Some((module.clone(), name.to_owned()))
    };
    sources.files.iter().filter_map(declared).collect()
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_')
}

/// Returns texts about the breaches of the rule in one file.
fn breaches(sub_states: &[(Module, String)], module: &Module, text: &str) -> Vec<String> {
    let joins = module.last().is_some_and(|file| JOINING.contains(&&**file));
    let family = |of: &Module| of[..of.len() - 1].to_vec();
    let mut found = Vec::new();
    for (home, name) in sub_states.iter().filter(|_| !joins) {
        if !module.starts_with(&family(home)) && words(text).any(|word| word == name) {
            found.push(format!("names {name}"));
        }
    }
    if !joins && text.contains(".on(") {
        found.push("carries out a consequence".into());
    }
    if sub_states.iter().any(|(home, _)| home == module) {
        if words(text).any(|word| word == "StateContext") {
            found.push("a sub-state names the whole state".into());
        }
        let one_line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for head in one_line.split("pub(in crate::state) fn ").skip(1) {
            let head = head.split('{').next().unwrap_or(head);
            if head.contains("&mut self") && !head.starts_with("on(") {
                let name = head.split('(').next().unwrap_or(head);
                found.push(format!(
                    "{name} changes the sub-state and is visible outside of its family"
                ));
            }
        }
    }
    found
}

#[test]
fn a_family_of_the_state_changes_another_one_by_consequences_only() {
    let sources = Sources::read("coordinator");
    let sub_states = sub_states(&sources);
    assert!(sub_states.len() >= 8, "the sub-states are found: {sub_states:?}");
    let of_state = sources.files.iter().filter(|(module, _)| module.starts_with(&["state".into()]));
    let found: Vec<_> = of_state
        .map(|(module, (_, text))| (module.join("::"), breaches(&sub_states, module, text)))
        .filter(|(_, breaches)| !breaches.is_empty())
        .collect();
    assert_eq!(found, Vec::new(), "let the command return a Consequence instead");
}

#[test]
fn a_breach_is_found() {
    let module = |path: &[&str]| path.iter().map(|part| (*part).to_owned()).collect::<Module>();
    let homes = ["buckets", "moves"].map(|family| module(&["state", family, "state"]));
    let [buckets, moves] = homes;
    let sub_states = [(buckets.clone(), "BucketsState".into()), (moves, "MovesState".into())];
    let count = |of: &Module, text: &str| breaches(&sub_states, of, text).len();
    assert_eq!(count(&buckets, "impl BucketsState { pub(super) fn add(&mut self) {} }"), 0);
    assert_eq!(count(&buckets, "use crate::state::moves::state::MovesState;"), 1);
    assert_eq!(count(&buckets, "fn add(&self, all: &StateContext) {}"), 1);
    assert_eq!(count(&buckets, "pub(in crate::state) fn add(\n    &mut self,\n) {}"), 1);
    assert_eq!(count(&buckets, "pub(in crate::state) fn on(&mut self) {}"), 0);
    assert_eq!(count(&module(&["state", "moves"]), "state.buckets.on(&dropped);"), 1);
    assert_eq!(count(&module(&["state", "carry_out"]), "self.buckets.on(&dropped);"), 0);
}
