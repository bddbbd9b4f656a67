//! The hypervisor port on libvirt.

use std::fs::Permissions;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use fs_err as fs;
use virt::domain::Domain;
use virt::network::Network;
use virt::sys;

use super::placement;
use super::snapshot::Definition;
use super::{Connection, LibvirtError};
use crate::backend::disks;
use crate::backend::files::{make_parent, remove_if_there};
use crate::backend::images;
use crate::backend::ram;
use crate::backend::tool::Tool;
use crate::backend::traffic::{Place, Traffic};
use crate::model::{
    Bytes, Digest, DiskFormat, DomainStats, Lab, LabPaths, Name, Observed, ObservedDomain,
    ObservedNetwork, Placement, PortImpairment, Reservation, Split,
};
use crate::ports::{ErrorKind, Hypervisor, ImageFiles, PortError};
use crate::render::reservation_xml;

/// Everything libvirt may keep for a domain goes with it; flags of what it never had are ignored.
const UNDEFINE: u32 = sys::VIR_DOMAIN_UNDEFINE_MANAGED_SAVE
    | sys::VIR_DOMAIN_UNDEFINE_SNAPSHOTS_METADATA
    | sys::VIR_DOMAIN_UNDEFINE_CHECKPOINTS_METADATA
    | sys::VIR_DOMAIN_UNDEFINE_NVRAM;

/// One lab on a libvirtd of this machine.
pub struct Libvirt {
    connection: Connection,
    lab: Lab,
    paths: LabPaths,
    traffic: Traffic,
}

impl Libvirt {
    /// The lab on a connection; its files are below `paths`, its devices at `place`.
    pub fn new(connection: Connection, lab: Lab, paths: LabPaths, place: Place) -> Self {
        Self {
            connection,
            lab,
            paths,
            traffic: Traffic::new(place),
        }
    }

    /// The connection.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    fn domain(&self, name: &str) -> Result<Option<Domain>, LibvirtError> {
        match self.connection.get().lookup_domain_by_name(name) {
            Ok(domain) => Ok(Some(domain)),
            Err(e) if LibvirtError::is_not_found(&e) => Ok(None),
            Err(e) => Err(LibvirtError::call(format!("look up domain {name}"))(e)),
        }
    }

    fn network(&self, name: &str) -> Result<Option<Network>, LibvirtError> {
        match self.connection.get().lookup_network_by_name(name) {
            Ok(network) => Ok(Some(network)),
            Err(e) if LibvirtError::is_not_found(&e) => Ok(None),
            Err(e) => Err(LibvirtError::call(format!("look up network {name}"))(e)),
        }
    }

    /// Gives the object's definition when it is this lab's.
    fn own(&self, kind: &'static str, name: &str, xml: &str) -> Result<Definition, LibvirtError> {
        let definition = Definition::read(name, xml)?;
        match &definition.tag {
            Some(tag) if tag.lab == self.lab.name.as_str() => Ok(definition),
            _ => Err(LibvirtError::Foreign {
                kind,
                name: name.to_owned(),
                owner: definition.owner(),
            }),
        }
    }

    fn own_domain(&self, name: &str) -> Result<Option<Domain>, LibvirtError> {
        let Some(domain) = self.domain(name)? else {
            return Ok(None);
        };
        let xml = domain_definition(&domain)
            .map_err(LibvirtError::call(format!("read domain {name}")))?;
        self.own("domain", name, &xml)?;
        Ok(Some(domain))
    }

    fn own_network(&self, name: &str) -> Result<Option<Network>, LibvirtError> {
        let Some(network) = self.network(name)? else {
            return Ok(None);
        };
        let xml = network_definition(&network)
            .map_err(LibvirtError::call(format!("read network {name}")))?;
        self.own("network", name, &xml)?;
        Ok(Some(network))
    }

    fn known_domain(&self, name: &str) -> Result<Domain, LibvirtError> {
        let connect = self.connection.get();
        connect
            .lookup_domain_by_name(name)
            .map_err(LibvirtError::call(format!("look up domain {name}")))
    }

    fn observe_all(&self) -> Result<Observed, LibvirtError> {
        let mut observed = Observed {
            files: files_in(&self.paths.disks())?
                .into_iter()
                .chain(files_in(&self.paths.ram())?)
                .collect(),
            ..Observed::default()
        };
        let connect = self.connection.get();
        for network in connect
            .list_all_networks(0)
            .map_err(LibvirtError::call("list networks"))?
        {
            let read = || -> Result<_, virt::error::Error> {
                Ok((
                    network.name()?,
                    network_definition(&network)?,
                    network.is_active()?,
                ))
            };
            let (name, xml, active) = read().map_err(LibvirtError::call("read a network"))?;
            if let Ok(definition) = self.own("network", &name, &xml) {
                observed.networks.insert(
                    name,
                    ObservedNetwork {
                        definition: definition.tag.map(|tag| tag.definition),
                        active,
                        bridge: definition.bridge,
                        reservations: definition.reservations,
                    },
                );
            }
        }
        for domain in connect
            .list_all_domains(0)
            .map_err(LibvirtError::call("list domains"))?
        {
            let read = || -> Result<_, virt::error::Error> {
                Ok((
                    domain.name()?,
                    domain_definition(&domain)?,
                    domain.is_active()?,
                ))
            };
            let (name, xml, active) = read().map_err(LibvirtError::call("read a domain"))?;
            if let Ok(definition) = self.own("domain", &name, &xml) {
                let tag_definition = definition.tag.map(|tag| tag.definition);
                let marker = fs::read_to_string(self.paths.ready(&name)).ok();
                let marker = marker.filter(|_| active);
                // One that ends just now is seen as it is by whoever starts it again.
                let placement = match active {
                    true => placement::read(connect, &domain, &name).ok(),
                    false => None,
                };
                observed.domains.insert(
                    name,
                    ObservedDomain {
                        definition: tag_definition,
                        active,
                        ready: marker.is_some(),
                        hosts: marker.and_then(|digest| digest.parse().ok()),
                        placement,
                        uses: definition.uses,
                    },
                );
            }
        }
        Ok(observed)
    }
}

/// What [`UNDEFINE`] says, and what a libvirt of this version may keep beside.
const fn undefine_flags(version: u32) -> u32 {
    /// libvirt 8.9.0: the first that has a say in the state of TPMs. Earlier ones refuse the flag,
    /// and remove the state always.
    const KEEPS_TPM: u32 = 8_009_000;
    match version >= KEEPS_TPM {
        true => UNDEFINE | sys::VIR_DOMAIN_UNDEFINE_TPM,
        false => UNDEFINE,
    }
}

fn domain_definition(domain: &Domain) -> Result<String, virt::error::Error> {
    domain.xml_desc(sys::VIR_DOMAIN_XML_INACTIVE)
}

fn network_definition(network: &Network) -> Result<String, virt::error::Error> {
    network.xml_desc(sys::VIR_NETWORK_XML_INACTIVE)
}

fn files_in(directory: &Path) -> std::io::Result<std::collections::BTreeSet<PathBuf>> {
    match fs::read_dir(directory) {
        Ok(entries) => entries.map(|entry| Ok(entry?.path())).collect(),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(Default::default()),
        Err(e) => Err(e),
    }
}

/// An overlay smaller than what it lies on would cut the guest's filesystem off, and QEMU makes it
/// all the same. The size of an image that is downloaded is known no earlier.
fn check_size(backing: &Path, size: Bytes) -> Result<(), PortError> {
    let (_, least) = disks::format_of(backing)?;
    if size >= least {
        return Ok(());
    }
    let what = format!("make a disk of {size}: its image has {least}");
    Err(PortError::new(ErrorKind::Fatal, what)
        .hint("make the root disk larger, or leave its size out"))
}

fn mark(marker: &Path, content: &str) -> Result<(), PortError> {
    make_parent(marker)?;
    Ok(fs::write(marker, content)?)
}

impl Hypervisor for Libvirt {
    fn observe(&self) -> Result<Observed, PortError> {
        let mut observed = self.observe_all()?;
        let running = observed.domains.values().filter(|domain| domain.active);
        let devices = running.flat_map(|domain| domain.uses.devices.iter().cloned());
        observed.impairments = self.traffic.observe(&devices.collect())?;
        Ok(observed)
    }

    fn define_network(&self, name: &str, xml: &str) -> Result<(), PortError> {
        self.own_network(name)?;
        let define = self.connection.get().define_network_xml(xml);
        define.map_err(LibvirtError::call(format!("define network {name}")))?;
        Ok(())
    }

    fn start_network(&self, name: &str) -> Result<(), PortError> {
        let Some(network) = self.own_network(name)? else {
            return Err(PortError::new(
                ErrorKind::Fatal,
                format!("start network {name}: it is not defined"),
            ));
        };
        let start = || {
            if network.is_active()? {
                Ok(())
            } else {
                network.create()
            }
        };
        Ok(start().map_err(LibvirtError::call(format!("start network {name}")))?)
    }

    fn reserve(
        &self,
        network: &str,
        reservation: &Reservation,
        wanted: bool,
    ) -> Result<(), PortError> {
        let call = format!(
            "change the reservation of {} in network {network}",
            reservation.ip
        );
        let connect = self.connection.get();
        let found = connect
            .lookup_network_by_name(network)
            .map_err(LibvirtError::call(&call))?;
        let xml = network_definition(&found).map_err(LibvirtError::call(&call))?;
        let definition = self.own("network", network, &xml)?;
        if definition.reservations.contains(reservation) == wanted {
            return Ok(());
        }
        let command = if wanted {
            sys::VIR_NETWORK_UPDATE_COMMAND_ADD_LAST
        } else {
            sys::VIR_NETWORK_UPDATE_COMMAND_DELETE
        };
        let mut flags = sys::VIR_NETWORK_UPDATE_AFFECT_CONFIG;
        if found.is_active().map_err(LibvirtError::call(&call))? {
            flags |= sys::VIR_NETWORK_UPDATE_AFFECT_LIVE;
        }
        let xml = reservation_xml(reservation);
        found
            .update(
                command,
                sys::VIR_NETWORK_SECTION_IP_DHCP_HOST,
                -1,
                &xml,
                flags,
            )
            .map_err(LibvirtError::call(call))?;
        Ok(())
    }

    fn remove_network(&self, name: &str) -> Result<(), PortError> {
        let Some(network) = self.own_network(name)? else {
            return Ok(());
        };
        let remove = || {
            if network.is_active()? {
                network.destroy()?;
            }
            network.undefine()
        };
        Ok(remove().map_err(LibvirtError::call(format!("remove network {name}")))?)
    }

    fn link_image(&self, link: &Path, image: &ImageFiles) -> Result<(), PortError> {
        images::link(link, image)
    }

    fn create_disk(
        &self,
        path: &Path,
        format: DiskFormat,
        backing: Option<&Path>,
        size: Option<Bytes>,
    ) -> Result<(), PortError> {
        let ram = self.paths.ram();
        if path.starts_with(&ram) {
            ram::make_directory(&ram)?;
        } else {
            make_parent(path)?;
        }
        // Published by rename: what is there under its name is whole.
        let unfinished = path.with_extension("new");
        if let (Some(backing), Some(size)) = (backing, size) {
            check_size(backing, size)?;
        }
        let mut tool = Tool::new("qemu-img").args(["create", "-q", "-f", format.as_str()]);
        if let Some(backing) = backing {
            tool = tool.args(["-F", "qcow2", "-b"]).arg(backing);
        }
        tool = tool.arg(&unfinished);
        if let Some(size) = size {
            tool = tool.arg(size.0.to_string());
        }
        if let Err(error) = tool.run() {
            remove_if_there(&unfinished)?;
            return Err(error.into());
        }
        // As the seed: what a guest writes, its keys among it, is for nobody else on this machine.
        fs::set_permissions(&unfinished, Permissions::from_mode(0o600))?;
        Ok(fs::rename(unfinished, path)?)
    }

    fn write_seed(&self, path: &Path, content: &[u8]) -> Result<(), PortError> {
        use std::io::Write as _;
        make_parent(path)?;
        let directory = path.parent().unwrap_or(Path::new("."));
        // Made readable for its owner alone: it holds private keys.
        let mut file = tempfile::NamedTempFile::new_in(directory)?;
        file.write_all(content)?;
        file.persist(path).map_err(|e| e.error)?;
        Ok(())
    }

    fn remove_file(&self, path: &Path) -> Result<(), PortError> {
        Ok(remove_if_there(path)?)
    }

    fn define_domain(&self, name: &str, xml: &str) -> Result<(), PortError> {
        self.own_domain(name)?;
        for directory in ["console", "nvram"] {
            fs::create_dir_all(self.paths.root().join(directory))?;
        }
        let define = self.connection.get().define_domain_xml(xml);
        define.map_err(LibvirtError::call(format!("define domain {name}")))?;
        Ok(())
    }

    fn start_domain(&self, name: &str) -> Result<(), PortError> {
        remove_if_there(&self.paths.ready(name))?;
        let domain = self.known_domain(name)?;
        let start = || {
            if domain.is_active()? {
                Ok(())
            } else {
                domain.create()
            }
        };
        start().map_err(LibvirtError::call(format!("start domain {name}")))?;
        mark(&self.paths.started(name), "")
    }

    fn impair(&self, device: &str, impairment: &PortImpairment) -> Result<(), PortError> {
        self.traffic.impair(device, impairment)
    }

    fn mark_ready(&self, name: &str, hosts: Option<Digest>) -> Result<(), PortError> {
        let hosts = hosts.map(|digest| digest.to_string());
        mark(&self.paths.ready(name), hosts.as_deref().unwrap_or(""))
    }

    fn stop_domain(&self, name: &str) -> Result<(), PortError> {
        let Some(domain) = self.own_domain(name)? else {
            return Ok(());
        };
        let stop = || {
            if domain.is_active()? {
                domain.destroy()
            } else {
                Ok(())
            }
        };
        let xml = domain_definition(&domain)
            .map_err(LibvirtError::call(format!("read domain {name}")))?;
        stop().map_err(LibvirtError::call(format!("stop domain {name}")))?;
        let devices = Definition::read(name, &xml)?.uses.devices;
        self.traffic.clean_up(&devices)
    }

    fn remove_domain(&self, name: &str) -> Result<(), PortError> {
        let Some(domain) = self.own_domain(name)? else {
            return Ok(());
        };
        let xml = domain_definition(&domain)
            .map_err(LibvirtError::call(format!("read domain {name}")))?;
        // One that ended by itself left its devices.
        self.traffic
            .clean_up(&Definition::read(name, &xml)?.uses.devices)?;
        let version = self.connection.number()?;
        domain
            .undefine_flags(undefine_flags(version))
            .map_err(LibvirtError::call(format!("undefine domain {name}")))?;
        Ok(remove_if_there(&self.paths.ready(name))?)
    }

    fn domain_stats(&self, name: &str) -> Result<DomainStats, PortError> {
        let info = self
            .known_domain(name)?
            .info()
            .map_err(LibvirtError::call(format!(
                "ask how domain {name} is doing"
            )))?;
        let state = info.state.unwrap_or(virt::domain::DomainState::NoState);
        let marker = fs::metadata(self.paths.started(name))
            .and_then(|marker| marker.modified())
            .ok();
        let runs = !matches!(
            state,
            virt::domain::DomainState::Shutoff | virt::domain::DomainState::Crashed
        );
        Ok(DomainStats {
            state: state_name(state).to_owned(),
            started: marker
                .filter(|_| runs)
                .and_then(|time| jiff::Timestamp::try_from(time).ok()),
            vcpus: info.nr_virt_cpu,
            memory: Bytes(info.memory << 10),
            cpu_time_ns: info.cpu_time,
        })
    }

    fn placement(&self, name: &str) -> Result<Placement, PortError> {
        let domain = self.known_domain(name)?;
        Ok(placement::read(self.connection.get(), &domain, name)?)
    }

    fn move_domain(&self, name: &str, split: &Split) -> Result<(), PortError> {
        let Some(domain) = self.own_domain(name)? else {
            return Ok(());
        };
        Ok(placement::move_to(
            self.connection.get(),
            &domain,
            name,
            split,
        )?)
    }

    fn console_tail(&self, domain: &Name, lines: usize) -> Result<Vec<String>, PortError> {
        /// Enough for the lines that are asked for; a console may have grown for days.
        const WINDOW: i64 = 1 << 16;
        let mut file = match fs::File::open(self.paths.console(domain)) {
            Ok(file) => file,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(e.into()),
        };
        let length = i64::try_from(file.metadata()?.len()).unwrap_or(i64::MAX);
        file.seek(SeekFrom::End(-length.min(WINDOW)))?;
        let mut content = Vec::new();
        file.read_to_end(&mut content)?;
        let text = String::from_utf8_lossy(&content);
        let clean = |line: &str| line.chars().filter(|c| !c.is_control()).collect::<String>();
        let all: Vec<_> = text
            .lines()
            .map(clean)
            .filter(|line| !line.trim().is_empty())
            .collect();
        Ok(all[all.len().saturating_sub(lines)..].to_vec())
    }
}

/// The words `virsh list` uses.
fn state_name(state: virt::domain::DomainState) -> &'static str {
    use virt::domain::DomainState as S;
    match state {
        S::Running => "running",
        S::Blocked => "idle",
        S::Paused => "paused",
        S::Shutdown => "in shutdown",
        S::Shutoff => "shut off",
        S::Crashed => "crashed",
        S::PMSuspended => "pmsuspended",
        _ => "no state",
    }
}
