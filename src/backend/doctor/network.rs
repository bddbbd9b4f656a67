//! What the kernel has for vswitches.

use super::Finding;
use super::isolation::said;
use crate::backend::namespaces;

/// One feature: its name in the script, what it is for, and whether labs work without.
struct Feature {
    name: &'static str,
    purpose: &'static str,
    needed: bool,
}

const FEATURES: [Feature; 9] = [
    Feature {
        name: "bridge",
        purpose: "vswitches",
        needed: true,
    },
    Feature {
        name: "tap",
        purpose: "vnets of virtual machines",
        needed: true,
    },
    Feature {
        name: "veth",
        purpose: "vnets of containers",
        needed: false,
    },
    Feature {
        name: "nat",
        purpose: "vswitches of mode nat",
        needed: false,
    },
    Feature {
        name: "tbf",
        purpose: "bandwidths of vswitches and vnets",
        needed: false,
    },
    Feature {
        name: "netem",
        purpose: "delay, jitter and loss on vswitches and vnets",
        needed: false,
    },
    Feature {
        name: "ifb",
        purpose: "impairments of what domains send",
        needed: false,
    },
    Feature {
        name: "vxlan",
        purpose: "vswitches over several hosts",
        needed: false,
    },
    Feature {
        name: "802.1q",
        purpose: "VLANs",
        needed: false,
    },
];

/// Examines them in a throw-away network namespace.
pub fn examine() -> Vec<Finding> {
    let script = concat!(include_str!("network.sh"), "\nexit 0\n");
    let mut findings = match namespaces::of_lab("sh").args(["-c", script]).run() {
        Ok(printed) => findings_in(&String::from_utf8_lossy(&printed)),
        Err(error) => vec![Finding::missing(
            "network",
            format!("nothing could be tried: {}", said(&error)),
            "namespaces and iproute2 are needed first",
        )],
    };
    findings.push(vhost());
    findings
}

/// Reads what the script prints.
fn findings_in(printed: &str) -> Vec<Finding> {
    FEATURES
        .iter()
        .map(|feature| {
            let result = printed
                .lines()
                .find_map(|line| line.strip_prefix(feature.name)?.strip_prefix(' '));
            match result {
                Some("good") => Finding::good(feature.name, format!("for {}", feature.purpose)),
                other => {
                    let said = other
                        .and_then(|o| o.strip_prefix("missing "))
                        .map(str::trim)
                        .filter(|s| !s.is_empty());
                    lacking(feature, said.unwrap_or("it was not tried"))
                }
            }
        })
        .collect()
}

fn lacking(feature: &Feature, said: &str) -> Finding {
    let detail = format!("for {}: {said}", feature.purpose);
    let advice = match feature.name {
        "tap" => "load the module tun; /dev/net/tun is open to all where udev runs, else scripts/install-packages opens it".to_owned(),
        "nat" => "install iptables, and load the modules nf_nat and xt_MASQUERADE".to_owned(),
        "tbf" | "netem" => format!("load the module sch_{}, or use a kernel that has it", feature.name),
        "ifb" => "load the modules ifb, cls_u32 and act_mirred, or use a kernel that has them".to_owned(),
        "802.1q" => "load the module 8021q, or use a kernel that has it".to_owned(),
        name => format!("load the module {name}, or use a kernel that has it"),
    };
    if feature.needed {
        Finding::missing(feature.name, detail, advice)
    } else {
        Finding::poor(feature.name, detail, advice)
    }
}

fn vhost() -> Finding {
    const NAME: &str = "vhost-net";
    match std::fs::File::options()
        .read(true)
        .write(true)
        .open("/dev/vhost-net")
    {
        Ok(_) => Finding::good(NAME, "for faster networks of KVM guests"),
        Err(error) => Finding::poor(
            NAME,
            format!("for faster networks of KVM guests: /dev/vhost-net does not open: {error}"),
            "load the module vhost_net, and join the group kvm",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::State;
    use super::*;

    #[test]
    fn reads_what_the_script_prints() {
        let printed = "bridge good\ntap missing open: No such file or directory \ntbf good\nnetem missing Error: Specified qdisc kind is unknown. \n";
        let findings = findings_in(printed);
        let of = |name: &str| findings.iter().find(|f| f.name == name).unwrap();
        assert_eq!(of("bridge").state, State::Good);
        assert_eq!(of("tap").state, State::Missing);
        assert!(of("tap").detail.contains("No such file"));
        assert_eq!(of("netem").state, State::Poor);
        assert!(of("netem").advice.as_ref().unwrap().contains("sch_netem"));
        // A line that did not come is never taken for good.
        assert_eq!(of("veth").state, State::Poor);
    }

    #[test]
    fn the_script_tries_every_feature() {
        for feature in FEATURES {
            assert!(
                include_str!("network.sh").contains(&format!("\ntry {} ", feature.name)),
                "{}",
                feature.name
            );
        }
    }
}
