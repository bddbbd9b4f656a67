//! From a checked topology to a lab that is up: what `up`, `run` and `rerun` share.

use std::borrow::Cow;
use std::sync::Arc;

use super::error::{Failure, Kind, Result};
use super::lab::{self, HostKind, OpenLab, Record, linked_images};
use super::output;
use super::state::State;
use crate::backend::images::{self, Store};
use crate::backend::traffic::Place;
use crate::backend::{LabJournal, disks, host, host_shape, network_facts, platform, probe, ram};
use crate::diag::{Note, Notes};
use crate::engine::{self, Applier, Bus, Cancel};
use crate::input::Loaded;
use crate::model::{
    Acceleration, Domain, Event, EventLevel, HostFacts, LabSecret, NetworkFacts, Observed, Topology,
};
use crate::plan::{self, Desired, GuestFiles, Plan};
use crate::ports::{Hypervisor, ImageStore};
use crate::render::{self, Scope};

/// A topology on its way to its host.
pub(super) struct BringUp<'a> {
    pub state: &'a State,
    pub loaded: &'a Loaded<Topology>,
    /// Host that was asked for; none: where the lab is, else an embedded one.
    pub host: Option<HostKind>,
    /// Whether it is only planned: then a topology that describes its host needs no such host.
    pub is_dry: bool,
}

/// What a plan was made of, and the plan.
pub(super) struct Planned {
    pub facts: HostFacts,
    pub plan: Plan,
    /// What should be looked at.
    pub warnings: Notes,
}

impl BringUp<'_> {
    fn topology(&self) -> &Topology {
        &self.loaded.value
    }

    /// Plans without making anything: the dry run, and the check that comes before `up` makes
    /// anything.
    ///
    /// # Errors
    /// Notes about what the host lacks.
    pub(super) fn plan(&self) -> Result<Planned> {
        if !self.is_dry {
            self.check_described_host()?;
        }
        let paths = self.state.lab(&self.topology().lab.name);
        let mut record = self.record()?;
        if record.host == HostKind::Embedded {
            lab::embedded_host(self.state, &paths).directory().check()?;
        }
        if record.acceleration.is_none() {
            // A guess for the plan's sake; `run` finds out for sure.
            record.acceleration =
                probe::remembered(&self.state.kvm_verdict()).map(|v| v.acceleration);
        }
        let secret = lab::secret_so_far(&paths)?;
        let observed = self.observe_if_up(&record)?;
        let facts = host::facts(record.acceleration.unwrap_or(Acceleration::Emulation), None)?;
        let (plan, warnings) = self.plan_on(&record, &secret, &observed, &facts)?;
        Ok(Planned {
            facts,
            plan,
            warnings,
        })
    }

    /// Sees that this host is at least what the topology says of its host.
    fn check_described_host(&self) -> Result<()> {
        let topology = self.topology();
        let Some(described) = &topology.host.described else {
            return Ok(());
        };
        let splits = topology.domains.iter().filter_map(|d| d.split.as_ref());
        let is_pinned = splits.into_iter().any(|split| !split.pins.is_empty());
        let lacks = described.beyond(&host_shape::shape()?, is_pinned);
        if lacks.is_empty() {
            return Ok(());
        }
        let message = format!("this host has {}", lacks.join(", "));
        let mut note = Note::error("host", message)
            .hint("bring the lab up on the host that it is for, or describe this one; check and plan work anywhere");
        note.place = self.loaded.source.place(&note.path);
        Err(Notes(vec![note]).into())
    }

    /// Brings the lab up. The caller holds its lock.
    pub(super) async fn run(&self, bus: &Bus, cancel: &Cancel) -> Result<OpenLab> {
        let paths = self.state.lab(&self.topology().lab.name);
        let Planned {
            facts,
            plan,
            warnings,
        } = self.plan()?;
        output::print_notes(&warnings);
        let mut record = self.record()?;
        cancel
            .check()
            .map_err(|e| Failure::new(Kind::Interrupted, e))?;

        record.write(&paths)?;
        let store = Store::open(self.state.images());
        // Until the lab has links to its images, nothing else says that they are in use.
        let _hold = store.hold()?;
        let store: Arc<dyn ImageStore> = Arc::new(store);
        self.provide_images(&plan, &store, bus, cancel).await?;
        if record.acceleration.is_none() {
            record.acceleration = Some(self.probe(store.as_ref(), bus)?);
            record.write(&paths)?;
        }

        let lab = OpenLab::open(self.state, record, true)?;
        let secret = lab::secret(&paths)?;
        let (plan, _) = self.plan_on(&lab.record, &secret, &lab.observe()?, &facts)?;
        if plan.is_empty() {
            bus.send(&Event::Message {
                level: EventLevel::Info,
                text: "nothing to do: the lab is as its file says".to_owned(),
            });
            return Ok(lab);
        }
        let applier = Applier {
            hypervisor: Arc::clone(&lab.hypervisor) as Arc<dyn Hypervisor>,
            images: store,
            remote: Arc::clone(&lab.remote) as Arc<dyn crate::ports::Remote>,
            journal: Arc::new(LabJournal::open(paths.journal())?),
            bus: bus.clone(),
            cancel: cancel.clone(),
        };
        applier.apply(plan).await?;
        Ok(lab)
    }

    /// The lab's record with today's topology in it; a new one when the lab was never made.
    fn record(&self) -> Result<Record> {
        let topology = self.topology();
        let paths = self.state.lab(&topology.lab.name);
        let Some(mut record) = Record::read(&paths)? else {
            let host = self.host.clone().unwrap_or(HostKind::Embedded);
            return Ok(Record::new(host, topology.clone()));
        };
        if let Some(host) = self.host.as_ref().filter(|host| **host != record.host) {
            let (name, there) = (&topology.lab.name, String::from(record.host));
            let message = format!(
                "bring lab {name} up on {}: it is on {there}",
                String::from(host.clone())
            );
            return Err(Failure::usage(message)
                .hint("take it down first, or give this one another name with --name"));
        }
        record.topology = topology.clone();
        Ok(record)
    }

    fn observe_if_up(&self, record: &Record) -> Result<Observed> {
        let paths = self.state.lab(&record.topology.lab.name);
        let images = linked_images(&paths, self.topology());
        let is_there = match &record.host {
            HostKind::Embedded => lab::embedded_host(self.state, &paths).is_running()?,
            HostKind::System(_) => paths.root().exists(),
        };
        if !is_there {
            return Ok(Observed {
                images,
                ..Observed::default()
            });
        }
        OpenLab::open(self.state, record.clone(), false)?.observe()
    }

    fn plan_on(
        &self,
        record: &Record,
        secret: &LabSecret,
        observed: &Observed,
        facts: &HostFacts,
    ) -> Result<(Plan, Notes)> {
        let topology = self.topology();
        let network = self.network_facts(record)?;
        let mut notes = Notes(network.as_ref().map_or_else(Vec::new, |network| {
            plan::check_network(topology, observed, network)
        }));
        let fitting = network.as_ref().map_or(Cow::Borrowed(topology), |network| {
            plan::without_optional(topology, network)
        });
        let topology = fitting.as_ref();
        let paths = self.state.lab(&topology.lab.name);
        let scope = Scope::with_secrets(topology, &self.loaded.secrets);
        let files = |domain: &Domain| self.guest_files(&scope, domain);
        let acceleration = record.acceleration.unwrap_or(Acceleration::Emulation);
        let platform = platform::platform(acceleration, record.host.has_cgroups());
        let desired = Desired::of(topology, &paths, &platform, secret, files)?;
        let plan = plan::plan(&desired, observed);
        let shape = host_shape::shape()?;
        notes.0.extend(plan::check_budget(
            topology, &desired, observed, &plan, facts, &shape,
        ));
        notes.0.extend(plan::check_platform(topology, &platform));
        notes.0.extend(disks::check_existing(
            topology,
            record.host == HostKind::Embedded,
        ));
        // Where the host has no such place, there is no room in it.
        let room = ram::room().unwrap_or_default();
        notes.0.extend(plan::check_ram_disks(topology, &plan, room));
        if self.is_dry && topology.host.described.is_some() {
            // What this host lacks does not matter: it is another one that is planned for.
            return Ok((plan, Notes::default()));
        }
        for note in &mut notes.0 {
            note.place = self.loaded.source.place(&note.path);
        }
        if notes.has_errors() {
            Err(notes.sorted().into())
        } else {
            Ok((plan, notes.sorted()))
        }
    }

    /// Facts of the host's network, where the topology asks for more than every host has.
    fn network_facts(&self, record: &Record) -> Result<Option<NetworkFacts>> {
        let is_private = record.host == HostKind::Embedded;
        if !plan::needs_network_facts(self.topology(), is_private) {
            return Ok(None);
        }
        let paths = self.state.lab(&self.topology().lab.name);
        let place = if is_private {
            let host = lab::embedded_host(self.state, &paths);
            let is_running = host.is_running()?;
            is_running
                .then(|| host.outermost())
                .transpose()?
                .map(Place::Of)
        } else {
            Some(Place::Here)
        };
        Ok(Some(network_facts(place)?))
    }

    fn guest_files(&self, scope: &Scope, domain: &Domain) -> Result<GuestFiles> {
        render::guest_files(&self.loaded.templates, scope, domain).map_err(|error| {
            let what = format!("render the files of {}", domain.name);
            Failure::new(Kind::Input, anyhow::Error::new(error).context(what))
        })
    }

    /// Images come first: whether KVM works is found out by booting one's kernel.
    async fn provide_images(
        &self,
        plan: &Plan,
        store: &Arc<dyn ImageStore>,
        bus: &Bus,
        cancel: &Cancel,
    ) -> Result<()> {
        let paths = self.state.lab(&self.topology().lab.name);
        for (image, files) in engine::provide(store, plan, bus, cancel).await? {
            images::link(&paths.image(image.key), &files)?;
        }
        Ok(())
    }

    fn probe(&self, store: &dyn ImageStore, bus: &Bus) -> Result<Acceleration> {
        for image in self.topology().images.values() {
            let Some(files) = store.find(image.key)? else {
                continue;
            };
            if let Some(kernel) = &files.kernel {
                let verdict =
                    probe::acceleration(&self.state.kvm_verdict(), kernel, files.initrd.as_deref());
                if verdict.acceleration == Acceleration::Emulation {
                    let text = format!("guests run in emulation: {}", verdict.reason);
                    bus.send(&Event::Message {
                        level: EventLevel::Warning,
                        text,
                    });
                }
                return Ok(verdict.acceleration);
            }
        }
        bus.send(&Event::Message {
            level: EventLevel::Warning,
            text: "guests run in emulation: no image has a kernel to try KVM with".to_owned(),
        });
        Ok(Acceleration::Emulation)
    }
}
