//! The access of sessions and requests to the cluster: the one layer that decides what a user may do.
//!
//! A port gets an [`Access`] for the principal of its connection or request ([`AccessProvider`]), and nothing else that leads to the
//! cluster. What changes something is on a handle: documents are changed by a [`Writer`] of their bucket, and definitions, users, places and
//! nodes by an [`AuditedAccess`], which belongs to one statement of the audit. A call that has no handle cannot be made.
//!
//! Each call checks the rights of a user by the newest users that this process knows, not by those of the log-in. So a grant that is
//! withdrawn counts from the next call on, also in an open transaction and for the next batch of a scan (`wrapped`). A trusted principal may
//! do everything.
//!
//! Everything is refused unless the user has a privilege for it. A bucket on which it has none does not exist for it, with its indexes:
//! the catalog that it gets lacks them (`view`), and a call that names one is answered by the same code in the same way as a call that
//! names nothing. A bucket on which it has some privilege, but not the needed one, is named in the refusal.
//!
//! Names are one space: CREATE reports that a name is taken, even by a bucket or an index that the user may not know.
//!
//! A command has the number of the bucket for which it is allowed, so it cannot reach another one of the same name.
//! `tests/tests/clusters/doors` runs each statement, call and page for each kind of user, and fails when one is not in
//! its tables.

mod audited;
mod calls;
mod checks;
mod cluster;
mod open;
mod provider;
mod reports;
mod rights;
#[cfg(test)]
mod tests;
mod view;
mod wrapped;
mod writer;

pub use audited::AuditedAccess;
pub use calls::{Access, absent};
pub(crate) use cluster::Cluster;
pub use open::{BatchSource, BucketTransaction, EpochPin, FigureKind, Relation, TransactionView};
pub use provider::{AccessProvider, Authorization};
pub use writer::Writer;
