//! Conversion of result rows to the forms that clients read, for the SQL and the gRPC port.

pub(crate) mod columns;
pub(crate) mod entry;
pub(crate) mod format;
pub(crate) mod line;
pub(crate) mod scan_merge;
pub(crate) mod suspended_result;
pub(crate) mod value;
