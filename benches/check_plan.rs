//! How long `check` and `plan` take for generated topologies, and how much memory: each size in a
//! fresh process, against a plain YAML parse by Python's C loader where that is installed.
//!
//! Domains are written out one by one, or counted in one entry whose keys hold expressions and come
//! from defaults and a group. `cargo bench --bench check_plan [-- DOMAINS…]`; fails when some sizes
//! take longer or more than they may, or ten times the domains far more than ten times as long.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Instant;

use labrig::input::{self, Loaded, Options};
use labrig::model::{Acceleration, Domain, LabPaths, LabSecret, Observed, Platform, Topology};
use labrig::plan::{Desired, GuestFiles, Plan, plan};
use labrig::render::{Scope, TemplateError};

/// Argument that makes this program measure one file and print a line.
const MEASURE: &str = "--measure";

/// Domains on one subnet.
const PER_VSWITCH: usize = 200;

/// Runs of each size; the best counts, since only noise makes one slower.
const RUNS: usize = 5;

/// The bars: so many domains, in so many milliseconds and MiB.
const BARS: [(usize, f64, f64); 2] = [(1_000, 200.0, 100.0), (10_000, 2_000.0, 1_000.0)];

/// How many times as long a domain may take among 10,000 as among 1,000: in a cache that everything
/// fits into, it would be once.
const GROWTH: f64 = 2.0;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let result = match args.as_slice() {
        [flag, file] if flag == MEASURE => measure(Path::new(file)),
        _ => compare(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Measures all sizes.
fn compare(args: &[String]) -> Result<(), Box<dyn Error>> {
    let mut sizes: Vec<usize> = args.iter().filter_map(|arg| arg.parse().ok()).collect();
    if sizes.is_empty() {
        sizes = vec![100, 1_000, 10_000];
    }
    let directory = tempfile::tempdir()?;
    println!(
        "{:>8}  {:>10}  {:>10}  {:>9}  {:>9}  {:>12}",
        "domains", "they are", "check, ms", "plan, ms", "peak, MiB", "Python, ms"
    );
    let mut over = Vec::new();
    let mut totals = BTreeMap::new();
    let kinds: [(&str, Generator); 2] = [("written", written), ("counted", counted)];
    let rows = kinds.into_iter();
    for (size, (kind, topology)) in rows.flat_map(|kind| sizes.iter().map(move |n| (*n, kind))) {
        let file = directory.path().join("topology.yaml");
        std::fs::create_dir_all(directory.path().join("templates"))?;
        std::fs::write(directory.path().join("templates/a.tera"), TEMPLATE)?;
        std::fs::write(&file, topology(size)?)?;
        let (mut check, mut plan, mut peak) = (f64::INFINITY, f64::INFINITY, 0.0_f64);
        for _ in 0..RUNS {
            let output = Command::new(std::env::current_exe()?)
                .arg(MEASURE)
                .arg(&file)
                .output()?;
            let text = String::from_utf8(output.stdout)?;
            let figures: Vec<f64> = text
                .split_whitespace()
                .map(str::parse)
                .collect::<Result<_, _>>()?;
            let [checked, planned, mib] = figures[..] else {
                let complaint = String::from_utf8_lossy(&output.stderr);
                return Err(format!("the measuring process failed: {complaint}").into());
            };
            check = check.min(checked);
            plan = plan.min(planned);
            peak = peak.max(mib);
        }
        let python = python(&file).map_or("-".to_owned(), |millis| format!("{millis:.0}"));
        println!("{size:>8}  {kind:>10}  {check:>10.1}  {plan:>9.1}  {peak:>9.1}  {python:>12}");
        for (domains, millis, mib) in BARS {
            if size == domains && (check + plan > millis || peak > mib) {
                over.push(format!(
                    "{domains} domains may take {millis} ms and {mib} MiB"
                ));
            }
        }
        totals.insert((kind, size), check + plan);
        if let (10_000, Some(small)) = (size, totals.get(&(kind, 1_000)))
            && check + plan > 10.0 * GROWTH * small
        {
            over.push(format!(
                "10,000 domains may take {} times as long as 1,000",
                10.0 * GROWTH
            ));
        }
    }
    match over.is_empty() {
        true => Ok(()),
        false => Err(over.join("; ").into()),
    }
}

/// Checks, resolves and plans a file, then prints milliseconds of both and peak MiB of this process.
fn measure(file: &Path) -> Result<(), Box<dyn Error>> {
    let start = Instant::now();
    let loaded = input::load_topology(file, &Options::default())?;
    let check = start.elapsed().as_secs_f64() * 1e3;
    let start = Instant::now();
    let plan = plan_of(&loaded)?;
    let planning = start.elapsed().as_secs_f64() * 1e3;
    let status = std::fs::read_to_string("/proc/self/status")?;
    let peak = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .ok_or("no VmHWM")?;
    let kib: f64 = peak.trim().trim_end_matches(" kB").parse()?;
    std::hint::black_box(plan.actions.len());
    println!("{check} {planning} {}", kib / 1024.0);
    Ok(())
}

/// The plan of a lab that is not there yet: all definitions, keys, seeds and files.
fn plan_of(loaded: &Loaded<Topology>) -> Result<Plan, TemplateError> {
    let scope = Scope::new(&loaded.value);
    let files = |domain: &Domain| -> Result<GuestFiles, TemplateError> {
        let context = scope.context(Some(domain), &[]);
        let render = |file: &labrig::model::GuestFile| {
            let templates = &loaded.templates;
            let text = templates.render_with(&file.template, &file.vars, &context)?;
            Ok((file.to.clone(), file.mode, text.into_bytes()))
        };
        domain.files.iter().map(render).collect()
    };
    let paths = LabPaths::new("/var/lib/labrig/labs/large".into());
    let secret = LabSecret::new([7; 32]);
    let acceleration = Acceleration::Emulation;
    let desired = Desired::of(
        &loaded.value,
        &paths,
        &Platform::unknown(acceleration),
        &secret,
        files,
    )?;
    Ok(plan(&desired, &Observed::default()))
}

/// What Python's C loader needs just to parse the file.
fn python(file: &Path) -> Option<f64> {
    let script = "import sys, time, yaml\nstart = time.perf_counter()\n\
        yaml.load(open(sys.argv[1]), yaml.CLoader)\nprint((time.perf_counter() - start) * 1e3)";
    let output = Command::new("python3")
        .arg("-c")
        .arg(script)
        .arg(file)
        .output()
        .ok()?;
    String::from_utf8(output.stdout).ok()?.trim().parse().ok()
}

const TEMPLATE: &str = "name = {{ domain.name }}\nchildren = {{ vars.children }}\n";

/// Writes a topology of so many domains.
type Generator = fn(usize) -> Result<String, std::fmt::Error>;

/// A topology of `size` domains in one entry, alike but for what expressions say.
fn counted(size: usize) -> Result<String, std::fmt::Error> {
    Ok(format!(
        "version: 1\nname: large\nvars: {{domains: {size}}}\nimages:\n  micro: {{build: {{micro: {{}}}}}}\n\
         vswitches:\n  front: {{subnet: 10.0.0.0/16}}\n  back: {{subnet: 172.16.0.0/16, mtu: 9000}}\n\
         defaults: {{image: micro, disks: [{{name: data, size: 1GiB}}]}}\n\
         groups: {{web: {{split: {{cpus: 1, memory: 160MiB}}}}}}\ndomains:\n  d:\n    \
         count: \"{{{{ vars.domains }}}}\"\n    groups: [web]\n    \
         vnets: [{{vswitch: front}}, {{vswitch: back}}]\n    \
         files: [{{template: a.tera, to: \"/etc/{{{{ name }}}}\", vars: {{children: 650}}}}]\n"
    ))
}

/// A topology of `size` domains, each written out, with two vnets, a disk and a file.
fn written(size: usize) -> Result<String, std::fmt::Error> {
    let mut text =
        "version: 1\nname: large\nimages:\n  micro: {build: {micro: {}}}\nvswitches:\n".to_owned();
    for i in 0..size.div_ceil(PER_VSWITCH) {
        writeln!(
            text,
            "  front{i}: {{subnet: 10.{}.{}.0/24}}",
            i / 256,
            i % 256
        )?;
        writeln!(
            text,
            "  back{i}: {{subnet: 172.{}.{}.0/24, mtu: 9000}}",
            16 + i / 256,
            i % 256
        )?;
    }
    text.push_str("domains:\n");
    for i in 0..size {
        let vswitch = i / PER_VSWITCH;
        writeln!(
            text,
            "  d{i}:\n    image: micro\n    split: {{cpus: 1, memory: 160MiB}}\n    \
             disks: [{{name: data, size: 1GiB}}]\n    \
             vnets:\n      - {{vswitch: front{vswitch}}}\n      - {{vswitch: back{vswitch}}}\n    \
             files:\n      - {{template: a.tera, to: /etc/a, vars: {{children: 650}}}}"
        )?;
    }
    Ok(text)
}
