//! Reading libvirt's definitions back.

use std::collections::BTreeSet;

use super::LibvirtError;
use crate::model::Reservation;
use crate::render::Tag;

/// What a definition tells of itself.
pub(super) struct Definition {
    /// labrig's tag, if it has one.
    pub tag: Option<Tag>,
    /// Reservations of a network.
    pub reservations: BTreeSet<Reservation>,
}

impl Definition {
    pub(super) fn read(name: &str, xml: &str) -> Result<Self, LibvirtError> {
        let document = roxmltree::Document::parse(xml).map_err(|source| LibvirtError::Xml {
            name: name.to_owned(),
            source,
        })?;
        let reservations = document
            .descendants()
            .filter(|n| {
                n.has_tag_name("host") && n.parent().is_some_and(|p| p.has_tag_name("dhcp"))
            })
            .filter_map(|n| {
                Some(Reservation {
                    mac: n.attribute("mac")?.parse().ok()?,
                    domain: n.attribute("name")?.parse().ok()?,
                    ip: n.attribute("ip")?.parse().ok()?,
                })
            })
            .collect();
        Ok(Self {
            tag: Tag::read(&document),
            reservations,
        })
    }

    /// Whose it is, for people.
    pub(super) fn owner(&self) -> String {
        self.tag.as_ref().map_or_else(
            || "something else than labrig".to_owned(),
            |tag| format!("lab {}", tag.lab),
        )
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
    fn a_stranger_has_no_tag() {
        let definition = Definition::read("n", "<domain><name>n</name></domain>").unwrap();
        assert_eq!(definition.owner(), "something else than labrig");
    }
}
