//! Entry point for fuzzers: the settings file of a role.

use proto::env::Env;
use proto::model::node::Role;

use super::role::settings_of_text;

/// Reads a settings file as each role does.
pub fn settings(env: &Env, data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    for role in [Role::Coordinator, Role::Projector, Role::Indexer, Role::Router] {
        let _ = settings_of_text(env, role, text);
    }
}
