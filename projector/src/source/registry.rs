//! The table of the implementations of [`Source`], one for each kind of bucket. Only this table
//! lists all kinds.

use proto::model::bucket::SourceKind;

use super::embedded::Embedded;
use super::files::FromFiles;
use super::kind::Source;
use super::push::PushedSource;

/// Returns the implementation of a kind of source.
pub fn source_of_kind(kind: SourceKind) -> &'static dyn Source {
    match kind {
        SourceKind::Embedded => &Embedded,
        SourceKind::Push => &PushedSource,
        SourceKind::Files => &FromFiles,
    }
}
