//! The command line: one file a verb, the wiring of the layers below, and the one place where
//! errors become text and exit codes.

mod bring_up;
mod check;
mod down;
mod error;
mod exec;
mod graph;
mod host;
mod image;
mod inventory;
mod lab;
mod lock;
pub mod notes;
mod output;
mod plan;
mod progress;
mod run;
mod runs;
mod schema;
mod signals;
mod ssh;
mod state;
mod status;
mod up;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// What a newcomer needs beside the list of commands.
const AFTER_HELP: &str = "\
A first round:
  labrig host doctor               what this machine lacks
  labrig up TOPOLOGY               bring the lab up
  labrig run PLAYBOOK              run the experiment; its directory is the archive
  labrig rerun runs/PLAYBOOK/RUN   run it again from there
  labrig down LAB                  remove all of the lab

Exit codes: 0 good, 1 a trial failed, a rerun differs or `plan --exit-code` found work, 2 usage, 3 bad input, 4 host or guest
failed, 5 interrupted, 70 a bug of labrig";

/// Heading of the options that all verbs have, so that a verb's own stand out.
const GLOBAL_HEADING: &str = "Options of every command";

/// Performance labs that anyone can declare, bring up and repeat.
#[derive(Debug, Parser)]
#[command(
    name = "labrig",
    version,
    propagate_version = true,
    arg_required_else_help = true,
    after_help = AFTER_HELP
)]
struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    verb: Verb,
}

/// Options of all verbs.
#[derive(Debug, Clone, clap::Args)]
struct Global {
    /// Print JSON instead of text: one object a line for events, one document for results
    #[arg(long, global = true, help_heading = GLOBAL_HEADING)]
    json: bool,
    /// Where labs and images are kept [default: /var/lib/labrig for root, else ~/.local/state/labrig]
    #[arg(
        long,
        global = true,
        help_heading = GLOBAL_HEADING,
        env = "LABRIG_STATE_DIR",
        value_name = "DIR",
        hide_env_values = true
    )]
    state_dir: Option<std::path::PathBuf>,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Check a topology or a playbook without touching anything
    Check(check::CheckArgs),
    /// Show what `up` would do, and why
    Plan(plan::PlanArgs),
    /// Bring a lab up, or bring a running one to what its file says
    Up(up::UpArgs),
    /// List labs and their domains
    Status(status::StatusArgs),
    /// Run a command on domains of a lab
    Exec(exec::ExecArgs),
    /// Open a shell on a domain with the ssh program
    Ssh(ssh::SshArgs),
    /// Run a playbook's experiment on its lab, which is brought up first and stays up
    Run(run::RunArgs),
    /// Go on with a run that is not finished
    Resume(run::ResumeArgs),
    /// Run an archived experiment again, from its archive, and say whether it was reproduced
    Rerun(run::RerunArgs),
    /// List the runs in a directory
    Runs(runs::RunsArgs),
    /// Show what a run asked, what it ran on, and what came of it
    Show(runs::ShowArgs),
    /// Take a lab down, with all that was made for it
    Down(down::DownArgs),
    /// Look after the images that labs are made from
    #[command(subcommand)]
    Image(image::ImageVerb),
    /// Draw a lab: its domains, vswitches and addresses
    Graph(graph::GraphArgs),
    /// Tell other tools how to reach a lab's domains
    Inventory(inventory::InventoryArgs),
    /// Print the JSON Schema of topologies or playbooks, which editors use to complete and check them
    Schema(schema::SchemaArgs),
    /// Look at this machine
    #[command(subcommand)]
    Host(host::HostVerb),
    /// The outermost process of an embedded host
    #[command(name = "__host", hide = true)]
    EnterHost(host::EnterArgs),
    /// PID 1 of an embedded host
    #[command(name = "__host-init", hide = true)]
    HostInit(host::InitArgs),
    /// Connect standard input and output to a port of a guest
    #[command(name = "__dial", hide = true)]
    Dial(ssh::DialArgs),
}

/// Runs the program. A panic, whose message is on standard error by then, is our bug.
pub fn main() -> ExitCode {
    std::panic::catch_unwind(run).unwrap_or_else(|_| error::Kind::Bug.exit_code())
}

fn run() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            return if error.use_stderr() {
                error::Kind::Usage.exit_code()
            } else {
                ExitCode::SUCCESS
            };
        }
    };
    let filter =
        tracing_subscriber::EnvFilter::try_from_env("LABRIG_LOG").unwrap_or_else(|_| "off".into());
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .init();
    let Cli { global, verb } = cli;
    let json = global.json;
    let result = match verb {
        Verb::Check(args) => check::run(&global, &args),
        Verb::Plan(args) => plan::run(&global, &args),
        Verb::Up(args) => up::run(&global, &args),
        Verb::Status(args) => status::run(&global, &args),
        Verb::Exec(args) => exec::run(&global, &args),
        Verb::Ssh(args) => ssh::run(&global, &args),
        Verb::Run(args) => run::run(&global, &args),
        Verb::Resume(args) => run::resume(&global, &args),
        Verb::Rerun(args) => run::rerun(&global, &args),
        Verb::Runs(args) => runs::runs(&global, &args),
        Verb::Show(args) => runs::show(&global, &args),
        Verb::Down(args) => down::run(&global, &args),
        Verb::Image(verb) => image::run(&global, &verb),
        Verb::Graph(args) => graph::run(&global, &args),
        Verb::Inventory(args) => inventory::run(&global, &args),
        Verb::Schema(args) => schema::run(&args),
        Verb::Host(verb) => host::run(&global, &verb),
        Verb::EnterHost(args) => host::enter(&args),
        Verb::HostInit(args) => host::init(&args),
        Verb::Dial(args) => ssh::dial(&global, &args),
    };
    match result {
        Ok(code) => code,
        Err(failure) => failure.report(json),
    }
}
