//! Looks at what writers send before it waits for the log. In the caller's task, so that many writers parse at the
//! same time.

use proto::value::Value;
use proto::{Error, ErrorCode, Result};

/// What a write takes in the queue besides its document.
pub(super) const WRITE_OVERHEAD_BYTES: usize = 200;

pub(super) fn document(id: &str, json: &[u8], bytes_max: usize) -> Result<Value> {
    if json.len() > bytes_max {
        let message =
            format!("document {id:?} takes {} bytes, the limit is {bytes_max}", json.len());
        return Err(Error::new(ErrorCode::OverLimit, message));
    }
    Value::parse_json(json).map_err(|error| error.context(format!("document {id:?}")))
}
