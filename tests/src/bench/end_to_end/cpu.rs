//! The CPU time of servers, from Linux's `/proc/PID/stat`.

use super::super::Outcome;

/// The duration of a clock tick in microseconds. Linux reports CPU time in units of USER_HZ, which
/// is 100 on x86-64 and on ARM.
const US_PER_TICK: f64 = 10_000.0;

/// The processes of a server.
#[derive(Clone, Debug)]
pub enum Processes {
    /// These processes.
    These(Vec<u32>),
    /// A process with its children, including those that have ended.
    Family(u32),
}

impl Processes {
    /// Returns the CPU time that the processes have used since their start, in microseconds.
    pub fn cpu_us(&self) -> Outcome<f64> {
        let ticks = match self {
            Self::These(ids) => {
                let ticks = ids.iter().map(|id| Ok(read(*id)?.own_ticks));
                ticks.sum::<Outcome<u64>>()?
            }
            Self::Family(parent) => {
                let parent_stat = read(*parent)?;
                let children = all()?.into_iter().filter(|stat| stat.parent == *parent);
                let of_children: u64 = children.map(|stat| stat.own_ticks).sum();
                parent_stat.own_ticks + parent_stat.reaped_ticks + of_children
            }
        };
        Ok(ticks as f64 * US_PER_TICK)
    }
}

/// The required fields of `/proc/PID/stat`.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    parent: u32,
    /// The CPU time in user and system mode, in ticks.
    own_ticks: u64,
    /// The CPU time of ended children, in ticks.
    reaped_ticks: u64,
}

impl Stat {
    /// Parses the text of the file. The second field is the process's name in parentheses, which
    /// may itself contain spaces and parentheses, so the fields are counted from the last closing
    /// one.
    fn parse(text: &str) -> Option<Self> {
        let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
        let ticks = |field: usize| fields.get(field)?.parse::<u64>().ok();
        Some(Self {
            parent: fields.get(1)?.parse().ok()?,
            own_ticks: ticks(11)? + ticks(12)?,
            reaped_ticks: ticks(13)? + ticks(14)?,
        })
    }
}

fn read(id: u32) -> Outcome<Stat> {
    let text = std::fs::read_to_string(format!("/proc/{id}/stat"))
        .map_err(|error| format!("read the CPU time of process {id}: {error}"))?;
    Stat::parse(&text).ok_or_else(|| format!("/proc/{id}/stat has an unknown form").into())
}

/// Returns all processes of the machine, without those that end during the call.
fn all() -> Outcome<Vec<Stat>> {
    let mut stats = Vec::new();
    for found in std::fs::read_dir("/proc")? {
        let name = found?.file_name();
        let id = name.to_str().and_then(|name| name.parse::<u32>().ok());
        stats.extend(id.and_then(|id| read(id).ok()));
    }
    Ok(stats)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_are_counted_behind_the_name() {
        let text = "77 (a (b) c) S 42 77 77 0 -1 4194560 1 2 3 4 150 50 7 5 20 0 1 0 99";
        let stat = Stat { parent: 42, own_ticks: 200, reaped_ticks: 12 };
        assert_eq!(Stat::parse(text), Some(stat));
        assert_eq!(Stat::parse("77 (short) S 42"), None);
        assert_eq!(Stat::parse(""), None);
    }

    #[test]
    fn this_process_has_a_cpu_time() {
        let id = std::process::id();
        assert!(Processes::These(vec![id]).cpu_us().is_ok());
        assert!(Processes::Family(id).cpu_us().is_ok());
        assert!(Processes::These(vec![u32::MAX]).cpu_us().is_err());
    }
}
