//! The copies of a bucket on two projectors, read by SHOW COPIES.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use tokio_postgres::Client;

use super::sql;

/// The node ids of the projectors.
pub const PROJECTORS: [u64; 2] = [101, 102];
/// The time limit of each wait, long enough for a debug build on a busy machine with killed
/// processes.
const PATIENCE: Duration = Duration::from_secs(120);

/// Returns the role of each of the bucket's projectors.
pub async fn roles(client: &Client) -> BTreeMap<u64, String> {
    let rows = sql::simple(client, "SHOW COPIES").await.unwrap_or_default();
    let role = |row: &Vec<Option<String>>| {
        let projector = row[1].as_ref()?.parse().ok()?;
        Some((projector, row[2].clone()?))
    };
    rows.iter().filter_map(role).collect()
}

/// Waits until the roles of the projectors satisfy a condition; returns them.
pub async fn until(
    client: &Client,
    what: &str,
    is_so: impl Fn(&BTreeMap<u64, String>) -> bool,
) -> BTreeMap<u64, String> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let roles = roles(client).await;
        if is_so(&roles) {
            return roles;
        }
        assert!(Instant::now() < deadline, "{what}: {roles:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Waits until both copies are in sync; returns the leading projector and the other.
pub async fn in_sync(client: &Client) -> (u64, u64) {
    let both = |roles: &BTreeMap<u64, String>| {
        let values: BTreeSet<&str> = roles.values().map(String::as_str).collect();
        roles.len() == 2 && values == BTreeSet::from(["leader", "in sync"])
    };
    let roles = until(client, "both copies are in sync", both).await;
    let leader = *roles.iter().find(|(_, role)| *role == "leader").expect("a leader").0;
    (leader, if leader == PROJECTORS[0] { PROJECTORS[1] } else { PROJECTORS[0] })
}

/// Returns the condition that a projector leads.
pub fn is_led_by(node: u64) -> impl Fn(&BTreeMap<u64, String>) -> bool {
    move |roles| roles.get(&node).is_some_and(|role| role == "leader")
}
