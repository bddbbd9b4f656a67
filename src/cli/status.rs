//! `labrig status`: labs and their domains, as a hypervisor's own list shows them.

use std::net::IpAddr;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use comfy_table::{CellAlignment, Table};
use jiff::Timestamp;
use serde::Serialize;

use super::error::{Kind, Result};
use super::lab::{HostKind, OpenLab, Record, embedded_host, no_such_lab};
use super::state::State;
use super::{Global, output};
use crate::model::{Acceleration, Domain, DomainStats, Name};
use crate::ports::Hypervisor;

/// How long the CPU use is watched.
const SAMPLE: Duration = Duration::from_millis(250);

/// Arguments of `status`.
#[derive(Debug, clap::Args)]
pub(super) struct StatusArgs {
    /// Name of a lab; all labs when left out
    lab: Option<Name>,
}

/// A lab in the list.
#[derive(Serialize)]
#[serde(untagged)]
enum Entry {
    /// A lab that can be looked at.
    Lab(LabStatus),
    /// A lab that was never made whole, or was damaged since.
    Broken { lab: Name, problem: String },
}

#[derive(Serialize)]
struct LabStatus {
    lab: Name,
    host: HostKind,
    acceleration: Option<Acceleration>,
    domains: Vec<DomainStatus>,
}

#[derive(Serialize)]
struct DomainStatus {
    name: Name,
    kind: &'static str,
    state: String,
    vcpus: Option<u32>,
    memory_mib: Option<u64>,
    /// Of one host CPU, in percent; over 100 with several vCPUs at work.
    cpu_percent: f64,
    uptime_seconds: Option<u64>,
    addresses: Vec<String>,
}

pub(super) fn run(global: &Global, args: &StatusArgs) -> Result<ExitCode> {
    let state = State::of(global.state_dir.as_deref())?;
    let names = match &args.lab {
        Some(name) => vec![name.clone()],
        None => state.lab_names()?,
    };
    let mut labs = Vec::new();
    let mut code = ExitCode::SUCCESS;
    for name in &names {
        let found = match Record::read(&state.lab(name)) {
            Ok(Some(record)) => examine(&state, record),
            Ok(None) => Err(no_such_lab(&state, name)),
            Err(failure) => Err(failure),
        };
        match found {
            Ok(status) => labs.push(Entry::Lab(status)),
            Err(failure) if args.lab.is_some() => return Err(failure),
            // One broken lab must not hide the others.
            Err(failure) => {
                labs.push(Entry::Broken {
                    lab: name.clone(),
                    problem: failure.line(),
                });
                code = Kind::Host.exit_code();
            }
        }
    }
    if global.json {
        output::print_json(&labs)?;
    } else if labs.is_empty() {
        output::print("no labs")?;
    } else {
        for entry in &labs {
            output::print(match entry {
                Entry::Lab(lab) => draw(lab),
                Entry::Broken { lab, problem } => {
                    format!("lab {lab} is broken: {problem}; `labrig down {lab}` removes it")
                }
            })?;
        }
    }
    Ok(code)
}

fn examine(state: &State, record: Record) -> Result<LabStatus> {
    let paths = state.lab(&record.topology.lab.name);
    let runs = match record.host {
        HostKind::Embedded => embedded_host(state, &paths).is_running()?,
        HostKind::System(_) => true,
    };
    let (lab, host, acceleration) = (
        record.topology.lab.name.clone(),
        record.host.clone(),
        record.acceleration,
    );
    let domains = if runs {
        sample(&OpenLab::open(state, record, false)?)
    } else {
        record
            .topology
            .domains
            .iter()
            .map(|domain| status_of(domain, None, 0.0))
            .collect()
    };
    Ok(LabStatus {
        lab,
        host,
        acceleration,
        domains,
    })
}

fn sample(lab: &OpenLab) -> Vec<DomainStatus> {
    let domains = &lab.record.topology.domains;
    let stats = |domain: &Domain| {
        let guest = domain.guest()?;
        lab.hypervisor.domain_stats(&guest.libvirt_name).ok()
    };
    let began = Instant::now();
    let before: Vec<_> = domains.iter().map(stats).collect();
    std::thread::sleep(SAMPLE);
    let elapsed = began.elapsed();
    domains
        .iter()
        .zip(before)
        .map(|(domain, before)| {
            let after = stats(domain);
            let used = match (&before, &after) {
                (Some(before), Some(after)) => after.cpu_time_ns.saturating_sub(before.cpu_time_ns),
                _ => 0,
            };
            status_of(
                domain,
                after,
                100.0 * used as f64 / elapsed.as_nanos() as f64,
            )
        })
        .collect()
}

fn status_of(domain: &Domain, stats: Option<DomainStats>, cpu_percent: f64) -> DomainStatus {
    let started = stats.as_ref().and_then(|stats| stats.started);
    let split = domain.split.as_ref();
    let given = stats.as_ref().map(|stats| stats.memory);
    let memory = given.or(split.map(|split| split.memory));
    DomainStatus {
        name: domain.name.clone(),
        kind: domain.kind.word(),
        vcpus: stats
            .as_ref()
            .map(|stats| stats.vcpus)
            .or(split.map(|s| s.vcpus)),
        memory_mib: memory.map(|memory| memory.0 >> 20),
        state: match (stats, domain.guest()) {
            (Some(stats), _) => stats.state,
            (None, Some(_)) => "not there".to_owned(),
            (None, None) => "-".to_owned(),
        },
        cpu_percent,
        uptime_seconds: started.map(|started| {
            u64::try_from(Timestamp::now().duration_since(started).as_secs()).unwrap_or_default()
        }),
        addresses: domain
            .vnets
            .iter()
            .filter_map(|vnet| {
                let address = vnet.ip.map(IpAddr::from).or(vnet.ip6.map(IpAddr::from))?;
                Some(format!("{}={address}", vnet.vswitch))
            })
            .collect(),
    }
}

fn or_dash(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

fn draw(lab: &LabStatus) -> String {
    let mut table = Table::new();
    table.load_style(comfy_table::presets::NOTHING);
    table.set_header([
        "NAME",
        "KIND",
        "STATE",
        "VCPUS",
        "MEMORY",
        "CPU",
        "UPTIME",
        "ADDRESSES",
    ]);
    for domain in &lab.domains {
        table.add_row([
            domain.name.to_string(),
            domain.kind.to_owned(),
            domain.state.clone(),
            or_dash(domain.vcpus),
            or_dash(domain.memory_mib.map(|mib| format!("{mib} MiB"))),
            format!("{:.0} %", domain.cpu_percent),
            or_dash(domain.uptime_seconds.map(uptime)),
            domain.addresses.join(" "),
        ]);
    }
    for column in [3, 4, 5, 6] {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    // The last column is padded to the widest row.
    let table: Vec<_> = table
        .lines()
        .map(|line| line.trim_end().to_owned())
        .collect();
    let table = table.join("\n");
    let acceleration = lab
        .acceleration
        .map_or_else(|| "not up yet".to_owned(), |a| a.to_string());
    format!(
        "lab {} on {} ({acceleration})\n{table}",
        lab.lab,
        String::from(lab.host.clone())
    )
}

/// As in `3d 4h`, `4h 5m`, `5m 6s`, `6s`: the two largest units.
fn uptime(seconds: u64) -> String {
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds}s"),
        (0, 0, _) => format!("{minutes}m {}s", seconds % 60),
        (0, _, _) => format!("{hours}h {minutes}m"),
        _ => format!("{days}d {hours}h"),
    }
}

#[cfg(test)]
mod tests {
    use super::uptime;

    #[test]
    fn uptime_shows_two_units() {
        assert_eq!(
            [59, 61, 3_660, 90_000].map(uptime),
            ["59s", "1m 1s", "1h 1m", "1d 1h"]
        );
    }
}
