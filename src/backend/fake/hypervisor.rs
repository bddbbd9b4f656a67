//! The hypervisor port on a host in memory.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::world::{FakeDomain, FakeNetwork, World, no_domain, no_network};
use super::{Faults, Operation};
use crate::backend::libvirt::Definition;
use crate::model::{
    Bytes, Digest, DiskFormat, DomainStats, Lab, Name, Observed, ObservedDomain, ObservedNetwork,
    Placement, PortImpairment, Reservation, Split,
};
use crate::ports::{Hypervisor, ImageFiles, PortError};

/// A lab on a host in memory. For tests.
pub struct FakeHypervisor {
    lab: Lab,
    world: Mutex<World>,
    faults: Arc<Faults>,
}

impl FakeHypervisor {
    /// An empty host.
    pub fn new(lab: Lab, faults: Arc<Faults>) -> Self {
        Self {
            lab,
            world: Mutex::default(),
            faults,
        }
    }

    /// What the host holds.
    pub fn world(&self) -> World {
        self.lock().clone()
    }

    /// Makes the host hold something else.
    pub fn set_world(&self, world: World) {
        *self.lock() = world;
    }

    /// What a real host would hide; see [`World::problems`].
    pub fn problems(&self) -> Vec<String> {
        self.lock().problems()
    }

    /// Ends a domain from inside, as a guest that powers off does.
    pub fn power_off(&self, name: &str) {
        if let Some(domain) = self.lock().domains.get_mut(name) {
            domain.running = None;
        }
    }

    /// Stops a network behind everyone's back; its domains run on without it.
    pub fn stop_network(&self, name: &str) {
        if let Some(network) = self.lock().networks.get_mut(name) {
            network.running = None;
        }
    }

    /// Lifts all impairments behind everyone's back.
    pub fn lift_impairments(&self) {
        let mut world = self.lock();
        let devices: Vec<_> = world.impairments().into_keys().collect();
        for device in devices {
            if let Some(impairment) = world.impairment(&device) {
                *impairment = PortImpairment::default();
            }
        }
    }

    /// Changes where a running domain is behind everyone's back.
    pub fn displace(&self, name: &str, change: impl FnOnce(&mut Placement)) {
        if let Some(life) = self
            .lock()
            .domains
            .get_mut(name)
            .and_then(|domain| domain.running.as_mut())
        {
            change(&mut life.placement);
        }
    }

    /// From now on the pins of a domain have no effect, whatever libvirt says.
    pub fn ignore_pins(&self, name: &str) {
        self.lock().misplaced.insert(name.to_owned());
    }

    /// Removes a file behind everyone's back.
    pub fn lose_file(&self, path: &Path) {
        self.lock().files.remove(path);
    }

    /// Puts a file there that nobody wants.
    pub fn leave_file(&self, path: &Path) {
        let mut world = self.lock();
        let number = world.number();
        world.files.insert(path.to_owned(), number);
    }

    /// Puts a file there that is no lab's.
    pub fn keep_file(&self, path: &Path) {
        self.lock().others.insert(path.to_owned());
    }

    /// Removes the link to an image.
    pub fn lose_link(&self, link: &Path) {
        self.lock().links.remove(link);
    }

    /// Whether a link leads to an image.
    pub fn has_link(&self, link: &Path) -> bool {
        self.lock().links.contains_key(link)
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn faults(&self) -> &Faults {
        &self.faults
    }

    /// Does a call on an object, unless a fault says otherwise; a refusal is the port's error.
    fn call<T>(
        &self,
        operation: Operation,
        what: &str,
        object: &str,
        work: impl FnOnce(&mut World) -> Result<T, String>,
    ) -> Result<T, PortError> {
        self.faults.call(operation, object, || {
            work(&mut self.lock())
                .map_err(|refusal| PortError::fatal(format!("{what} {object}"), refusal))
        })
    }

    fn own(&self, name: &str, xml: &str) -> Result<Definition, String> {
        let definition = Definition::read(name, xml).map_err(|e| e.to_string())?;
        match &definition.tag {
            Some(tag) if tag.lab == self.lab.name.as_str() => Ok(definition),
            _ => Err(format!("it belongs to {}", definition.owner())),
        }
    }

    fn observe_world(&self, world: &World) -> Result<Observed, String> {
        let mut observed = Observed {
            files: world.files.keys().cloned().collect(),
            impairments: world.impairments(),
            ..Observed::default()
        };
        for (name, network) in &world.networks {
            let Ok(definition) = self.own(name, &network.xml) else {
                continue;
            };
            observed.networks.insert(
                name.clone(),
                ObservedNetwork {
                    definition: definition.tag.map(|tag| tag.definition),
                    active: network.running.is_some(),
                    bridge: definition.bridge,
                    reservations: network.reservations.clone(),
                },
            );
        }
        for (name, domain) in &world.domains {
            let Ok(definition) = self.own(name, &domain.xml) else {
                continue;
            };
            observed.domains.insert(
                name.clone(),
                ObservedDomain {
                    definition: definition.tag.map(|tag| tag.definition),
                    active: domain.running.is_some(),
                    ready: domain.running.is_some() && domain.ready,
                    hosts: domain.running.as_ref().and(domain.hosts),
                    placement: domain.running.as_ref().map(|life| life.placement.clone()),
                    uses: definition.uses,
                },
            );
        }
        Ok(observed)
    }
}

/// The text of the first element of a name, and an attribute of the first element of another.
fn text_of(xml: &str, element: &str) -> Option<String> {
    let document = roxmltree::Document::parse(xml).ok()?;
    let node = document.descendants().find(|n| n.has_tag_name(element))?;
    node.text().map(str::to_owned)
}

fn bridge_of(xml: &str) -> Option<String> {
    let document = roxmltree::Document::parse(xml).ok()?;
    let node = document.descendants().find(|n| n.has_tag_name("bridge"))?;
    node.attribute("name").map(str::to_owned)
}

/// The subnet of a network, as text that is the same for the same subnet.
fn subnet_of(xml: &str) -> Option<ipnet::Ipv4Net> {
    let document = roxmltree::Document::parse(xml).ok()?;
    let node = document.descendants().find(|n| n.has_tag_name("ip"))?;
    let address = node.attribute("address")?.parse().ok()?;
    let prefix = node.attribute("prefix")?.parse().ok()?;
    ipnet::Ipv4Net::new(address, prefix).ok()
}

impl Hypervisor for FakeHypervisor {
    fn observe(&self) -> Result<Observed, PortError> {
        self.call(Operation::Observe, "observe", "the host", |world| {
            self.observe_world(world)
        })
    }

    fn define_network(&self, name: &str, xml: &str) -> Result<(), PortError> {
        self.call(Operation::DefineNetwork, "define network", name, |world| {
            let reservations = self.own(name, xml)?.reservations;
            if text_of(xml, "name").as_deref() != Some(name) {
                return Err(format!("XML error: the name is not {name}"));
            }
            let (uuid, bridge) = (text_of(xml, "uuid"), bridge_of(xml));
            for (other, network) in world.networks.iter().filter(|(other, _)| *other != name) {
                if text_of(&network.xml, "uuid") == uuid {
                    return Err(format!(
                        "operation failed: network '{other}' already exists with uuid {}",
                        uuid.unwrap_or_default()
                    ));
                }
                if bridge.is_some() && bridge_of(&network.xml) == bridge {
                    return Err(format!(
                        "internal error: bridge name '{}' already in use.",
                        bridge.unwrap_or_default()
                    ));
                }
            }
            let running = match world.networks.get(name) {
                Some(old) => {
                    self.own(name, &old.xml)?;
                    old.running.clone()
                }
                None => None,
            };
            let network = FakeNetwork {
                xml: xml.to_owned(),
                reservations,
                running,
            };
            world.networks.insert(name.to_owned(), network);
            Ok(())
        })
    }

    fn start_network(&self, name: &str) -> Result<(), PortError> {
        self.call(Operation::StartNetwork, "start network", name, |world| {
            let network = world.networks.get(name).ok_or_else(|| no_network(name))?;
            if network.running.is_some() {
                return Ok(());
            }
            let subnet = subnet_of(&network.xml);
            let taken = world.networks.values().find(|other| {
                let theirs = subnet_of(&other.xml);
                let meet = subnet.zip(theirs).is_some_and(|(ours, theirs)| {
                    ours.contains(&theirs.network()) || theirs.contains(&ours.network())
                });
                other.running.is_some() && meet
            });
            if let Some(other) = taken {
                return Err(format!(
                    "internal error: Network is already in use by interface {}",
                    bridge_of(&other.xml).unwrap_or_default()
                ));
            }
            let number = world.number();
            if let Some(network) = world.networks.get_mut(name) {
                network.running = Some((number, network.reservations.clone()));
            }
            Ok(())
        })
    }

    fn reserve(
        &self,
        network: &str,
        reservation: &Reservation,
        wanted: bool,
    ) -> Result<(), PortError> {
        self.call(Operation::Reserve, "change the reservations of", network, |world| {
            let found = world.networks.get_mut(network).ok_or_else(|| no_network(network))?;
            if found.reservations.contains(reservation) == wanted {
                return Ok(());
            }
            let clash = found.reservations.iter().find(|other| {
                other.mac == reservation.mac
                    || other.ip == reservation.ip
                    || other.domain == reservation.domain
            });
            if wanted && clash.is_some() {
                return Err(format!(
                    "Requested operation is not valid: there is an existing dhcp host entry in network '{network}' \
                     that matches \"<host mac='{}' name='{}' ip='{}'/>\"",
                    reservation.mac, reservation.domain, reservation.ip
                ));
            }
            let served = found.running.as_mut().map(|(_, served)| served);
            for reservations in [Some(&mut found.reservations), served].into_iter().flatten() {
                if wanted {
                    reservations.insert(reservation.clone());
                } else {
                    reservations.remove(reservation);
                }
            }
            Ok(())
        })
    }

    fn remove_network(&self, name: &str) -> Result<(), PortError> {
        self.call(Operation::RemoveNetwork, "remove network", name, |world| {
            if let Some(network) = world.networks.get(name) {
                self.own(name, &network.xml)?;
                world.networks.remove(name);
            }
            Ok(())
        })
    }

    fn link_image(&self, link: &Path, image: &ImageFiles) -> Result<(), PortError> {
        let object = link.display().to_string();
        self.call(Operation::LinkImage, "link image", &object, |world| {
            let files = [&image.disk, &image.kernel, &image.initrd];
            let files = files.into_iter().flatten().cloned().collect();
            world.links.insert(link.to_owned(), files);
            Ok(())
        })
    }

    fn create_disk(
        &self,
        path: &Path,
        format: DiskFormat,
        backing: Option<&Path>,
        size: Option<Bytes>,
    ) -> Result<(), PortError> {
        let object = path.display().to_string();
        self.call(Operation::CreateDisk, "create disk", &object, |world| {
            match backing {
                Some(_) if format == DiskFormat::Raw => {
                    return Err(format!(
                        "qemu-img: {object}: Backing file not supported for file format 'raw'"
                    ));
                }
                Some(backing) if !world.is_linked(backing) => {
                    return Err(format!(
                        "qemu-img: {object}: Could not open '{}': No such file or directory",
                        backing.display()
                    ));
                }
                None if size.is_none() => {
                    return Err("qemu-img: Image creation needs a size parameter".to_owned());
                }
                _ => {}
            }
            let number = world.number();
            world.files.insert(path.to_owned(), number);
            Ok(())
        })
    }

    fn write_seed(&self, path: &Path, content: &[u8]) -> Result<(), PortError> {
        let object = path.display().to_string();
        self.call(Operation::WriteSeed, "write seed", &object, |world| {
            debug_assert!(
                content.len().is_multiple_of(512),
                "virtio-blk counts in sectors"
            );
            let number = world.number();
            world.files.insert(path.to_owned(), number);
            Ok(())
        })
    }

    fn remove_file(&self, path: &Path) -> Result<(), PortError> {
        let object = path.display().to_string();
        self.call(Operation::RemoveFile, "remove file", &object, |world| {
            if world.others.contains(path) {
                return Err("it is not the lab's".to_owned());
            }
            world.files.remove(path);
            Ok(())
        })
    }

    fn define_domain(&self, name: &str, xml: &str) -> Result<(), PortError> {
        self.call(Operation::DefineDomain, "define domain", name, |world| {
            self.own(name, xml)?;
            if text_of(xml, "name").as_deref() != Some(name) {
                return Err(format!("XML error: the name is not {name}"));
            }
            let uuid = text_of(xml, "uuid");
            let mut others = world.domains.iter().filter(|(other, _)| *other != name);
            if let Some((other, _)) = others.find(|(_, d)| text_of(&d.xml, "uuid") == uuid) {
                return Err(format!(
                    "operation failed: domain '{other}' already exists with uuid {}",
                    uuid.unwrap_or_default()
                ));
            }
            match world.domains.get_mut(name) {
                Some(domain) => {
                    self.own(name, &domain.xml)?;
                    domain.xml = xml.to_owned();
                }
                None => {
                    let domain = FakeDomain {
                        xml: xml.to_owned(),
                        ready: false,
                        hosts: None,
                        running: None,
                    };
                    world.domains.insert(name.to_owned(), domain);
                }
            }
            Ok(())
        })
    }

    fn start_domain(&self, name: &str) -> Result<(), PortError> {
        self.call(Operation::StartDomain, "start domain", name, |world| {
            world.start(name)
        })
    }

    fn impair(&self, device: &str, impairment: &PortImpairment) -> Result<(), PortError> {
        self.call(Operation::Impair, "impair", device, |world| {
            let found = world.impairment(device);
            *found.ok_or_else(|| format!("Cannot find device \"{device}\""))? = *impairment;
            Ok(())
        })
    }

    fn mark_ready(&self, name: &str, hosts: Option<Digest>) -> Result<(), PortError> {
        self.call(Operation::MarkReady, "mark as ready", name, |world| {
            let domain = world.domains.get_mut(name).ok_or_else(|| no_domain(name))?;
            domain.ready = true;
            domain.hosts = hosts;
            Ok(())
        })
    }

    fn stop_domain(&self, name: &str) -> Result<(), PortError> {
        self.call(Operation::StopDomain, "stop domain", name, |world| {
            if let Some(domain) = world.domains.get_mut(name) {
                self.own(name, &domain.xml)?;
                domain.running = None;
            }
            Ok(())
        })
    }

    fn remove_domain(&self, name: &str) -> Result<(), PortError> {
        self.call(Operation::RemoveDomain, "undefine domain", name, |world| {
            if let Some(domain) = world.domains.get(name) {
                self.own(name, &domain.xml)?;
                if domain.running.is_some() {
                    return Err(format!(
                        "Requested operation is not valid: domain '{name}' is running"
                    ));
                }
                world.domains.remove(name);
            }
            Ok(())
        })
    }

    fn domain_stats(&self, name: &str) -> Result<DomainStats, PortError> {
        self.call(Operation::DomainStats, "ask about domain", name, |world| {
            let domain = world.domains.get(name).ok_or_else(|| no_domain(name))?;
            let uses = self.own(name, &domain.xml)?.uses;
            let vcpus = text_of(&domain.xml, "vcpu").and_then(|text| text.parse().ok());
            let state = if domain.running.is_some() {
                "running"
            } else {
                "shut off"
            };
            Ok(DomainStats {
                state: state.to_owned(),
                vcpus: vcpus.unwrap_or_default(),
                memory: uses.memory,
                cpu_time_ns: 0,
                started: None,
            })
        })
    }

    fn placement(&self, name: &str) -> Result<Placement, PortError> {
        self.call(
            Operation::Placement,
            "ask for the place of",
            name,
            |world| {
                let domain = world.domains.get(name).ok_or_else(|| no_domain(name))?;
                let life = domain.running.as_ref().ok_or("domain is not running")?;
                Ok(life.placement.clone())
            },
        )
    }

    fn move_domain(&self, name: &str, split: &Split) -> Result<(), PortError> {
        self.call(Operation::MoveDomain, "move domain", name, |world| {
            let domain = world.domains.get_mut(name).ok_or_else(|| no_domain(name))?;
            let life = domain.running.as_mut().ok_or("domain is not running")?;
            if !world.misplaced.contains(name) {
                let Placement {
                    vcpus,
                    emulator,
                    io_threads,
                    ..
                } = &mut life.placement;
                for (found, wanted) in vcpus.iter_mut().zip(&split.pins) {
                    found.clone_from(wanted);
                }
                if let Some(wanted) = &split.emulator {
                    emulator.clone_from(wanted);
                    io_threads.fill(wanted.clone());
                }
            }
            Ok(())
        })
    }

    fn console_tail(&self, domain: &Name, lines: usize) -> Result<Vec<String>, PortError> {
        let line = format!("{domain}: the last line");
        Ok([line].into_iter().take(lines).collect())
    }
}
