//! Reading libvirt's definitions back.

use std::collections::BTreeSet;

use super::LibvirtError;
use crate::model::{Bytes, DomainUses, Reservation};
use crate::render::Tag;

/// What a definition tells of itself.
pub(in crate::backend) struct Definition {
    /// labrig's tag, if it has one.
    pub tag: Option<Tag>,
    /// Reservations of a network.
    pub reservations: BTreeSet<Reservation>,
    /// The bridge that libvirt makes for a network.
    pub bridge: Option<String>,
    /// What a domain takes.
    pub uses: DomainUses,
}

impl Definition {
    pub(in crate::backend) fn read(name: &str, xml: &str) -> Result<Self, LibvirtError> {
        let document = roxmltree::Document::parse(xml).map_err(|source| LibvirtError::Xml {
            name: name.to_owned(),
            source,
        })?;
        let reservations = inside(&document, "dhcp", "host")
            .filter_map(|n| {
                Some(Reservation {
                    mac: n.attribute("mac")?.parse().ok()?,
                    domain: n.attribute("name")?.parse().ok()?,
                    ip: n.attribute("ip")?.parse().ok()?,
                })
            })
            .collect();
        let uses_existing =
            inside(&document, "network", "forward").any(|n| n.attribute("mode") == Some("bridge"));
        Ok(Self {
            tag: Tag::read(&document),
            bridge: inside(&document, "network", "bridge")
                .find_map(|n| n.attribute("name").map(str::to_owned))
                .filter(|_| !uses_existing),
            reservations,
            uses: uses(&document),
        })
    }

    /// Whose it is, for people.
    pub(in crate::backend) fn owner(&self) -> String {
        self.tag.as_ref().map_or_else(
            || "something else than labrig".to_owned(),
            |tag| format!("lab {}", tag.lab),
        )
    }
}

/// Elements `name` right below an element `parent`.
fn inside<'a>(
    document: &'a roxmltree::Document<'_>,
    parent: &'a str,
    name: &'a str,
) -> impl Iterator<Item = roxmltree::Node<'a, 'a>> {
    document.descendants().filter(move |n| {
        n.has_tag_name(name) && n.parent().is_some_and(|above| above.has_tag_name(parent))
    })
}

fn uses(document: &roxmltree::Document<'_>) -> DomainUses {
    let attributes = |parent, name, attribute| {
        inside(document, parent, name).filter_map(move |n| n.attribute(attribute))
    };
    // libvirt writes KiB, whatever unit it was given.
    let memory = inside(document, "domain", "memory")
        .find_map(|n| n.text()?.trim().parse::<u64>().ok())
        .unwrap_or_default();
    DomainUses {
        memory: Bytes(memory << 10),
        // In KiB as well.
        hugepages: attributes("hugepages", "page", "size")
            .find_map(|size| Some(Bytes(size.parse::<u64>().ok()? << 10))),
        files: attributes("disk", "source", "file")
            .map(Into::into)
            .collect(),
        networks: attributes("interface", "source", "network")
            .map(str::to_owned)
            .collect(),
        macs: attributes("interface", "mac", "address")
            .filter_map(|mac| mac.parse().ok())
            .collect(),
        devices: attributes("interface", "target", "dev")
            .map(str::to_owned)
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_tag_and_reservations_of_a_network() {
        let digest = "0".repeat(64);
        let xml = format!(
            "<network><name>n</name><metadata><x:lab xmlns:x='urn:labrig:1' name='q' definition='{digest}'/></metadata>\
             <ip><dhcp><host mac='52:54:00:00:00:01' name='db' ip='10.0.0.2'/><host ip='10.0.0.3'/></dhcp></ip></network>"
        );
        let definition = Definition::read("n", &xml).unwrap();
        assert_eq!(definition.owner(), "lab q");
        assert_eq!(definition.reservations.len(), 1);
    }

    #[test]
    fn reads_what_a_domain_takes() {
        let xml = "<domain><name>n</name><memory unit='KiB'>2048</memory><devices>\
             <disk><source file='/a'/></disk><disk><source file='/b'/></disk>\
             <interface type='network'><mac address='52:54:00:00:00:01'/><source network='n'/><target dev='lp0'/></interface>\
             <serial type='file'><source path='/c'/></serial></devices>\
             <memoryBacking><hugepages><page size='2048' unit='KiB'/></hugepages></memoryBacking></domain>";
        let uses = Definition::read("n", xml).unwrap().uses;
        assert_eq!(uses.memory, Bytes::mib(2));
        assert_eq!(uses.hugepages, Some(Bytes::mib(2)));
        assert_eq!(uses.files, ["/a".into(), "/b".into()].into());
        assert_eq!(uses.networks, ["n".to_owned()].into());
        assert_eq!(uses.macs, ["52:54:00:00:00:01".parse().unwrap()].into());
        assert_eq!(uses.devices, ["lp0".to_owned()].into());
    }

    #[test]
    fn a_stranger_has_no_tag() {
        let definition = Definition::read("n", "<domain><name>n</name></domain>").unwrap();
        assert_eq!(definition.owner(), "something else than labrig");
    }
}
