//! Carries out what the leader plans: the tasks that run on each member and do something on the one that leads.
//!
//! | file | what it is |
//! |---|---|
//! | [`member`] | what the tasks share |
//! | [`lead`] | the loop: plan, propose, sleep |
//! | [`enquiries`] | asks sources for their histories |
//! | [`checks`] | compares the two ends of moves |

pub(crate) mod checks;
pub(crate) mod enquiries;
pub(crate) mod lead;
pub(crate) mod member;
