//! Handles long query texts of clients: memory for them is reserved from a common budget, and
//! they are parsed and planned on blocking threads.

use std::time::Duration;

use proto::env::Env;

use super::ast::{Select, SelectExpr, SelectItem};
use super::error::SqlResult;
use super::limits::check_length;
use super::parse::{ParsedStatement, parse};
use crate::flow::{MemoryBudget, ReservedMemory};

/// The length from which a query text is parsed on a blocking thread, in bytes. A shorter text
/// takes at most a few milliseconds.
pub const LONG_TEXT_BYTES: usize = 16 << 10;

/// The number of operands and operators in a statement from which it is planned on a blocking
/// thread. The plan of a smaller statement takes less than a millisecond.
pub const LONG_NODES: usize = 2000;

/// The memory of a text while it is parsed, as a multiple of its length. Most of it is for
/// tokens.
const PARSING: usize = 90;

/// The memory of a parsed text, as a multiple of the text's length.
pub const PARSED: usize = 10;

/// Reserves the memory for parsing a text. A text above the length limit does not wait for
/// memory. Any other text takes at most half of the budget, so that other texts need not wait for
/// it.
pub async fn reserve_for_parsing(
    bytes: usize,
    memory: &MemoryBudget,
    within: Option<Duration>,
) -> proto::Result<ReservedMemory> {
    check_length(bytes)?;
    let parsing = (bytes * PARSING).min(memory.bytes_max() / 2);
    memory.reserve(parsing.max(bytes * PARSED), within).await
}

/// Parses a text on a blocking thread. Returns the result and `room`, the reserved memory, which
/// is reduced to what the parsed text needs.
pub async fn parse_long(
    sql: String,
    room: ReservedMemory,
    env: &Env,
) -> (SqlResult<Vec<ParsedStatement>>, ReservedMemory) {
    parse_on_thread(sql.len(), move || parse(&sql), room, env).await
}

/// Runs a parser of texts with `bytes` bytes on a blocking thread. Returns the result and `room`,
/// the reserved memory, which is reduced to what the result needs.
async fn parse_on_thread<T: Send + 'static>(
    bytes: usize,
    parse: impl FnOnce() -> T + Send + 'static,
    mut room: ReservedMemory,
    env: &Env,
) -> (T, ReservedMemory) {
    env.blocking(move || {
        let parsed = parse();
        // After an interrupt the thread continues, and so does the use of its memory.
        room.shrink_to(bytes * PARSED);
        (parsed, room)
    })
    .await
}

/// Parses the text of a gRPC call. Returns the statements and the memory reserved for them. The
/// caller must not release the memory before the statements are dropped.
pub async fn parse_call(
    sql: &str,
    memory: &MemoryBudget,
    env: &Env,
) -> proto::Result<(Vec<ParsedStatement>, Option<ReservedMemory>)> {
    let text = sql.to_owned();
    let parse = move || parse(&text).map_err(|error| error.error);
    parse_call_of(sql.len(), parse, memory, env).await
}

/// Runs the parser of a gRPC call whose texts together have `bytes` bytes. Returns the result and
/// the memory reserved for it. The caller must not release the memory before the result is
/// dropped.
pub async fn parse_call_of<T: Send + 'static>(
    bytes: usize,
    parse: impl FnOnce() -> proto::Result<T> + Send + 'static,
    memory: &MemoryBudget,
    env: &Env,
) -> proto::Result<(T, Option<ReservedMemory>)> {
    if bytes <= LONG_TEXT_BYTES {
        return Ok((parse()?, None));
    }
    let room = reserve_for_parsing(bytes, memory, None).await?;
    let (parsed, room) = parse_on_thread(bytes, parse, room, env).await;
    Ok((parsed?, Some(room)))
}

/// Returns true if the planning of a SELECT takes so much time that it must run on a blocking
/// thread.
pub fn is_long(select: &Select) -> bool {
    let mut nodes = 0;
    let scalars = select.items.iter().filter_map(|item| match item {
        SelectItem::Expr { expr: SelectExpr::Scalar(expr), .. } => Some(expr),
        _ => None,
    });
    // The walk ends when the count exceeds the limit.
    scalars.chain(&select.filter).any(|expr| {
        expr.any(&mut |_| {
            nodes += 1;
            nodes > LONG_NODES
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::{Limit, Refusals};
    use crate::sql::limits::STATEMENT_BYTES_MAX;

    #[tokio::test(start_paused = true)]
    async fn a_long_text_is_parsed_in_half_of_the_memory_and_one_over_the_limit_in_none() {
        const ALL: usize = 10 << 20;
        let (env, refusals) = (Env::real(), Refusals::default());
        let memory = MemoryBudget::new(Limit::SessionMemory, ALL, refusals);
        let long = format!("SELECT '{}'", "x".repeat(200_000));
        let room = reserve_for_parsing(long.len(), &memory, None).await.expect("room");
        assert_eq!(memory.free_bytes(), ALL / 2);
        let (parsed, room) = parse_long(long.clone(), room, &env).await;
        assert_eq!(parsed.expect("a statement").len(), 1);
        assert_eq!((ALL - memory.free_bytes()) >> 10, (PARSED * long.len()).div_ceil(1024));
        let all = memory.reserve(memory.free_bytes(), None).await.expect("room");
        let refused = parse_call(&long, &memory, &env).await.err().expect("no room");
        assert_eq!(refused.code.sqlstate(), "53200");
        let longer = "x".repeat(STATEMENT_BYTES_MAX + 1);
        let refused = parse_call(&longer, &memory, &env).await.err().expect("too long");
        assert_eq!(refused.code.sqlstate(), "54000");
        assert!(parse_call("SELECT 1", &memory, &env).await.is_ok(), "a short one goes on");
        drop((room, all));
        let (parsed, room) = parse_call(&long, &memory, &env).await.expect("room");
        assert!(parsed.len() == 1 && room.is_some());
    }
}
