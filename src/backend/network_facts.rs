//! Finding out what the network of a lab's host has.

use std::collections::{BTreeMap, BTreeSet};

use ipnet::IpNet;
use nix::unistd::Uid;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::namespaces;
use super::tool::{Tool, ToolError, find};
use super::traffic::Place;
use crate::model::{DeviceKind, NetworkDevice, NetworkFacts};
use crate::ports::PortError;

/// Tries each part of traffic control in a throw-away network namespace.
const SCRIPT: &str = include_str!("network_facts.sh");

/// What the script tries.
const PARTS: [&str; 3] = ["tbf", "netem", "redirect"];

/// What `ip -j -d link show` says of a device.
#[derive(Deserialize)]
struct Link {
    ifname: String,
    mtu: u32,
    #[serde(default)]
    link_type: String,
    master: Option<String>,
    #[serde(default)]
    linkinfo: LinkInfo,
}

#[derive(Default, Deserialize)]
struct LinkInfo {
    #[serde(default)]
    info_kind: String,
}

/// What `ip -j route show` says of a route.
#[derive(Deserialize)]
struct Route {
    dst: String,
    dev: Option<String>,
}

/// Facts of the network at `place`; of one that is yet to be made for a lab, when there is none.
///
/// # Errors
/// When iproute2 or namespaces are missing.
pub fn network_facts(place: Option<Place>) -> Result<NetworkFacts, PortError> {
    let is_private = place != Some(Place::Here);
    let mut facts = NetworkFacts {
        is_private,
        may_impair: is_private || Uid::effective().is_root(),
        lacks: lacks(),
        ..NetworkFacts::default()
    };
    let Some(place) = place else {
        facts.openvswitch_lacks = openvswitch_lacks(None);
        return Ok(facts);
    };
    let links = ip(place, &["-d", "link", "show"])?;
    facts.devices = links.into_iter().map(device).collect();
    facts.openvswitch_lacks = openvswitch_lacks(Some(place));
    if facts.openvswitch_lacks.is_none() {
        // Its bridges look like many other devices, unless it is asked.
        for (name, device) in &mut facts.devices {
            let ask = place.tool("ovs-vsctl").args(["br-exists", name]);
            if ask.run().is_ok() {
                device.kind = DeviceKind::Openvswitch;
            }
        }
    }
    if !is_private {
        for family in ["-4", "-6"] {
            let routes = ip::<Route>(place, &[family, "route", "show"])?;
            facts.routes.extend(routes.into_iter().filter_map(route));
        }
    }
    Ok(facts)
}

/// Parts of traffic control that the kernel lacks, with what it says. What cannot be tried counts as
/// lacking: whoever does not need it is not kept from a lab.
fn lacks() -> BTreeMap<String, String> {
    let printed = match namespaces::of_lab("sh").args(["-c", SCRIPT]).run() {
        Ok(printed) => String::from_utf8_lossy(&printed).into_owned(),
        Err(error) => PARTS
            .map(|part| format!("{part} missing it could not be tried: {error}\n"))
            .concat(),
    };
    let good: BTreeSet<_> = printed
        .lines()
        .filter_map(|line| line.strip_suffix(" good"))
        .collect();
    let missing = PARTS.into_iter().filter(|part| !good.contains(part));
    missing
        .map(|part| {
            let said = printed
                .lines()
                .find_map(|line| line.strip_prefix(part)?.strip_prefix(" missing "));
            let said = said.unwrap_or("it could not be tried").trim();
            (part.to_owned(), said.to_owned())
        })
        .collect()
}

fn openvswitch_lacks(place: Option<Place>) -> Option<String> {
    if find("ovs-vsctl").is_none() {
        return Some("the program ovs-vsctl is not installed".to_owned());
    }
    let show = place.map(|place| place.tool("ovs-vsctl").args(["--timeout=2", "show"]).run());
    match show {
        Some(Ok(_)) => None,
        Some(Err(error)) => Some(format!("ovs-vsctl does not answer: {error}")),
        None => Some("it does not run in a lab's own network".to_owned()),
    }
}

fn ip<T: DeserializeOwned>(place: Place, arguments: &[&str]) -> Result<Vec<T>, PortError> {
    let tool: Tool = place.tool("ip").arg("-j").args(arguments);
    let printed = tool.run().or_else(|error| match error {
        // A kernel without a family says so.
        ToolError::Failed { .. } if arguments.contains(&"-6") => Ok(Vec::new()),
        error => Err(error),
    })?;
    if printed.trim_ascii().is_empty() {
        return Ok(Vec::new());
    }
    serde_json::from_slice(&printed)
        .map_err(|error| PortError::fatal("understand what ip shows", error))
}

fn device(link: Link) -> (String, NetworkDevice) {
    let kind = match (link.link_type.as_str(), link.linkinfo.info_kind.as_str()) {
        ("loopback", _) => DeviceKind::Loopback,
        (_, "bridge") => DeviceKind::Bridge,
        (_, "openvswitch") => DeviceKind::Openvswitch,
        _ => DeviceKind::Other,
    };
    let device = NetworkDevice {
        kind,
        mtu: link.mtu,
        bridge: link.master,
    };
    (link.ifname, device)
}

/// A route to a network; none for the default route, and for what every device has of its own.
fn route(route: Route) -> Option<(IpNet, String)> {
    let net: IpNet = match route.dst.parse() {
        Ok(net) => net,
        Err(_) => IpNet::from(route.dst.parse::<std::net::IpAddr>().ok()?),
    };
    let link_local = matches!(net, IpNet::V6(net) if net.addr().is_unicast_link_local());
    (net.prefix_len() > 0 && !link_local && !net.addr().is_multicast())
        .then(|| (net, route.dev.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_devices_and_routes_as_iproute2_prints_them() {
        let links = r#"[{"ifindex":1,"ifname":"lo","mtu":65536,"link_type":"loopback"},
{"ifindex":3,"link":"v1","ifname":"v0","mtu":1400,"master":"br0","link_type":"ether","linkinfo":{"info_kind":"veth"}},
{"ifindex":4,"ifname":"br0","mtu":1500,"link_type":"ether","linkinfo":{"info_kind":"bridge","info_data":{}}},
{"ifindex":5,"ifname":"eth0","mtu":1500,"link_type":"ether"}]"#;
        let links: Vec<Link> = serde_json::from_str(links).unwrap();
        let devices: BTreeMap<_, _> = links.into_iter().map(device).collect();
        assert_eq!(devices["lo"].kind, DeviceKind::Loopback);
        assert_eq!(devices["br0"].kind, DeviceKind::Bridge);
        assert_eq!(devices["eth0"].kind, DeviceKind::Other);
        assert_eq!(devices["v0"].bridge.as_deref(), Some("br0"));
        assert_eq!(devices["v0"].mtu, 1400);

        let routes = r#"[{"dst":"default","gateway":"10.0.0.1","dev":"eth0","flags":[]},
{"dst":"10.0.0.0/24","dev":"eth0","protocol":"kernel"},{"dst":"192.0.2.7","dev":"eth0"},
{"dst":"fe80::/64","dev":"eth0"},{"dst":"fd00:1::/64","dev":"eth0"}]"#;
        let routes: Vec<Route> = serde_json::from_str(routes).unwrap();
        let routes = routes.into_iter().filter_map(route);
        let nets: Vec<_> = routes.map(|(net, _)| net.to_string()).collect();
        assert_eq!(nets, ["10.0.0.0/24", "192.0.2.7/32", "fd00:1::/64"]);
    }
}
