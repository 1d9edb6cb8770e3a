//! Entry point for fuzzers of a role's settings file.

use proto::env::Env;
use proto::model::node::Role;

use super::role::settings_of_text;

/// Reads `data` as the settings file of each role.
pub fn settings(env: &Env, data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    for role in [Role::Coordinator, Role::Projector, Role::Indexer, Role::Router] {
        let _ = settings_of_text(env, role, text);
    }
}
