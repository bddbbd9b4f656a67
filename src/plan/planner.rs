//! Observed and desired to actions.
//!
//! A plan may be cut short after any of its actions, and the next one starts from what is seen
//! then. What cannot be seen must therefore never be left behind: a running domain does not show
//! that its disk, its network or its definition was replaced under it. So whatever is done to a
//! domain, or to something it takes, comes after the domain was stopped.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::sync::Arc;

use super::{ActionKind, Desired, DesiredDomain, DesiredNetwork, Plan};
use crate::model::{
    MacAddr, Misplaced, Name, Observed, ObservedDomain, ObservedNetwork, PortImpairment,
    Reservation,
};
use crate::render::Hosts;

/// Why a domain is made that is not there.
pub(super) const NEW_DOMAIN: &str = "the domain is new";

/// What has to be done so that a host shows what is desired. Empty when it does already.
pub fn plan(desired: &Desired, observed: &Observed) -> Plan {
    let mut planner = Planner::new(observed);
    planner.images(desired);
    let restarts = restarts(desired, observed);
    planner.stops(desired, &restarts);
    let holders = planner.holders();
    planner.networks(desired, &holders);
    let addresses = addresses(desired);
    for domain in &desired.domains {
        let addresses = addresses.get(&domain.name).map_or(&[][..], Vec::as_slice);
        let restart = restarts.get(domain.libvirt_name.as_str());
        let hosts = domain.takes_hosts.then_some(&desired.hosts);
        planner.domain(domain, restart, addresses, &holders, hosts);
    }
    let files = desired
        .domains
        .iter()
        .flat_map(|d| d.disks.iter().map(|disk| &disk.path).chain([&d.seed.0]));
    planner.remove_files(&files.collect(), "nothing uses it any more");
    planner.plan
}

/// What has to be done so that nothing observed is left.
pub fn removal(observed: &Observed) -> Plan {
    const REASON: &str = "the lab goes down";
    let mut planner = Planner::new(observed);
    for name in observed.domains.keys() {
        planner.remove_domain(name, REASON);
    }
    for name in observed.networks.keys() {
        planner.remove_network(name, REASON);
    }
    planner.remove_files(&BTreeSet::new(), REASON);
    planner.plan
}

/// Why domains have to be started or started anew, by libvirt name.
fn restarts<'a>(desired: &'a Desired, observed: &Observed) -> BTreeMap<&'a str, String> {
    let down: BTreeSet<_> = desired
        .networks
        .iter()
        .filter(|network| !is_kept(network, observed).is_some_and(|seen| seen.active))
        .map(|network| network.name.as_str())
        .collect();
    let reason = |domain: &DesiredDomain| {
        let Some(seen) = observed.domains.get(&domain.libvirt_name) else {
            return Some(NEW_DOMAIN.to_owned());
        };
        let files = domain.disks.iter().map(|disk| &disk.path);
        if seen.definition != Some(domain.definition) {
            Some("its definition changed".to_owned())
        } else if !files
            .chain([&domain.seed.0])
            .all(|file| observed.files.contains(file))
        {
            Some("one of its disks was lost".to_owned())
        } else if !seen.active {
            Some("it does not run".to_owned())
        } else if let Some(wrong) = misplaced(domain, seen).find(|wrong| !wrong.can_be_moved()) {
            Some(format!("it has {wrong}"))
        } else {
            let network = domain.networks.iter().find(|n| down.contains(n.as_str()))?;
            Some(format!("network {network} is started anew"))
        }
    };
    desired
        .domains
        .iter()
        .filter_map(|domain| Some((domain.libvirt_name.as_str(), reason(domain)?)))
        .collect()
}

/// What of a running domain is not where it belongs on the host.
fn misplaced(domain: &DesiredDomain, seen: &ObservedDomain) -> impl Iterator<Item = Misplaced> {
    let found = seen.placement.as_ref();
    let wrong = found.map(|placement| placement.misplaced(&domain.split));
    wrong.into_iter().flatten()
}

/// The network as it is seen, when it can stay.
fn is_kept<'a>(network: &DesiredNetwork, observed: &'a Observed) -> Option<&'a ObservedNetwork> {
    observed
        .networks
        .get(&network.name)
        .filter(|seen| seen.definition == Some(network.definition))
}

/// Networks and addresses of every domain.
fn addresses(desired: &Desired) -> BTreeMap<&Name, Vec<(&str, &Reservation)>> {
    let mut addresses: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for network in &desired.networks {
        for reservation in &network.reservations {
            addresses
                .entry(&reservation.domain)
                .or_default()
                .push((network.name.as_str(), reservation));
        }
    }
    addresses
}

/// Addresses that running domains give up, with the action that stops them.
#[derive(Default)]
struct Holders<'a> {
    macs: BTreeMap<MacAddr, usize>,
    ips: BTreeMap<(&'a str, Ipv4Addr), usize>,
}

/// A plan in the making, and the actions that later ones wait for.
struct Planner<'a> {
    observed: &'a Observed,
    plan: Plan,
    /// Provides an image, by its name.
    images: BTreeMap<&'a Name, usize>,
    /// Stops a domain, by libvirt name.
    stops: BTreeMap<&'a str, usize>,
    /// The last change of a domain's definition, by libvirt name.
    definitions: BTreeMap<&'a str, usize>,
    /// Brings a network up, by libvirt name.
    starts: BTreeMap<&'a str, usize>,
    /// Removes a network that is not wanted so.
    network_removals: Vec<usize>,
    /// Reserves an address, by network and MAC address.
    reserves: BTreeMap<(&'a str, MacAddr), usize>,
}

impl<'a> Planner<'a> {
    fn new(observed: &'a Observed) -> Self {
        Self {
            observed,
            plan: Plan::default(),
            images: BTreeMap::new(),
            stops: BTreeMap::new(),
            definitions: BTreeMap::new(),
            starts: BTreeMap::new(),
            network_removals: Vec::new(),
            reserves: BTreeMap::new(),
        }
    }

    fn images(&mut self, desired: &'a Desired) {
        for image in desired
            .images
            .iter()
            .filter(|image| !self.observed.images.contains(&image.image.key))
        {
            let kind = ActionKind::EnsureImage {
                name: image.name.clone(),
                image: image.image.clone(),
                link: image.link.clone(),
            };
            let action = self
                .plan
                .push(kind, "the lab has no such image yet", &[], None);
            self.images.insert(&image.name, action);
        }
    }

    /// Stops what is not wanted, or not wanted so; removes what is not wanted.
    fn stops(&mut self, desired: &'a Desired, restarts: &BTreeMap<&str, String>) {
        let wanted: BTreeMap<_, _> = desired
            .domains
            .iter()
            .map(|domain| (domain.libvirt_name.as_str(), domain))
            .collect();
        for (name, seen) in &self.observed.domains {
            let Some(domain) = wanted.get(name.as_str()) else {
                self.remove_domain(name, "it is not in the topology");
                continue;
            };
            let Some(reason) = restarts.get(name.as_str()).filter(|_| seen.active) else {
                continue;
            };
            // What runs goes on until it is sure that it can be started again.
            let after: Vec<_> = self
                .images
                .get(&domain.image)
                .copied()
                .into_iter()
                .collect();
            let kind = ActionKind::StopDomain { name: name.clone() };
            let stop = self.plan.push(kind, reason, &after, Some(&domain.name));
            self.stops.insert(name, stop);
        }
    }

    fn remove_domain(&mut self, name: &'a str, reason: &str) {
        if self.observed.domains.get(name).is_some_and(|d| d.active) {
            let kind = ActionKind::StopDomain {
                name: name.to_owned(),
            };
            let stop = self.plan.push(kind, reason, &[], None);
            self.stops.insert(name, stop);
        }
        let after: Vec<_> = self.stops.get(name).copied().into_iter().collect();
        let kind = ActionKind::RemoveDomain {
            name: name.to_owned(),
        };
        let remove = self.plan.push(kind, reason, &after, None);
        self.definitions.insert(name, remove);
    }

    /// Stops of the domains that are on a network.
    fn stops_on(&self, network: &str) -> Vec<usize> {
        let domains = self.observed.domains.iter();
        domains
            .filter(|(_, domain)| domain.uses.networks.contains(network))
            .filter_map(|(name, _)| self.stops.get(name.as_str()).copied())
            .collect()
    }

    fn remove_network(&mut self, name: &str, reason: &str) {
        let kind = ActionKind::RemoveNetwork {
            name: name.to_owned(),
        };
        let after = self.stops_on(name);
        let remove = self.plan.push(kind, reason, &after, None);
        self.network_removals.push(remove);
    }

    fn networks(&mut self, desired: &'a Desired, holders: &Holders<'_>) {
        let observed = self.observed;
        let wanted: BTreeMap<_, _> = desired
            .networks
            .iter()
            .map(|network| (&network.name, network))
            .collect();
        for name in observed.networks.keys() {
            match wanted.get(name) {
                None => self.remove_network(name, "it is not in the topology"),
                Some(network) if is_kept(network, observed).is_none() => {
                    self.remove_network(name, &format!("vswitch {} changed", network.vswitch));
                }
                Some(_) => {}
            }
        }
        for network in &desired.networks {
            match is_kept(network, observed) {
                Some(seen) => self.keep_network(network, seen, holders),
                None => self.make_network(network),
            }
        }
    }

    fn keep_network(
        &mut self,
        network: &'a DesiredNetwork,
        seen: &'a ObservedNetwork,
        holders: &Holders<'_>,
    ) {
        let changes = self.reservations(network, seen, holders);
        if !seen.active {
            // Once it runs, libvirt would no longer give it what is changed for its next start.
            self.start_network(network, "it is not active", changes);
        }
    }

    fn make_network(&mut self, network: &'a DesiredNetwork) {
        let reason = match self.observed.networks.get(&network.name) {
            Some(_) => format!("vswitch {} changed", network.vswitch),
            None => format!("vswitch {} has no network yet", network.vswitch),
        };
        let kind = ActionKind::DefineNetwork {
            name: network.name.clone(),
            xml: network.xml.clone(),
        };
        // Its bridge or its subnet may be one that another network gives up.
        let after = self.network_removals.clone();
        let define = self.plan.push(kind, &reason, &after, None);
        self.start_network(network, &reason, vec![define]);
    }

    fn start_network(&mut self, network: &'a DesiredNetwork, reason: &str, mut after: Vec<usize>) {
        after.extend(&self.network_removals);
        after.extend(self.stops_on(&network.name));
        let kind = ActionKind::StartNetwork {
            name: network.name.clone(),
        };
        let start = self.plan.push(kind, reason, &after, None);
        self.starts.insert(&network.name, start);
    }

    /// Brings the reservations of a network that stays up to date.
    fn reservations(
        &mut self,
        network: &'a DesiredNetwork,
        seen: &'a ObservedNetwork,
        holders: &Holders<'_>,
    ) -> Vec<usize> {
        let gone: Vec<_> = seen
            .reservations
            .difference(&network.reservations)
            .collect();
        let new: Vec<_> = network
            .reservations
            .difference(&seen.reservations)
            .collect();
        let push = |plan: &mut Plan, reservation: &Reservation, wanted, after: &[usize]| {
            let kind = ActionKind::Reserve {
                network: network.name.clone(),
                reservation: reservation.clone(),
                wanted,
            };
            let reason = if wanted {
                "the vnet is new"
            } else {
                "the vnet is gone"
            };
            plan.push(kind, reason, after, Some(&reservation.domain))
        };
        // libvirt refuses a second entry with the MAC address, the name or the address of another.
        let mut released_macs = BTreeMap::new();
        let mut released_names: BTreeMap<_, Vec<usize>> = BTreeMap::new();
        let mut released_ips = BTreeMap::new();
        let mut all = Vec::new();
        for reservation in gone {
            let after: Vec<_> = holders
                .macs
                .get(&reservation.mac)
                .copied()
                .into_iter()
                .collect();
            let action = push(&mut self.plan, reservation, false, &after);
            released_macs.insert(reservation.mac, action);
            released_ips.insert(reservation.ip, action);
            released_names
                .entry(&reservation.domain)
                .or_default()
                .push(action);
            all.push(action);
        }
        for reservation in new {
            let names = released_names.get(&reservation.domain);
            let after: BTreeSet<_> = [
                released_macs.get(&reservation.mac),
                released_ips.get(&reservation.ip),
            ]
            .into_iter()
            .flatten()
            .chain(names.into_iter().flatten())
            .copied()
            .collect();
            let after: Vec<_> = after.into_iter().collect();
            let action = push(&mut self.plan, reservation, true, &after);
            self.reserves
                .insert((&network.name, reservation.mac), action);
            all.push(action);
        }
        all
    }

    /// Addresses that are in use until a domain is stopped.
    fn holders(&self) -> Holders<'a> {
        let mut holders = Holders::default();
        let observed = self.observed;
        for (name, stop) in &self.stops {
            let macs = observed.domains.get(*name).map(|domain| &domain.uses.macs);
            holders
                .macs
                .extend(macs.into_iter().flatten().map(|mac| (*mac, *stop)));
        }
        for (name, network) in &observed.networks {
            for reservation in &network.reservations {
                if let Some(stop) = holders.macs.get(&reservation.mac) {
                    holders.ips.insert((name, reservation.ip), *stop);
                }
            }
        }
        holders
    }

    fn domain(
        &mut self,
        domain: &'a DesiredDomain,
        restart: Option<&String>,
        addresses: &[(&str, &Reservation)],
        holders: &Holders<'_>,
        hosts: Option<&Arc<Hosts>>,
    ) {
        let me = Some(&domain.name);
        let name = || domain.libvirt_name.clone();
        let seen = self.observed.domains.get(&domain.libvirt_name);
        let await_ready = ActionKind::AwaitReady {
            name: name(),
            address: domain.address,
            timeout: domain.boot_timeout,
            hosts: hosts.cloned(),
            split: Box::new(domain.split.clone()),
        };
        let Some(reason) = restart else {
            let mut mended = Vec::new();
            if let Some(wrong) = seen.and_then(|seen| misplaced(domain, seen).next()) {
                let kind = ActionKind::MoveDomain {
                    name: name(),
                    split: Box::new(domain.split.clone()),
                };
                mended.push(self.plan.push(kind, format!("it has {wrong}"), &[], me));
            }
            let reason = "what its frames meet is not what it is to be";
            mended.extend(self.impair(domain, reason, &[], |wanted, seen| !wanted.is_like(seen)));
            let Some(seen) = seen else { return };
            if !seen.ready {
                let reason = "it was not seen ready since its start";
                self.plan.push(await_ready, reason, &mended, me);
            } else if let Some(hosts) = hosts.filter(|hosts| seen.hosts != Some(hosts.digest())) {
                let kind = ActionKind::TellHosts {
                    name: name(),
                    address: domain.address,
                    timeout: domain.boot_timeout,
                    hosts: Arc::clone(hosts),
                };
                let reason = "names or addresses of domains changed";
                self.plan.push(kind, reason, &[], me);
            }
            return;
        };
        let image = self.images.get(&domain.image).copied();
        let stop = self.stops.get(domain.libvirt_name.as_str()).copied();
        let stopped: Vec<_> = stop.into_iter().collect();
        let mut before_start: BTreeSet<_> = image.into_iter().chain(stop).collect();

        for disk in &domain.disks {
            if self.observed.files.contains(&disk.path) {
                continue;
            }
            let kind = ActionKind::CreateDisk {
                path: disk.path.clone(),
                on: disk.on,
                format: disk.format,
                backing: disk.backing.clone(),
                size: disk.size,
            };
            let backed = image.filter(|_| disk.backing.is_some());
            let after: Vec<_> = backed.into_iter().chain(stop).collect();
            before_start.insert(self.plan.push(kind, "the disk is not there", &after, me));
        }
        if !self.observed.files.contains(&domain.seed.0) {
            let kind = ActionKind::WriteSeed {
                path: domain.seed.0.clone(),
                seed: domain.seed.1.clone(),
            };
            let reason = "the guest's settings are new";
            before_start.insert(self.plan.push(kind, reason, &stopped, me));
        }
        if seen.is_none_or(|seen| seen.definition != Some(domain.definition)) {
            let kind = ActionKind::DefineDomain {
                name: name(),
                xml: domain.xml.clone(),
            };
            let define = self.plan.push(kind, reason, &stopped, me);
            before_start.insert(define);
            self.definitions.insert(&domain.libvirt_name, define);
        }
        let networks = domain.networks.iter();
        before_start.extend(networks.filter_map(|n| self.starts.get(n.as_str())));
        for &(network, reservation) in addresses {
            before_start.extend(self.reserves.get(&(network, reservation.mac)));
            before_start.extend(holders.macs.get(&reservation.mac));
            before_start.extend(holders.ips.get(&(network, reservation.ip)));
        }
        let before_start: Vec<_> = before_start.into_iter().collect();
        let kind = ActionKind::StartDomain { name: name() };
        let start = self.plan.push(kind, reason, &before_start, me);
        let mut before_ready = vec![start];
        let why = "a device of a domain that starts is a new one";
        before_ready.extend(self.impair(domain, why, &[start], |wanted, _| !wanted.is_none()));
        self.plan.push(await_ready, reason, &before_ready, me);
    }

    /// Sets what frames of those vnets meet for which it is `needed`.
    fn impair(
        &mut self,
        domain: &DesiredDomain,
        reason: &str,
        after: &[usize],
        needed: impl Fn(&PortImpairment, &PortImpairment) -> bool,
    ) -> Vec<usize> {
        let mut actions = Vec::new();
        for port in &domain.ports {
            let seen = self.observed.impairments.get(&port.device);
            let seen = seen.copied().unwrap_or_default();
            if needed(&port.impairment, &seen) {
                let kind = ActionKind::Impair {
                    vswitch: port.vswitch.clone(),
                    device: port.device.clone(),
                    impairment: port.impairment,
                };
                actions.push(self.plan.push(kind, reason, after, Some(&domain.name)));
            }
        }
        actions
    }

    /// Removes files but those to keep, when no definition names them any more: what is done before
    /// may fail, and the old disk still be wanted.
    fn remove_files(&mut self, keep: &BTreeSet<&std::path::PathBuf>, reason: &str) {
        let mut users: BTreeMap<_, Vec<usize>> = BTreeMap::new();
        for (name, domain) in &self.observed.domains {
            let name = name.as_str();
            let actions = [self.stops.get(name), self.definitions.get(name)];
            for file in &domain.uses.files {
                users
                    .entry(file)
                    .or_default()
                    .extend(actions.into_iter().flatten());
            }
        }
        for path in self
            .observed
            .files
            .iter()
            .filter(|path| !keep.contains(path))
        {
            let after = users.get(path).map_or(&[][..], Vec::as_slice);
            let kind = ActionKind::RemoveFile { path: path.clone() };
            self.plan.push(kind, reason, after, None);
        }
    }
}
