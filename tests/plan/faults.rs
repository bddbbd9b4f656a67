//! Plans that fail, and plans that are given up.

use std::time::{Duration, Instant};

use crate::host::{Host, LAB, Titles, desired};
use labrig::backend::fake::{Effect, Fault, Operation};
use labrig::model::{Event, Seconds};
use labrig::plan::{ActionKind, Plan};
use labrig::ports::ErrorKind;

/// Far longer than it takes, far shorter than any deadline of a guest.
const SOON: Duration = Duration::from_secs(10);

/// The call of the port that does an action, with its object.
fn call_of(kind: &ActionKind) -> (Operation, String) {
    use ActionKind as K;
    let file = |path: &std::path::PathBuf| path.display().to_string();
    match kind {
        K::EnsureImage { image, .. } => (Operation::EnsureImage, image.key.to_string()),
        K::DefineNetwork { name, .. } => (Operation::DefineNetwork, name.clone()),
        K::StartNetwork { name } => (Operation::StartNetwork, name.clone()),
        K::Reserve { network, .. } => (Operation::Reserve, network.clone()),
        K::RemoveNetwork { name } => (Operation::RemoveNetwork, name.clone()),
        K::CreateDisk { path, .. } => (Operation::CreateDisk, file(path)),
        K::WriteSeed { path, .. } => (Operation::WriteSeed, file(path)),
        K::RemoveFile { path } => (Operation::RemoveFile, file(path)),
        K::DefineDomain { name, .. } => (Operation::DefineDomain, name.clone()),
        K::StartDomain { name } => (Operation::StartDomain, name.clone()),
        K::Impair { device, .. } => (Operation::Impair, device.clone()),
        K::StopDomain { name } => (Operation::StopDomain, name.clone()),
        K::RemoveDomain { name } => (Operation::RemoveDomain, name.clone()),
        K::MoveDomain { name, .. } => (Operation::MoveDomain, name.clone()),
        K::AwaitReady { name, .. } | K::TellHosts { name, .. } => {
            (Operation::MarkReady, name.clone())
        }
    }
}

/// A lab that is up, and a file that changes nearly all of it.
fn old_and_new() -> [String; 2] {
    let new = LAB
        .replace("mtu: 1400", "mtu: 1300")
        .replace("count: 2", "count: 1")
        .replace("ip: 10.0.0.10", "ip: 10.0.0.11")
        .replace("mariadb", "mysql");
    [LAB.to_owned(), new]
}

#[test]
fn a_failure_names_its_action_begins_nothing_new_and_is_mended() {
    let [old, new] = old_and_new().map(|text| desired(&text));
    for (what, host, wanted) in [
        ("new", Host::new(), &old),
        ("changed", Host::with(&old), &new),
    ] {
        let (world, plan) = (host.hypervisor.world(), host.plan(wanted));
        for (i, action) in plan.actions.iter().enumerate() {
            for effect in [Effect::Nothing, Effect::Done] {
                let host = Host::holding(world.clone());
                let heard = host.bus.subscribe();
                let (operation, object) = call_of(&action.kind);
                host.faults.add(Fault {
                    effect,
                    ..Fault::on(operation, &object)
                });
                let error = host.apply(plan.clone()).unwrap_err();
                // Two reservations of one network are one object to the fault.
                let (failed, _) = plan
                    .actions
                    .iter()
                    .enumerate()
                    .find(|(_, other)| other.title() == error.title)
                    .unwrap_or_else(|| panic!("{what}: {:?} is no action", error.title));
                assert_eq!(
                    call_of(&plan.actions[failed].kind),
                    (operation, object.clone())
                );
                assert!(!error.is_cancelled(), "{what}: {error:?}");
                let begun: Vec<_> = heard
                    .try_iter()
                    .filter_map(|(_, event)| match event {
                        Event::ActionStarted { action, .. } => Some(action),
                        _ => None,
                    })
                    .collect();
                for &other in begun.iter().filter(|&&other| other != failed) {
                    assert!(
                        !plan.before(other).contains(&failed),
                        "{what}: {:?} was begun after {:?} failed",
                        plan.actions[other].title(),
                        error.title
                    );
                }
                host.mends_and_goes(
                    wanted,
                    &format!("{what}: {} failed ({i}, {effect:?})", action.title()),
                );
            }
        }
    }
}

#[test]
fn every_change_is_written_down_before_it_is_made() {
    let [old, new] = old_and_new().map(|text| desired(&text));
    let host = Host::with(&old);
    let (world, plan) = (host.hypervisor.world(), host.plan(&new));
    for action in &plan.actions {
        if matches!(action.kind, ActionKind::AwaitReady { .. }) {
            continue;
        }
        // Without its line a change is not made: so many calls as there are lines.
        let host = Host::holding(world.clone());
        host.faults
            .add(Fault::on(Operation::Intend, action.title()));
        let error = host.apply(plan.clone()).unwrap_err();
        assert_eq!(error.title, action.title());
        let (operation, written) = (call_of(&action.kind).0, host.journal.lines());
        let lines = plan.actions.iter().filter(|other| {
            call_of(&other.kind).0 == operation && written.contains(&other.title())
        });
        assert_eq!(
            host.faults.calls(operation),
            lines.count(),
            "{}",
            action.title()
        );
    }
    host.apply(plan.clone()).unwrap();
    let mut written = host.journal.lines();
    let mut planned = [Host::new().plan(&old), plan]
        .iter()
        .flat_map(|plan| plan.titles())
        .filter(|title| !title.starts_with("await"))
        .collect::<Vec<_>>();
    written.sort();
    planned.sort();
    assert_eq!(written, planned);
}

/// A host whose guests were started and never come up, with the plan to wait for them.
fn host_of_the_dead() -> (Host, Plan) {
    let wanted = desired(LAB);
    let started = Host::new();
    let plan = started.plan(&wanted);
    started.apply(plan.without_waits()).unwrap();
    let host = Host::with_boot(usize::MAX);
    host.hypervisor.set_world(started.hypervisor.world());
    let plan = host.plan(&wanted);
    assert!(plan.actions.iter().all(|action| action.only_waits()) && !plan.is_empty());
    (host, plan)
}

#[test]
fn a_guest_that_dies_is_noticed_and_its_last_lines_are_shown() {
    let (host, plan) = host_of_the_dead();
    host.hypervisor.power_off("labrig-lab.probe");
    let began = Instant::now();
    let error = host.apply(plan).unwrap_err();
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
    assert_eq!(error.title, "await domain probe");
    assert!(
        error.source.to_string().ends_with("the domain is shut off"),
        "{error:?}"
    );
    assert_eq!(error.console, ["probe: the last line"]);
}

#[test]
fn a_guest_that_does_not_come_up_ends_the_wait_at_its_deadline() {
    let (host, mut plan) = host_of_the_dead();
    for action in &mut plan.actions {
        if let ActionKind::AwaitReady { timeout, .. } = &mut action.kind {
            *timeout = Seconds(Duration::from_millis(100));
        }
    }
    let error = host.apply(plan).unwrap_err();
    assert_eq!(error.source.kind, ErrorKind::Timeout);
    let (text, cause) = (error.source.to_string(), error.source.source.unwrap());
    assert!(
        text.starts_with("reach ") && text.ends_with(" within 0.1s"),
        "{text}"
    );
    assert!(cause.to_string().starts_with("connect to "), "{cause}");
    assert_eq!(error.console.len(), 1);
}

#[test]
fn who_has_enough_is_out_at_once_and_can_go_on_later() {
    let (host, plan) = host_of_the_dead();
    let (cancel, heard) = (host.cancel.clone(), host.bus.subscribe());
    let cancelled = std::thread::spawn(move || {
        let waits = |event: &Event| matches!(event, Event::DomainPhase { .. });
        heard.iter().find(|(_, event)| waits(event)).unwrap();
        cancel.cancel();
        Instant::now()
    });
    let error = host.apply(plan.clone()).unwrap_err();
    let took = cancelled.join().unwrap().elapsed();
    assert!(error.is_cancelled(), "{error:?}");
    assert!(took < SOON, "{took:?}");
    // Whoever has enough from the start begins nothing.
    assert!(host.apply(plan).unwrap_err().is_cancelled());
    Host::holding(host.hypervisor.world()).mends_and_goes(&desired(LAB), "given up");
}
