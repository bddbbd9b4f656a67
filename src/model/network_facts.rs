//! What is known of the network that a lab's vswitches are made in.

use std::collections::BTreeMap;

use ipnet::IpNet;

/// The network namespace of a lab: the machine's own, or the lab's.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NetworkFacts {
    /// Whether it is the lab's own: nothing of the machine is in it.
    pub is_private: bool,
    /// Whether labrig may change queueing there.
    pub may_impair: bool,
    /// What the kernel lacks of `tbf`, `netem` and `redirect`, with what it said.
    pub lacks: BTreeMap<String, String>,
    /// Network devices by name.
    pub devices: BTreeMap<String, NetworkDevice>,
    /// Whether Open vSwitch is there: none, or what it lacks.
    pub openvswitch_lacks: Option<String>,
    /// Networks that are reached without the default route, with the device they are behind.
    pub routes: Vec<(IpNet, String)>,
}

/// A network device of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkDevice {
    /// What it is.
    pub kind: DeviceKind,
    /// Largest frame payload in bytes.
    pub mtu: u32,
    /// The bridge that it is a port of.
    pub bridge: Option<String>,
}

/// Kinds of network device, as far as vswitches need to tell them apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceKind {
    /// A bridge of the kernel's.
    Bridge,
    /// A bridge of Open vSwitch.
    Openvswitch,
    /// The loopback device.
    Loopback,
    /// Anything else, as a physical port.
    Other,
}
