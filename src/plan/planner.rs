//! Observed and desired to actions.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use super::{ActionKind, Desired, DesiredDomain, DesiredNetwork, Plan};
use crate::model::{Name, Observed, ObservedDomain};

/// What has to be done so that a host shows what is desired. Empty when it does already.
pub fn plan(desired: &Desired, observed: &Observed) -> Plan {
    let mut plan = Plan::default();
    let images = plan_images(&mut plan, desired, observed);
    let domains: BTreeSet<_> = desired
        .domains
        .iter()
        .map(|domain| domain.libvirt_name.as_str())
        .collect();
    let gone = remove_domains(&mut plan, observed, |name| !domains.contains(name));
    let wanted: BTreeSet<_> = desired
        .networks
        .iter()
        .map(|network| &network.name)
        .collect();
    for name in observed
        .networks
        .keys()
        .filter(|name| !wanted.contains(name))
    {
        plan.push(
            ActionKind::RemoveNetwork { name: name.clone() },
            "it is not in the topology",
            &gone,
            None,
        );
    }
    let mut networks = BTreeMap::new();
    let mut remade = BTreeSet::new();
    for network in &desired.networks {
        let (ready, is_remade) = plan_network(&mut plan, network, observed);
        networks.extend(ready.map(|action| (network.name.as_str(), action)));
        if is_remade {
            remade.insert(network.name.as_str());
        }
    }
    for domain in &desired.domains {
        plan_domain(&mut plan, domain, observed, &images, &networks, &remade);
    }
    let files: BTreeSet<&PathBuf> = desired
        .domains
        .iter()
        .flat_map(|d| d.disks.iter().map(|disk| &disk.path).chain([&d.seed.0]))
        .collect();
    // Only when nothing runs on them any more.
    let all: Vec<_> = (0..plan.actions.len())
        .filter(|&i| {
            matches!(
                plan.actions[i].kind,
                ActionKind::StopDomain { .. } | ActionKind::RemoveDomain { .. }
            )
        })
        .collect();
    for path in observed.files.iter().filter(|path| !files.contains(path)) {
        plan.push(
            ActionKind::RemoveFile { path: path.clone() },
            "nothing uses it any more",
            &all,
            None,
        );
    }
    plan
}

/// What has to be done so that nothing observed is left.
pub fn removal(observed: &Observed) -> Plan {
    let mut plan = Plan::default();
    let gone = remove_domains(&mut plan, observed, |_| true);
    for name in observed.networks.keys() {
        plan.push(
            ActionKind::RemoveNetwork { name: name.clone() },
            "the lab goes down",
            &gone,
            None,
        );
    }
    for path in &observed.files {
        plan.push(
            ActionKind::RemoveFile { path: path.clone() },
            "the lab goes down",
            &gone,
            None,
        );
    }
    plan
}

fn plan_images<'a>(
    plan: &mut Plan,
    desired: &'a Desired,
    observed: &Observed,
) -> BTreeMap<&'a Name, usize> {
    let mut actions = BTreeMap::new();
    for image in desired
        .images
        .iter()
        .filter(|image| !observed.images.contains(&image.image.key))
    {
        let kind = ActionKind::EnsureImage {
            name: image.name.clone(),
            image: image.image.clone(),
            link: image.link.clone(),
        };
        actions.insert(
            &image.name,
            plan.push(kind, "the lab has no such image yet", &[], None),
        );
    }
    actions
}

fn remove_domains(
    plan: &mut Plan,
    observed: &Observed,
    unwanted: impl Fn(&str) -> bool,
) -> Vec<usize> {
    let mut gone = Vec::new();
    for (name, domain) in observed.domains.iter().filter(|(name, _)| unwanted(name)) {
        let reason = "it is not wanted any more";
        let stop = domain.active.then(|| {
            plan.push(
                ActionKind::StopDomain { name: name.clone() },
                reason,
                &[],
                None,
            )
        });
        let after: Vec<_> = stop.into_iter().collect();
        gone.push(plan.push(
            ActionKind::RemoveDomain { name: name.clone() },
            reason,
            &after,
            None,
        ));
    }
    gone
}

/// Gives the action after which the network is up, if there is one to wait for, and whether running
/// domains lose their connection to it.
fn plan_network(
    plan: &mut Plan,
    network: &DesiredNetwork,
    observed: &Observed,
) -> (Option<usize>, bool) {
    let name = || network.name.clone();
    let seen = observed.networks.get(&network.name);
    match seen {
        Some(seen) if seen.definition == Some(network.definition) => {
            for (set, other, wanted) in [
                (&seen.reservations, &network.reservations, false),
                (&network.reservations, &seen.reservations, true),
            ] {
                for reservation in set.difference(other) {
                    let kind = ActionKind::Reserve {
                        network: name(),
                        reservation: reservation.clone(),
                        wanted,
                    };
                    let reason = if wanted {
                        "the vnet is new"
                    } else {
                        "the vnet is gone"
                    };
                    plan.push(kind, reason, &[], None);
                }
            }
            let start = (!seen.active).then(|| {
                plan.push(
                    ActionKind::StartNetwork { name: name() },
                    "it is not active",
                    &[],
                    None,
                )
            });
            (start, start.is_some())
        }
        _ => {
            let (reason, after) = match seen {
                Some(_) => {
                    let reason = format!("vswitch {} changed", network.vswitch);
                    (
                        reason.clone(),
                        vec![plan.push(
                            ActionKind::RemoveNetwork { name: name() },
                            reason,
                            &[],
                            None,
                        )],
                    )
                }
                None => (
                    format!("vswitch {} has no network yet", network.vswitch),
                    Vec::new(),
                ),
            };
            let define = ActionKind::DefineNetwork {
                name: name(),
                xml: network.xml.clone(),
            };
            let define = plan.push(define, &reason, &after, None);
            (
                Some(plan.push(
                    ActionKind::StartNetwork { name: name() },
                    reason,
                    &[define],
                    None,
                )),
                true,
            )
        }
    }
}

fn plan_domain(
    plan: &mut Plan,
    domain: &DesiredDomain,
    observed: &Observed,
    images: &BTreeMap<&Name, usize>,
    networks: &BTreeMap<&str, usize>,
    remade: &BTreeSet<&str>,
) {
    let me = Some(&domain.name);
    let libvirt_name = || domain.libvirt_name.clone();
    let seen = observed.domains.get(&domain.libvirt_name);
    let image: Vec<_> = images.get(&domain.image).copied().into_iter().collect();
    let mut before_start: Vec<_> = domain
        .networks
        .iter()
        .filter_map(|n| networks.get(n.as_str()).copied())
        .collect();
    before_start.extend(&image);

    let mut lost_file = false;
    for disk in domain
        .disks
        .iter()
        .filter(|disk| !observed.files.contains(&disk.path))
    {
        lost_file = true;
        let kind = ActionKind::CreateDisk {
            path: disk.path.clone(),
            backing: disk.backing.clone(),
            size: disk.size,
        };
        before_start.push(plan.push(kind, "the disk is not there", &image, me));
    }
    if !observed.files.contains(&domain.seed.0) {
        lost_file = true;
        let kind = ActionKind::WriteSeed {
            path: domain.seed.0.clone(),
            seed: domain.seed.1.clone(),
        };
        before_start.push(plan.push(kind, "the guest's settings are new", &[], me));
    }

    let is_redefined = seen.is_none_or(|seen| seen.definition != Some(domain.definition));
    let cut_off = domain
        .networks
        .iter()
        .find(|network| remade.contains(network.as_str()));
    let runs = seen.is_some_and(|seen| seen.active);
    let restart_reason = match (seen, cut_off) {
        (None, _) => Some("the domain is new".to_owned()),
        (Some(_), _) if is_redefined => Some("its definition changed".to_owned()),
        (Some(_), _) if lost_file => Some("one of its disks was lost".to_owned()),
        (Some(_), Some(network)) => Some(format!("network {network} is started anew")),
        (Some(ObservedDomain { active: false, .. }), None) => Some("it does not run".to_owned()),
        (Some(_), None) => None,
    };
    let await_ready = ActionKind::AwaitReady {
        name: libvirt_name(),
        address: domain.address,
        timeout: domain.boot_timeout,
    };
    let Some(reason) = restart_reason else {
        if seen.is_some_and(|seen| !seen.ready) {
            plan.push(
                await_ready,
                "it was not seen ready since its start",
                &[],
                me,
            );
        }
        return;
    };
    if runs {
        before_start.push(plan.push(
            ActionKind::StopDomain {
                name: libvirt_name(),
            },
            &reason,
            &[],
            me,
        ));
    }
    if is_redefined {
        let define = ActionKind::DefineDomain {
            name: libvirt_name(),
            xml: domain.xml.clone(),
        };
        // Redefining while it runs would only change its next life; stopping comes first either way.
        let after = before_start.clone();
        before_start.push(plan.push(define, &reason, &after, me));
    }
    let start = plan.push(
        ActionKind::StartDomain {
            name: libvirt_name(),
        },
        &reason,
        &before_start,
        me,
    );
    plan.push(await_ready, reason, &[start], me);
}
