//! Long query texts of clients. They are parsed within the common memory budget of clients, and
//! parsed and planned on blocking threads.

use std::time::Duration;

use proto::env::Env;

use super::ast::{Select, SelectExpr, SelectItem};
use super::error::SqlResult;
use super::limits::check_length;
use super::parse::{ParsedStatement, parse};
use crate::flow::{Room, RoomBudget};

/// The length from which a query text is parsed on a blocking thread, in bytes. A shorter text
/// takes at most a few milliseconds.
pub const LONG_TEXT_BYTES: usize = 16 << 10;

/// The number of operands and operators from which a statement is planned on a blocking thread. A
/// smaller statement takes less than a millisecond.
pub const LONG_NODES: usize = 2000;

/// The ratio of the memory of a text during parsing, mostly for its tokens, to its length.
const PARSING: usize = 90;

/// The ratio of the memory of a parsed text to its length.
pub const PARSED: usize = 10;

/// Reserves the memory for parsing a text. A text above the length limit does not wait. Any other
/// text takes at most half of the budget, so that it does not delay all others.
pub async fn room_for(
    bytes: usize,
    memory: &RoomBudget,
    within: Option<Duration>,
) -> proto::Result<Room> {
    check_length(bytes)?;
    let parsing = (bytes * PARSING).min(memory.bytes_max() / 2);
    memory.take(parsing.max(bytes * PARSED), within).await
}

/// Parses a text on a blocking thread. The returned room is reduced to that of the parsed text.
pub async fn parse_long(
    sql: String,
    room: Room,
    env: &Env,
) -> (SqlResult<Vec<ParsedStatement>>, Room) {
    away(sql.len(), move || parse(&sql), room, env).await
}

/// Runs the parser of texts of `bytes` on a blocking thread. The returned room is reduced to that
/// of the parsed texts.
async fn away<T: Send + 'static>(
    bytes: usize,
    parse: impl FnOnce() -> T + Send + 'static,
    mut room: Room,
    env: &Env,
) -> (T, Room) {
    env.blocking(move || {
        let parsed = parse();
        // An interrupt leaves the thread and its memory.
        room.shrink_to(bytes * PARSED);
        (parsed, room)
    })
    .await
}

/// Parses the text of a gRPC call; returns the statements, and their memory, which the caller must
/// hold as long as them.
pub async fn parse_call(
    sql: &str,
    memory: &RoomBudget,
    env: &Env,
) -> proto::Result<(Vec<ParsedStatement>, Option<Room>)> {
    let text = sql.to_owned();
    let parse = move || parse(&text).map_err(|error| error.error);
    parse_call_of(sql.len(), parse, memory, env).await
}

/// Runs the parser of a gRPC call whose texts have `bytes` together; returns the result, and its
/// memory, which the caller must hold as long as the result.
pub async fn parse_call_of<T: Send + 'static>(
    bytes: usize,
    parse: impl FnOnce() -> proto::Result<T> + Send + 'static,
    memory: &RoomBudget,
    env: &Env,
) -> proto::Result<(T, Option<Room>)> {
    if bytes <= LONG_TEXT_BYTES {
        return Ok((parse()?, None));
    }
    let room = room_for(bytes, memory, None).await?;
    let (parsed, room) = away(bytes, parse, room, env).await;
    Ok((parsed?, Some(room)))
}

/// True if planning a SELECT takes so much time that it must run on a blocking thread.
pub fn is_long(select: &Select) -> bool {
    let mut nodes = 0;
    let scalars = select.items.iter().filter_map(|item| match item {
        SelectItem::Expr { expr: SelectExpr::Scalar(expr), .. } => Some(expr),
        _ => None,
    });
    // The count ends the walk.
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
        let memory = RoomBudget::new(Limit::SessionMemory, ALL, refusals);
        let long = format!("SELECT '{}'", "x".repeat(200_000));
        let room = room_for(long.len(), &memory, None).await.expect("room");
        assert_eq!(memory.free_bytes(), ALL / 2);
        let (parsed, room) = parse_long(long.clone(), room, &env).await;
        assert_eq!(parsed.expect("a statement").len(), 1);
        assert_eq!((ALL - memory.free_bytes()) >> 10, (PARSED * long.len()).div_ceil(1024));
        let all = memory.take(memory.free_bytes(), None).await.expect("room");
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
