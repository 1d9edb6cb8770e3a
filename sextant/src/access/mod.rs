//! The access of sessions and requests to the cluster: the one layer that decides what a user may
//! do.
//!
//! A port gets an [`Access`] for the principal of its connection or request from an
//! [`AccessProvider`]. A port has no other way to reach the cluster. Changes require a handle:
//! documents are changed by a [`Writer`] of their bucket, and definitions, users, placements and
//! nodes by an [`AuditedAccess`], which belongs to one audited statement. Without a handle such a
//! call cannot be made.
//!
//! Each call checks the rights of a user according to the newest users that this process has
//! received, not according to the users at the time of the log-in. The withdrawal of a grant
//! therefore takes effect with the next call. This includes calls in an open transaction and the
//! next batch of a scan (`wrapped`). A trusted principal may do everything.
//!
//! Everything is refused unless the user has a privilege for it. A bucket on which a user has no
//! privilege does not exist for that user, nor do its indexes: they are missing in the user's
//! catalog (`view`), and a call that names one gets the answer of a call with an unknown name. If
//! the user has some privilege on a bucket, but not the required one, the refusal names the bucket.
//!
//! All users share the names of buckets and indexes. CREATE therefore reports a name as taken
//! even if it belongs to a bucket or an index that the user may not know.
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
pub use calls::{Access, unknown_name_error};
pub(crate) use cluster::Cluster;
pub use open::{BatchSource, BucketTransaction, EpochPin, FigureKind, Relation, TransactionView};
pub use provider::{AccessProvider, Authorization};
pub use writer::Writer;
