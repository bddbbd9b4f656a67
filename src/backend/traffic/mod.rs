//! What frames of vnets meet: the kernel's traffic control, by iproute2's `tc`.
//!
//! Frames to a domain leave the lab host at the vnet's device (a tap), so they wait, and are lost,
//! in that device's queueing discipline. Frames from a domain come in there, where nothing waits;
//! they are led to a device that exists for this alone (an ifb), and meet its queueing discipline.
//! A macvtap is the other way round: it is the domain's end, and frames to the domain come in there.

mod commands;
mod show;

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::namespaces;
use super::tool::Tool;
use crate::model::PortImpairment;
use crate::ports::{ErrorKind, PortError};
use commands::{Command, inbound, outbound, waiting_device};
use show::{Shown, redirects_to};

/// Network namespace in which the devices are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// labrig's own.
    Here,
    /// That of an embedded host, by the id of its outermost process.
    Of(i32),
}

/// Traffic control of one lab's host.
#[derive(Debug, Clone, Copy)]
pub struct Traffic {
    place: Place,
}

/// What `ip -j link show` says of a device.
#[derive(Deserialize)]
struct Link {
    ifname: Option<String>,
    mtu: Option<u64>,
}

impl Place {
    /// A program that sees, and may change, the devices there.
    pub(super) fn tool(self, program: &str) -> Tool {
        let Self::Of(pid) = self else {
            return Tool::new(program);
        };
        Tool::new("nsenter")
            .called(program)
            .args(namespaces::entering(pid, &["--net"]))
            .arg(program)
    }
}

impl Traffic {
    /// Traffic control in a network namespace.
    pub fn new(place: Place) -> Self {
        Self { place }
    }

    /// What frames of vnets' devices meet, by device; only those that meet something.
    ///
    /// # Errors
    /// When `tc` is missing, or says what is not understood.
    pub fn observe(
        &self,
        devices: &BTreeSet<String>,
    ) -> Result<BTreeMap<String, PortImpairment>, PortError> {
        let mut impairments = BTreeMap::new();
        if devices.is_empty() {
            return Ok(impairments);
        }
        let shown = self.shown()?;
        let reversed = self.names_of("macvtap")?;
        for device in devices {
            let impairment = in_order(self.seen(&shown, device)?, reversed.contains(device));
            if !impairment.is_none() {
                impairments.insert(device.clone(), impairment);
            }
        }
        Ok(impairments)
    }

    /// Sets what frames of a vnet's device meet, and makes sure that the kernel shows it.
    ///
    /// # Errors
    /// When the kernel refuses, or shows something else afterwards.
    pub fn impair(&self, device: &str, wanted: &PortImpairment) -> Result<(), PortError> {
        let mtu = self.mtu(device)?;
        let is_reversed = self.names_of("macvtap")?.contains(device);
        let wanted = in_order(*wanted, is_reversed);
        let shown = self.shown()?;
        let mut commands = Vec::new();
        if shown.has_own_root(device) {
            // What libvirt gives a vnet.
            commands.push(Command::tc([
                "qdisc", "replace", "dev", device, "root", "noqueue",
            ]));
        }
        if shown.has_ingress(device) {
            commands.push(Command::tc(["qdisc", "del", "dev", device, "ingress"]));
        }
        let waiting = waiting_device(device);
        if self.names_of("ifb")?.contains(&waiting) {
            commands.push(Command::ip(["link", "del", "dev", &waiting]));
        }
        commands.extend(inbound(device, &wanted.inbound, mtu));
        commands.extend(outbound(device, &wanted.outbound, mtu));
        for command in commands {
            self.run(command.program, &command.arguments)?;
        }
        let seen = self.seen(&self.shown()?, device)?;
        if wanted.is_like(&seen) {
            return Ok(());
        }
        let (wanted, seen) = (in_order(wanted, is_reversed), in_order(seen, is_reversed));
        Err(PortError::new(
            ErrorKind::Fatal,
            format!("impair {device}: the kernel does not show what was set"),
        )
        .because(format!("wanted {wanted}; seen {seen}")))
    }

    /// Removes what outlives the devices of a domain that ended.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn clean_up(&self, devices: &BTreeSet<String>) -> Result<(), PortError> {
        if devices.is_empty() {
            return Ok(());
        }
        let there = self.names_of("ifb")?;
        for device in devices {
            let waiting = waiting_device(device);
            if there.contains(&waiting) {
                self.run("ip", &["link", "del", "dev", &waiting])?;
            }
        }
        Ok(())
    }

    fn seen(&self, shown: &Shown, device: &str) -> Result<PortImpairment, PortError> {
        let waiting = waiting_device(device);
        let is_led = shown.has_ingress(device) && {
            let filters = ["-j", "filter", "show", "dev", device, "parent", "ffff:"];
            redirects_to(&self.run("tc", &filters)?, &waiting)?
        };
        let outbound = is_led.then(|| shown.impairment(&waiting));
        Ok(PortImpairment {
            inbound: shown.impairment(device),
            outbound: outbound.unwrap_or_default(),
        })
    }

    fn shown(&self) -> Result<Shown, PortError> {
        Shown::read(&self.run("tc", &["-j", "qdisc", "show"])?)
    }

    fn mtu(&self, device: &str) -> Result<u64, PortError> {
        let links = self.links(&["-j", "link", "show", "dev", device])?;
        Ok(links.iter().find_map(|link| link.mtu).unwrap_or(1500))
    }

    /// Names of the devices of a kind.
    fn names_of(&self, kind: &str) -> Result<BTreeSet<String>, PortError> {
        let links = self.links(&["-j", "link", "show", "type", kind])?;
        Ok(links.into_iter().filter_map(|link| link.ifname).collect())
    }

    fn links(&self, arguments: &[&str]) -> Result<Vec<Link>, PortError> {
        parse(&self.run("ip", arguments)?, "ip")
    }

    fn run<S: AsRef<std::ffi::OsStr>>(
        &self,
        program: &str,
        arguments: &[S],
    ) -> Result<Vec<u8>, PortError> {
        Ok(self.place.tool(program).args(arguments).run()?)
    }
}

/// The impairment of a device as that of its vnet, and the other way round.
fn in_order(impairment: PortImpairment, is_reversed: bool) -> PortImpairment {
    if is_reversed {
        impairment.swapped()
    } else {
        impairment
    }
}

/// Reads what iproute2 prints with `-j`; nothing at all is an empty list.
fn parse<T: serde::de::DeserializeOwned>(
    printed: &[u8],
    program: &str,
) -> Result<Vec<T>, PortError> {
    if printed.trim_ascii().is_empty() {
        return Ok(Vec::new());
    }
    serde_json::from_slice(printed)
        .map_err(|error| PortError::fatal(format!("understand what {program} shows"), error))
}
