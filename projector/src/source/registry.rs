//! The table of the implementations of a bucket's source, by kind. The kinds are listed only here.

use proto::model::bucket::SourceKind;

use super::embedded::Embedded;
use super::files::FromFiles;
use super::kind::Source;
use super::push::PushedSource;

/// Returns the source of a kind.
pub fn source_of_kind(kind: SourceKind) -> &'static dyn Source {
    match kind {
        SourceKind::Embedded => &Embedded,
        SourceKind::Push => &PushedSource,
        SourceKind::Files => &FromFiles,
    }
}
