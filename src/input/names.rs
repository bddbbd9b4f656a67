//! Names and ids of a lab's objects. They derive from the lab's name alone, so that every command
//! finds what an earlier one made, and labs on a shared host keep apart.

use uuid::Uuid;

use crate::model::{Digester, Name, Vnet};

/// Namespace of all ids made here; itself a random UUID, fixed for ever.
const NAMESPACE: Uuid = Uuid::from_u128(0x6d1f_9a52_73c4_4e0b_9b1e_58a0_c2d7_3f46);

/// The lab's objects by kind; the kind keeps a domain and a vswitch of one name apart.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Domain,
    Network,
}

/// Name of the libvirt object.
///
/// The dot cannot be part of a [`Name`], so no two labs can make the same name.
pub(super) fn libvirt_name(lab: &Name, object: &Name) -> String {
    format!("labrig-{lab}.{object}")
}

/// UUID of the libvirt object.
pub(super) fn uuid(lab: &Name, kind: Kind, object: &Name) -> Uuid {
    let kind = match kind {
        Kind::Domain => "domain",
        Kind::Network => "network",
    };
    Uuid::new_v5(&NAMESPACE, format!("{kind}/{lab}/{object}").as_bytes())
}

/// Name of the bridge device: at most 15 characters (IFNAMSIZ less its NUL).
pub(super) fn bridge(lab: &Name, vswitch: &Name) -> String {
    let digest = Digester::default()
        .field("bridge")
        .field(lab.as_str())
        .field(vswitch.as_str());
    format!("lr{}", digest.finish().short(10))
}

/// Name of the device of a domain's `index`-th vnet, from 0.
pub(super) fn port(lab: &Name, domain: &Name, index: usize) -> String {
    let digest = Digester::default()
        .field("port")
        .field(lab.as_str())
        .field(domain.as_str())
        .field((index as u64).to_be_bytes());
    format!("{}{}", Vnet::DEVICE_PREFIX, digest.finish().short(10))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labs_whose_names_run_into_each_other_keep_apart() {
        let name = |text: &str| text.parse::<Name>().unwrap();
        let (ab_c, a_bc) = ((name("a-b"), name("c")), (name("a"), name("b-c")));
        assert_ne!(
            libvirt_name(&ab_c.0, &ab_c.1),
            libvirt_name(&a_bc.0, &a_bc.1)
        );
        assert_ne!(bridge(&ab_c.0, &ab_c.1), bridge(&a_bc.0, &a_bc.1));
        assert!(bridge(&ab_c.0, &ab_c.1).len() <= 15);
        let a = name("a");
        assert_ne!(uuid(&a, Kind::Domain, &a), uuid(&a, Kind::Network, &a));
    }
}
