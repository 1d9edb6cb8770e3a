//! The settings that limit clients. A router and `sextant dev` have them.

use std::time::Duration;

use clap::Arg;

use crate::flow::ClientLimits;

/// The maximum of a size in MiB, which is more memory or disk than any machine has.
pub const MIB_MAX: u64 = 1 << 30;

/// The limits of clients as flags or as keys of a settings file.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub struct LimitArgs {
    /// Failed log-ins that an address may have in a minute; 0 stands for any number
    #[arg(long, env = "SEXTANT_LOGIN_FAILURES_MAX", value_name = "N")]
    login_failures_max: Option<u32>,
    /// SQL sessions of a user, unless ALTER USER gives it a limit of its own
    #[arg(long, env = "SEXTANT_USER_SESSIONS_MAX", value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    user_sessions_max: Option<u32>,
    /// Statements, gRPC calls and HTTP requests of a user at once, unless ALTER USER gives it a limit of its own
    #[arg(long, env = "SEXTANT_USER_STATEMENTS_MAX", value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    user_statements_max: Option<u32>,
    /// Statements, gRPC calls and HTTP requests of all clients at once
    #[arg(long, env = "SEXTANT_STATEMENTS_MAX", value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    statements_max: Option<u32>,
    /// Connections of an address at all ports together. Unless it is given, loopback addresses have only the limits of the ports
    #[arg(long, env = "SEXTANT_ADDRESS_CONNECTIONS_MAX", value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    address_connections_max: Option<u32>,
    /// Definitions of all users that the router sends to the coordinators at once; further ones wait
    #[arg(long, env = "SEXTANT_DEFINITIONS_MAX", value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    definitions_max: Option<u32>,
    /// Definitions of one user that the router sends to the coordinators at once; further ones wait
    #[arg(long, env = "SEXTANT_USER_DEFINITIONS_MAX", value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    user_definitions_max: Option<u32>,
    /// Memory limit of statement texts and large messages of all SQL sessions, in MiB
    #[arg(long, env = "SEXTANT_SESSION_MEMORY_TOTAL_MB", value_name = "MIB", value_parser = clap::value_parser!(u64).range(1..=MIB_MAX))]
    session_memory_total_mb: Option<u64>,
    /// Memory limit of large gRPC messages of all clients, in MiB
    #[arg(long, env = "SEXTANT_GRPC_MEMORY_TOTAL_MB", value_name = "MIB", value_parser = clap::value_parser!(u64).range(1..=MIB_MAX))]
    grpc_memory_total_mb: Option<u64>,
    /// Time in seconds that a suspended result waits for its client; 0 stands for ever
    #[arg(long, env = "SEXTANT_CURSOR_IDLE_S", value_name = "S")]
    cursor_idle_s: Option<u32>,
    /// Default of idle_session_timeout, in seconds: a session without a statement ends after it; 0 stands for never
    #[arg(long, env = "SEXTANT_IDLE_SESSION_S", value_name = "S")]
    idle_session_s: Option<u32>,
    /// Time in seconds after which a client that takes no bytes of its answer is disconnected; 0 stands for never
    #[arg(long, env = "SEXTANT_WRITE_STALL_S", value_name = "S")]
    write_stall_s: Option<u32>,
    /// Time in seconds after which a gRPC connection without a call ends; 0 stands for never
    #[arg(long, env = "SEXTANT_GRPC_IDLE_S", value_name = "S")]
    grpc_idle_s: Option<u32>,
}

/// The flags that limit clients, each with its default.
const DEFAULTS: [(&str, &str); 13] = [
    ("login-failures-max", "10"),
    ("user-sessions-max", "200"),
    ("user-statements-max", "100"),
    ("statements-max", "1000"),
    ("address-connections-max", "256"),
    ("definitions-max", "16"),
    ("user-definitions-max", "4"),
    ("session-memory-total-mb", "512"),
    ("grpc-memory-total-mb", "256"),
    ("cursor-idle-s", "600"),
    ("idle-session-s", "0"),
    ("write-stall-s", "300"),
    ("grpc-idle-s", "600"),
];

/// Returns the default of a flag that limits clients; `None` for any other flag.
pub fn default_of(flag: &str) -> Option<&'static str> {
    DEFAULTS.iter().find(|(known, _)| *known == flag).map(|(_, value)| *value)
}

/// Adds the default value to the help of a flag that limits clients.
pub fn with_default(argument: Arg) -> Arg {
    let value = argument.get_long().and_then(default_of);
    match (value, argument.get_help().map(ToString::to_string)) {
        (Some(value), Some(help)) => {
            argument.help(format!("{help} [default: {value}]")).hide_env_values(true)
        }
        _ => argument,
    }
}

impl LimitArgs {
    /// Returns each flag, with true if it was given on the command line.
    pub fn given(&self) -> [(&'static str, bool); DEFAULTS.len()] {
        let given = [
            self.login_failures_max.is_some(),
            self.user_sessions_max.is_some(),
            self.user_statements_max.is_some(),
            self.statements_max.is_some(),
            self.address_connections_max.is_some(),
            self.definitions_max.is_some(),
            self.user_definitions_max.is_some(),
            self.session_memory_total_mb.is_some(),
            self.grpc_memory_total_mb.is_some(),
            self.cursor_idle_s.is_some(),
            self.idle_session_s.is_some(),
            self.write_stall_s.is_some(),
            self.grpc_idle_s.is_some(),
        ];
        std::array::from_fn(|n| (DEFAULTS[n].0, given[n]))
    }

    /// Returns the limits of clients. A value comes from a flag, otherwise from the settings
    /// file, otherwise from the defaults.
    pub fn limits(&self, file: &Self) -> ClientLimits {
        let usual = ClientLimits::default();
        let bytes = |own: Option<u64>, file: Option<u64>, usual: usize| {
            own.or(file).map_or(usual, |mib| (mib << 20) as usize)
        };
        let time = |own: Option<u32>, file: Option<u32>, usual| match own.or(file) {
            None => usual,
            Some(0) => None,
            Some(seconds) => Some(Duration::from_secs(seconds.into())),
        };
        ClientLimits {
            login_failures_max: self
                .login_failures_max
                .or(file.login_failures_max)
                .unwrap_or(usual.login_failures_max),
            user_sessions_max: self
                .user_sessions_max
                .or(file.user_sessions_max)
                .unwrap_or(usual.user_sessions_max),
            user_statements_max: self
                .user_statements_max
                .or(file.user_statements_max)
                .unwrap_or(usual.user_statements_max),
            statements_max: self
                .statements_max
                .or(file.statements_max)
                .unwrap_or(usual.statements_max),
            address_connections_max: self.address_connections_max.or(file.address_connections_max),
            definitions_max: self
                .definitions_max
                .or(file.definitions_max)
                .unwrap_or(usual.definitions_max),
            user_definitions_max: self
                .user_definitions_max
                .or(file.user_definitions_max)
                .unwrap_or(usual.user_definitions_max),
            session_memory_bytes: bytes(
                self.session_memory_total_mb,
                file.session_memory_total_mb,
                usual.session_memory_bytes,
            ),
            grpc_memory_bytes: bytes(
                self.grpc_memory_total_mb,
                file.grpc_memory_total_mb,
                usual.grpc_memory_bytes,
            ),
            cursor_idle: time(self.cursor_idle_s, file.cursor_idle_s, usual.cursor_idle),
            session_idle: time(self.idle_session_s, file.idle_session_s, usual.session_idle),
            write_stall: time(self.write_stall_s, file.write_stall_s, usual.write_stall),
            grpc_idle: time(self.grpc_idle_s, file.grpc_idle_s, usual.grpc_idle),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::settings_file;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        limits: LimitArgs,
    }

    fn parsed(flags: &[String]) -> LimitArgs {
        let flags = ["dev".to_owned()].into_iter().chain(flags.iter().cloned());
        Command::try_parse_from(flags).expect("known flags").limits
    }

    #[test]
    fn limits_have_flags_keys_and_defaults() {
        let nothing = LimitArgs::default();
        let as_told: Vec<_> =
            DEFAULTS.iter().map(|(flag, value)| format!("--{flag}={value}")).collect();
        let told = parsed(&as_told);
        assert!(told.given().iter().all(|(_, given)| *given));
        let mut usual = ClientLimits::default();
        assert_eq!(nothing.limits(&nothing), usual);
        usual.address_connections_max = Some(ClientLimits::ADDRESS_CONNECTIONS_MAX);
        assert_eq!(told.limits(&nothing), usual);
        for (flag, _) in DEFAULTS {
            let key = flag.replace('-', "_");
            let from_file: LimitArgs = settings_file::read(&format!("{key} = 7")).expect("a key");
            let from_flag = parsed(&[format!("--{flag}=7")]);
            assert_eq!(from_file.limits(&nothing), from_flag.limits(&nothing), "{flag}");
            assert_ne!(from_flag.limits(&nothing), ClientLimits::default(), "{flag}");
            let five = parsed(&[format!("--{flag}=5")]);
            assert_eq!(five.limits(&from_file), five.limits(&nothing), "a flag counts first");
            let given: Vec<_> = five.given().into_iter().filter(|(_, given)| *given).collect();
            assert_eq!(given, [(flag, true)]);
        }
    }
}
