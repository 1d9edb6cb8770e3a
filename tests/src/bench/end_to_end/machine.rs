//! The description of the machine and the day of a run.

use std::process::Command;

use super::super::Outcome;
use super::figures::Machine;

/// Returns the description of this machine.
pub fn this() -> Outcome<Machine> {
    let cores = std::thread::available_parallelism()?.get() as u64;
    let cpus = std::fs::read_to_string("/proc/cpuinfo")?;
    let memory = std::fs::read_to_string("/proc/meminfo")?;
    let kib = value(&memory, "MemTotal").and_then(|text| text.split(' ').next()?.parse().ok());
    let kib: u64 = kib.ok_or("no MemTotal in /proc/meminfo")?;
    let cpu_model = value(&cpus, "model name").unwrap_or("unknown").to_owned();
    Ok(Machine { cores, cpu_model, memory_mb: kib / 1024 })
}

/// Returns the present day in UTC, as 2001-12-31.
pub fn day() -> Outcome<String> {
    let told = Command::new("date").args(["-u", "+%Y-%m-%d"]).output()?;
    Ok(String::from_utf8(told.stdout)?.trim().to_owned())
}

/// Returns the value of the first line `key : value`; `None` if there is none.
fn value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let of_line = |line: &'a str| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == key).then_some(value.trim())
    };
    text.lines().find_map(of_line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_stands_behind_its_key() {
        let text = "processor\t: 0\nmodel name\t: A CPU: fast\nmodel name\t: another\n";
        assert_eq!(value(text, "model name"), Some("A CPU: fast"));
        assert_eq!(value(text, "model"), None);
    }
}
