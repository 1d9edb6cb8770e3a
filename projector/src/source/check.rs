//! Validates the requests of writers before they wait for the log. This runs in the caller's task, so that many
//! requests are parsed concurrently.

use proto::value::Value;
use proto::{Error, ErrorCode, Result};

/// The queue space of a write besides its document.
pub(super) const WRITE_OVERHEAD_BYTES: usize = 200;

pub(super) fn document(id: &str, json: &[u8], bytes_max: usize) -> Result<Value> {
    if json.len() > bytes_max {
        let message =
            format!("document {id:?} takes {} bytes, the limit is {bytes_max}", json.len());
        return Err(Error::new(ErrorCode::OverLimit, message));
    }
    Value::parse_json(json).map_err(|error| error.context(format!("document {id:?}")))
}
