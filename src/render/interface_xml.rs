//! libvirt XML of a vnet.

use super::xml::{Xml, empty};
use crate::model::{Vnet, Vswitch};

/// Writes a domain's `<interface/>`.
pub(super) fn interface_xml(xml: &mut Xml, vnet: &Vnet, vswitch: &Vswitch) -> std::io::Result<()> {
    xml.create_element("interface")
        .with_attribute(("type", "network"))
        .write_inner_content(|xml| {
            empty(xml, "mac", &[("address", &vnet.mac.to_string())])?;
            empty(xml, "source", &[("network", &vswitch.network)])?;
            // A name of ours: what is done to the device is found again by it.
            empty(xml, "target", &[("dev", &vnet.device)])?;
            empty(xml, "model", &[("type", vnet.model.word())])?;
            if vnet.queues > 1 {
                empty(xml, "driver", &[("queues", &vnet.queues.to_string())])?;
            }
            Ok(())
        })
        .map(drop)
}
