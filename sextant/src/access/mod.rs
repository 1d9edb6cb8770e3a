//! The access of sessions and requests to the cluster: the one layer that decides what a user may
//! do.
//!
//! A port gets an [`Access`] for the principal of its connection or request ([`AccessProvider`]),
//! and nothing else that leads to the cluster. Changes require a handle: documents are changed by a
//! [`Writer`] of their bucket, and definitions, users, placements and nodes by an
//! [`AuditedAccess`], which belongs to one audited statement. Without a handle such a call cannot
//! be made.
//!
//! Each call checks the rights of a user by the newest users that this process has received, not by
//! those of the log-in. So the withdrawal of a grant takes effect from the next call on, also in an
//! open transaction and for the next batch of a scan (`wrapped`). A trusted principal may do
//! everything.
//!
//! Everything is refused unless the user has a privilege for it. A bucket on which a user has no
//! privilege does not exist for that user, nor do its indexes: they are missing in the user's
//! catalog (`view`), and a call that names one gets the answer of a call with an unknown name. If
//! the user has some privilege on a bucket, but not the required one, the refusal names the bucket.
//!
//! Names are one space: CREATE reports that a name is taken, even by a bucket or an index that the
//! user may not know.
//!
//! A command contains the id of the bucket for which it was checked, so it cannot reach another
//! bucket of that name. `tests/tests/clusters/doors` runs each statement, call and page for each
//! kind of user, and fails when its tables lack a statement, call or page.

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
