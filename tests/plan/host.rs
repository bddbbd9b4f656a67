//! A host in memory with all that an `up` needs.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use labrig::backend::SystemClock;
use labrig::backend::fake::{FakeHypervisor, FakeImages, FakeJournal, FakeRemote, Faults, World};
use labrig::engine::{Applier, ApplyError, Bus, Cancel};
use labrig::input::{self, Options};
use labrig::model::{
    Acceleration, Domain, Lab, LabPaths, LabSecret, Observed, Platform, Seconds, Topology,
    UefiImage,
};
use labrig::plan::{Desired, GuestFiles, Plan, plan, removal};
use labrig::ports::Hypervisor;

/// A lab with all there is: two images, two vswitches, disks, several vnets, a count.
pub const LAB: &str = "\
version: 1
name: lab
images:
  micro: {build: {micro: {}}}
  deb: {build: {suite: bookworm, packages: [mariadb-server], size: 3GiB}}
vswitches:
  data: {subnet: 10.0.0.0/24}
  front: {mode: nat, subnet: 10.0.1.0/24, mtu: 1400, bandwidth: 1Gbit/s}
domains:
  db:
    image: deb
    split: {cpus: 2, memory: 512MiB}
    disks: [{name: root, size: 4GiB}, {name: log, size: 1GiB}]
    vnets: [{vswitch: data, ip: 10.0.0.10}]
  web:
    count: 2
    image: micro
    split: {cpus: 1, memory: 160MiB}
    vnets: [{vswitch: data}, {vswitch: front}]
  probe:
    image: micro
    split: {cpus: 1, memory: 160MiB}
    vnets: [{vswitch: front, ip: 10.0.1.10}]
";

pub fn paths() -> LabPaths {
    LabPaths::new(PathBuf::from("/lab"))
}

/// A QEMU and a libvirt that have everything but control groups.
pub fn platform(acceleration: Acceleration) -> Platform {
    let names = |kind: &str, version: &str| (kind.to_owned(), version.to_owned());
    Platform {
        machines: BTreeMap::from([
            names("q35", "pc-q35-7.2"),
            names("pc-q35-7.2", "pc-q35-7.2"),
            names("pc", "pc-i440fx-7.2"),
        ]),
        cpu_models: BTreeSet::from(["EPYC".to_owned()]),
        uefi: vec![UefiImage {
            code: "/usr/share/OVMF/OVMF_CODE_4M.fd".into(),
            variables: "/usr/share/OVMF/OVMF_VARS_4M.fd".into(),
            machines: vec!["pc-q35-*".to_owned()],
        }],
        tpm: true,
        ..Platform::unknown(acceleration)
    }
}

/// Loads a topology that must be good.
pub fn topology(text: &str) -> Topology {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("t.yaml");
    std::fs::write(&file, text).unwrap();
    match input::load_topology(&file, &Options::default()) {
        Ok(loaded) => loaded.value,
        Err(notes) => panic!("{text}\n{notes:?}"),
    }
}

pub fn desired_of(topology: &Topology) -> Desired {
    let files = |domain: &Domain| -> Result<GuestFiles, Infallible> {
        let content = format!("name = {}\n", domain.name).into_bytes();
        Ok(vec![("/etc/made.conf".to_owned(), 0o644, content)])
    };
    let secret = LabSecret::new([7; 32]);
    let platform = platform(Acceleration::Emulation);
    let Ok(mut desired) = Desired::of(topology, &paths(), &platform, &secret, files);
    for domain in &mut desired.domains {
        // Guests here boot at once: one that does not is a failure, and need not take minutes.
        domain.boot_timeout = Seconds(Duration::from_secs(20));
    }
    desired
}

pub fn desired(text: &str) -> Desired {
    desired_of(&topology(text))
}

/// A host in memory.
pub struct Host {
    pub faults: Arc<Faults>,
    pub hypervisor: Arc<FakeHypervisor>,
    pub journal: Arc<FakeJournal>,
    pub bus: Bus,
    pub cancel: Cancel,
    applier: Applier,
}

impl Host {
    /// An empty host whose guests answer at once.
    pub fn new() -> Self {
        Self::with_boot(0)
    }

    /// An empty host whose guests answer after so many looks.
    pub fn with_boot(looks: usize) -> Self {
        let faults = Arc::new(Faults::default());
        let lab = Lab {
            name: "lab".parse().unwrap(),
        };
        let hypervisor = Arc::new(FakeHypervisor::new(lab, Arc::clone(&faults)));
        let journal = Arc::new(FakeJournal::new(Arc::clone(&faults)));
        let bus = Bus::new(Arc::new(SystemClock));
        let cancel = Cancel::default();
        let applier = Applier {
            hypervisor: Arc::clone(&hypervisor) as _,
            images: Arc::new(FakeImages::new(Arc::clone(&faults))),
            remote: Arc::new(FakeRemote::new(Arc::clone(&hypervisor), looks)),
            journal: Arc::clone(&journal) as _,
            bus: bus.clone(),
            cancel: cancel.clone(),
        };
        Self {
            faults,
            hypervisor,
            journal,
            bus,
            cancel,
            applier,
        }
    }

    /// A host that holds `world`.
    pub fn holding(world: World) -> Self {
        let host = Self::new();
        host.hypervisor.set_world(world);
        host
    }

    /// A host on which a lab was brought up.
    pub fn with(desired: &Desired) -> Self {
        let host = Self::new();
        host.up(desired).unwrap();
        host
    }

    pub fn observe(&self, desired: &Desired) -> Observed {
        let mut observed = self.hypervisor.observe().unwrap();
        let linked = desired
            .images
            .iter()
            .filter(|image| self.hypervisor.has_link(&image.link));
        observed.images = linked.map(|image| image.image.key).collect();
        observed
    }

    pub fn plan(&self, desired: &Desired) -> Plan {
        plan(desired, &self.observe(desired))
    }

    pub fn apply(&self, plan: Plan) -> Result<(), Box<ApplyError>> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let result = runtime.block_on(self.applier.apply(plan));
        runtime.shutdown_background();
        result.map_err(Box::new)
    }

    pub fn up(&self, desired: &Desired) -> Result<(), Box<ApplyError>> {
        self.apply(self.plan(desired))
    }

    /// Brings the lab up from whatever there is, and down again: nothing is missing, nothing is
    /// hidden, nothing is left.
    pub fn mends_and_goes(&self, desired: &Desired, what: &str) {
        let before = self.hypervisor.world();
        self.faults.clear();
        self.up(desired)
            .unwrap_or_else(|e| panic!("{what}: {e}: {:?}", e.source));
        self.is_up(desired, what);
        self.goes_down(what);
        self.hypervisor.set_world(before);
        self.goes_down(what);
    }

    /// Everything is as it is wanted.
    pub fn is_up(&self, desired: &Desired, what: &str) {
        let observed = self.observe(desired);
        let left = plan(desired, &observed).titles();
        assert!(left.is_empty(), "{what}: still to do: {left:?}");
        let problems = self.hypervisor.problems();
        assert!(problems.is_empty(), "{what}: {problems:?}");
        let ready = observed.domains.values().filter(|d| d.active && d.ready);
        assert_eq!(
            ready.count(),
            desired.domains.len(),
            "{what}: all are ready"
        );
    }

    fn goes_down(&self, what: &str) {
        let removal = removal(&self.hypervisor.observe().unwrap());
        self.apply(removal)
            .unwrap_or_else(|e| panic!("{what}, down: {e}: {:?}", e.source));
        assert!(
            self.hypervisor.world().is_empty(),
            "{what}: something is left"
        );
    }
}

/// What tests ask of plans.
pub trait Titles {
    fn titles(&self) -> Vec<String>;

    /// The plan cut off after its first `n` actions.
    fn first(&self, n: usize) -> Plan;

    /// Some of its actions in another order; each after all that it waits for.
    fn ordered(&self, order: &[usize]) -> Plan;

    /// The plan without the actions that wait for guests.
    fn without_waits(&self) -> Plan;

    /// All that an action waits for, directly or not.
    fn before(&self, action: usize) -> BTreeSet<usize>;
}

impl Titles for Plan {
    fn titles(&self) -> Vec<String> {
        self.actions.iter().map(|action| action.title()).collect()
    }

    fn first(&self, n: usize) -> Plan {
        Plan {
            actions: self.actions[..n].to_vec(),
        }
    }

    fn without_waits(&self) -> Plan {
        let kept: Vec<_> = (0..self.actions.len())
            .filter(|&i| !self.actions[i].only_waits())
            .collect();
        self.ordered(&kept)
    }

    fn ordered(&self, order: &[usize]) -> Plan {
        let place: BTreeMap<_, _> = order
            .iter()
            .enumerate()
            .map(|(to, from)| (*from, to))
            .collect();
        let actions = order.iter().map(|&i| {
            let mut action = self.actions[i].clone();
            action.after = action.after.iter().map(|before| place[before]).collect();
            action
        });
        Plan {
            actions: actions.collect(),
        }
    }

    fn before(&self, action: usize) -> BTreeSet<usize> {
        let mut all = BTreeSet::new();
        let mut queue = self.actions[action].after.clone();
        while let Some(next) = queue.pop() {
            if all.insert(next) {
                queue.extend(&self.actions[next].after);
            }
        }
        all
    }
}
