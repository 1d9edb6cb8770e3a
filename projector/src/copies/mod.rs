//! Copies of embedded buckets on several projectors ([`proto::model::copies`] has the scheme).
//!
//! ```text
//!  leader                                         follower
//!    log_group ─▶ links (groups) ◀── Next ─────── session ─▶ append ─▶ Next (durable)
//!        │             │                                        └▶ show
//!      sync        all have it ─▶ show, answer
//! ```
//!
//! - The **leader** keeps each group for its followers ([`crate::source::groups::links`]). A
//!   group becomes visible, and its writes are acknowledged, when all copies that the leader
//!   waits for have the group. [`lead`] requests changes of the set of copies from the
//!   coordinators, and hands leadership over when a bucket is moved. [`serve`] answers followers.
//! - A **follower** requests groups; each request contains the number of its last durable group
//!   ([`follow`], [`session`]). It rewinds to the common history, fetches missing mutations from
//!   the leader's log, or from its documents if the log was purged ([`fill`]), and then stores
//!   group after group ([`apply`]), a large one in pieces ([`pieces`]). During a long write, it
//!   reports that it is alive ([`busy`]). It ignores older terms, because it sends requests only
//!   to the leader of the newest configuration that it has received.
//! - **Take-over**: a follower in sync that has received nothing for
//!   [`COPY_GRACE_MS`](proto::rpc::api::COPY_GRACE_MS) requests leadership from the coordinators,
//!   and sends the old leader no request from then on. The old leader's lease has ended by then.
//!   A process that was just started may have an older copy of its directory, so it requests
//!   leadership only after it has compared its copy with a leader's. Without a leader, it does so
//!   after half a minute if it has all mutations that the newest timestamp covers. A follower
//!   that lacks some of them waits ten minutes for the other copies.
//! - **Roles** ([`roles`]): a change from leading to following, or back, replaces the
//!   [`Bucket`](crate::source::view::bucket::Bucket) by a new one that is opened from the store.
//!   So nothing that one role has kept in memory remains in the other role. A leader is not
//!   served until the coordinators have compared its copy with the last epoch (`crate::follow`);
//!   it begins its branches with their answer.
//! - **Healing** ([`heal`]): a copy whose files are damaged is excluded from all of this until it
//!   is recreated.

mod apply;
mod busy;
mod fill;
mod follow;
mod follower;
mod groups;
mod heal;
mod lead;
mod pieces;
mod roles;
mod serve;
mod session;

pub use heal::heal_damaged;
pub use roles::maintain_roles;
pub use serve::answer_request;
