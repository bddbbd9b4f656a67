//! What templates see.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};

use serde::Serialize;
use tera::Context;

use super::instance::InstanceView;
use crate::model::{Domain, Level, Name, Secrets, Topology};

/// Names at the top of every context; a factor cannot take one of them.
pub const RESERVED: [&str; 5] = ["lab", "domains", "domain", "instance", "vars"];

/// What a template sees of a domain.
#[derive(Serialize)]
struct DomainView<'a> {
    name: &'a str,
    /// Position in its group, from 1.
    index: u32,
    /// IPv4 address of the first vnet that has one, at which labrig reaches it too.
    ip: Option<Ipv4Addr>,
    /// IPv6 address of the first vnet that has one.
    ip6: Option<Ipv6Addr>,
    /// IPv4 address by vswitch.
    ips: BTreeMap<&'a str, Ipv4Addr>,
    /// IPv6 address by vswitch.
    ips6: BTreeMap<&'a str, Ipv6Addr>,
    /// None for an external machine.
    vcpus: Option<u32>,
    memory_mib: Option<u64>,
    /// Database servers by name.
    instances: BTreeMap<&'a str, InstanceView<'a>>,
}

/// What all templates of a lab see. Made once: contexts made from it share its values.
pub struct Scope {
    lab: tera::Value,
    domains: tera::Value,
    vars: serde_json::Map<String, serde_json::Value>,
}

impl Scope {
    /// The scope of a lab, without secrets: what is made of it may be shown and archived.
    pub fn new(topology: &Topology) -> Self {
        Self::with_secrets(topology, &Secrets::default())
    }

    /// The scope of a lab's own files, which go into its guests and nowhere else.
    pub fn with_secrets(topology: &Topology, secrets: &Secrets) -> Self {
        let domains: BTreeMap<&str, DomainView<'_>> = topology
            .domains
            .iter()
            .map(|d| (d.name.as_str(), DomainView::of(d)))
            .collect();
        Self {
            lab: tera::Value::from_serializable(&topology.lab),
            domains: tera::Value::from_serializable(&domains),
            vars: topology
                .vars
                .clone()
                .into_iter()
                .chain(
                    secrets
                        .reveal()
                        .iter()
                        .map(|(k, v)| (k.clone(), v.as_str().into())),
                )
                .collect(),
        }
    }

    /// The context of one rendering: for `domain`, with the trial's factor `levels`.
    pub fn context(&self, domain: Option<&Domain>, levels: &[(Name, Level)]) -> Context {
        let mut context = Context::new();
        context.insert_value("lab", self.lab.clone());
        context.insert_value("domains", self.domains.clone());
        context.insert("vars", &self.vars);
        if let Some(domain) = domain {
            context.insert("domain", &DomainView::of(domain));
        }
        for (name, level) in levels {
            context.insert(name.to_string(), level);
        }
        context
    }
}

impl<'a> DomainView<'a> {
    fn of(domain: &'a Domain) -> Self {
        let vnets = domain.vnets.iter();
        let by_vswitch = vnets.clone().map(|vnet| (vnet.vswitch.as_str(), vnet));
        Self {
            name: &domain.name,
            index: domain.index,
            ip: domain.address(),
            ip6: vnets.clone().find_map(|vnet| vnet.ip6),
            ips: by_vswitch
                .clone()
                .filter_map(|(vswitch, vnet)| Some((vswitch, vnet.ip?)))
                .collect(),
            ips6: by_vswitch
                .filter_map(|(vswitch, vnet)| Some((vswitch, vnet.ip6?)))
                .collect(),
            vcpus: domain.split.as_ref().map(|split| split.vcpus),
            memory_mib: domain.split.as_ref().map(|split| split.memory.0 >> 20),
            instances: domain
                .instances
                .iter()
                .map(|instance| (instance.name.as_str(), InstanceView::of(instance)))
                .collect(),
        }
    }
}
