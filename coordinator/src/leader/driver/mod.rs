//! Carries out the leader's plans: tasks that run on each member and act only on the leading member.
//!
//! | file | contents |
//! |---|---|
//! | [`member`] | the state that the tasks share |
//! | [`lead`] | the loop: plan, propose, sleep |
//! | [`queries`] | asks sources for their histories |
//! | [`rounds`] | the rounds of questions that moments share |
//! | [`checks`] | compares the two ends of moves |

pub(crate) mod checks;
pub(crate) mod lead;
pub(crate) mod member;
pub(crate) mod queries;
pub(crate) mod rounds;
