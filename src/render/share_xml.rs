//! The parts of libvirt domain XML that give a domain its share of the host: CPUs, memory, and how
//! it sees them.

use quick_xml::events::BytesText;

use super::xml::{Xml, empty, text};
use crate::model::{Acceleration, Bytes, CpuSet, GuestCpu, Split};

/// Memory and virtual CPUs, and where on the host they are.
pub(super) fn share(xml: &mut Xml, split: &Split) -> std::io::Result<()> {
    kib(xml, "memory", split.memory)?;
    memory_backing(xml, split)?;
    text(xml, "vcpu", split.vcpus.to_string())?;
    if split.io_threads > 0 {
        text(xml, "iothreads", split.io_threads.to_string())?;
    }
    tuning(xml, split)?;
    if let Some(node) = split.node {
        xml.create_element("numatune").write_inner_content(|xml| {
            let node = node.to_string();
            empty(xml, "memory", &[("mode", "strict"), ("nodeset", &node)])
        })?;
    }
    if let Some(limit) = split.memory_limit {
        xml.create_element("memtune")
            .write_inner_content(|xml| kib(xml, "hard_limit", limit))?;
    }
    Ok(())
}

fn kib(xml: &mut Xml, name: &str, size: Bytes) -> std::io::Result<()> {
    xml.create_element(name)
        .with_attribute(("unit", "KiB"))
        .write_text_content(BytesText::new(&size.kib_rounded_up().to_string()))
        .map(drop)
}

fn memory_backing(xml: &mut Xml, split: &Split) -> std::io::Result<()> {
    let Some(size) = split.hugepages else {
        return Ok(());
    };
    let size = size.kib_rounded_up().to_string();
    xml.create_element("memoryBacking")
        .write_inner_content(|xml| {
            xml.create_element("hugepages").write_inner_content(|xml| {
                empty(xml, "page", &[("size", &size), ("unit", "KiB")])
            })?;
            Ok(())
        })
        .map(drop)
}

/// `<cputune>`, where there is anything to say.
fn tuning(xml: &mut Xml, split: &Split) -> std::io::Result<()> {
    let quota = split.vcpu_quota();
    if split.pins.is_empty()
        && split.emulator.is_none()
        && split.shares.is_none()
        && quota.is_none()
    {
        return Ok(());
    }
    xml.create_element("cputune").write_inner_content(|xml| {
        let cpus = |cpus: &CpuSet| cpus.to_string();
        for (vcpu, pin) in split.pins.iter().enumerate() {
            let vcpu = vcpu.to_string();
            empty(xml, "vcpupin", &[("vcpu", &vcpu), ("cpuset", &cpus(pin))])?;
        }
        if let Some(emulator) = &split.emulator {
            empty(xml, "emulatorpin", &[("cpuset", &cpus(emulator))])?;
            for thread in 1..=split.io_threads {
                let thread = thread.to_string();
                let pin = [("iothread", thread.as_str()), ("cpuset", &cpus(emulator))];
                empty(xml, "iothreadpin", &pin)?;
            }
        }
        if let Some(shares) = split.shares {
            text(xml, "shares", shares.to_string())?;
        }
        if let Some(quota) = quota {
            text(xml, "period", quota.period.to_string())?;
            text(xml, "quota", quota.quota.to_string())?;
        }
        Ok(())
    })?;
    Ok(())
}

/// `<cpu>`: the processor that a guest sees.
pub(super) fn processor(
    xml: &mut Xml,
    cpu: &GuestCpu,
    acceleration: Acceleration,
) -> std::io::Result<()> {
    let mode = match (cpu.model.as_deref(), acceleration) {
        (None | Some("host"), Acceleration::Kvm) => "host-passthrough",
        (None | Some("host" | "max"), _) => "maximum",
        (Some(_), _) => "custom",
    };
    let mut attributes = vec![("mode", mode)];
    let model = cpu.model.as_deref().filter(|_| mode == "custom");
    if model.is_some() {
        attributes.push(("match", "exact"));
        // Emulation has not all features of every model; what it lacks is left out.
        if acceleration == Acceleration::Emulation {
            attributes.push(("check", "none"));
        }
    }
    if model.is_none() && cpu.topology.is_none() {
        return empty(xml, "cpu", &attributes);
    }
    xml.create_element("cpu")
        .with_attributes(attributes)
        .write_inner_content(|xml| {
            if let Some(model) = model {
                xml.create_element("model")
                    .with_attribute(("fallback", "forbid"))
                    .write_text_content(BytesText::new(model))?;
            }
            let Some(topology) = &cpu.topology else {
                return Ok(());
            };
            let counts = [topology.sockets, topology.cores, topology.threads];
            let [sockets, cores, threads] = counts.map(|count| count.to_string());
            let counts = [
                ("sockets", sockets.as_str()),
                ("cores", &cores),
                ("threads", &threads),
            ];
            empty(xml, "topology", &counts)
        })
        .map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::CpuTopology;
    use crate::render::xml::render;

    fn share_of(change: impl FnOnce(&mut Split)) -> String {
        let mut split = Split::new(2, Bytes::mib(64));
        change(&mut split);
        render(|xml| share(xml, &split))
    }

    fn set(text: &str) -> CpuSet {
        text.parse().unwrap()
    }

    #[test]
    fn a_share_that_may_be_anywhere() {
        assert_eq!(
            share_of(|_| {}),
            "<memory unit=\"KiB\">65536</memory>\n<vcpu>2</vcpu>"
        );
    }

    #[test]
    fn a_share_with_everything() {
        let xml = share_of(|split| {
            split.pins = vec![set("4"), set("5,7")];
            split.emulator = Some(set("0-1"));
            split.node = Some(1);
            split.hugepages = Some(Bytes::mib(2));
            split.io_threads = 2;
            split.shares = Some(512);
            split.quota = Some(150);
            split.memory_limit = Some(Bytes::mib(300));
        });
        insta::assert_snapshot!(xml);
    }

    #[test]
    fn processors() {
        use Acceleration as A;
        let topology = Some(CpuTopology {
            sockets: 1,
            cores: 2,
            threads: 4,
        });
        let grouped = "<topology sockets=\"1\" cores=\"2\" threads=\"4\"/>";
        let cases = [
            (None, None, A::Kvm, "<cpu mode=\"host-passthrough\"/>".to_owned()),
            (None, None, A::Emulation, "<cpu mode=\"maximum\"/>".to_owned()),
            (Some("host"), None, A::Kvm, "<cpu mode=\"host-passthrough\"/>".to_owned()),
            (Some("max"), None, A::Kvm, "<cpu mode=\"maximum\"/>".to_owned()),
            (
                None,
                topology,
                A::Kvm,
                format!("<cpu mode=\"host-passthrough\">\n  {grouped}\n</cpu>"),
            ),
            (
                Some("EPYC"),
                None,
                A::Kvm,
                "<cpu mode=\"custom\" match=\"exact\">\n  <model fallback=\"forbid\">EPYC</model>\n</cpu>"
                    .to_owned(),
            ),
            (
                Some("EPYC"),
                topology,
                A::Emulation,
                format!(
                    "<cpu mode=\"custom\" match=\"exact\" check=\"none\">\n  <model fallback=\"forbid\">EPYC</model>\n  {grouped}\n</cpu>"
                ),
            ),
        ];
        for (model, topology, acceleration, expected) in cases {
            let cpu = GuestCpu {
                model: model.map(str::to_owned),
                topology,
            };
            assert_eq!(render(|xml| processor(xml, &cpu, acceleration)), expected);
        }
    }
}
