//! Whole files as they are written today; a change of one shows in a review.

use std::path::Path;

use labrig::input::{self, Options};
use labrig::model::{Domain, DomainKind, Firmware, Machine, Observed};
use labrig::plan::{Desired, GuestFiles, plan};
use labrig::render::{Scope, TemplateError};

use crate::host::{LAB, desired, desired_of, paths, platform, topology};
use labrig::model::{Acceleration, LabSecret};

fn xml_of(desired: &Desired, domain: &str) -> String {
    let mut domains = desired.domains.iter();
    domains
        .find(|d| d.name.as_str() == domain)
        .unwrap()
        .xml
        .clone()
}

#[test]
fn domain_of_a_micro_image() {
    insta::assert_snapshot!(xml_of(&desired(LAB), "web1"));
}

#[test]
fn domain_of_a_debian_image() {
    insta::assert_snapshot!(xml_of(&desired(LAB), "db"));
}

#[test]
fn domain_with_kvm_differs_in_type_clock_and_processor() {
    let secret = LabSecret::new([7; 32]);
    let none = |_: &Domain| -> Result<GuestFiles, std::convert::Infallible> { Ok(Vec::new()) };
    let topology = topology(LAB);
    let of = |acceleration| {
        let Ok(desired) = Desired::of(&topology, &paths(), &platform(acceleration), &secret, none);
        xml_of(&desired, "web1")
    };
    let (kvm, emulated) = (of(Acceleration::Kvm), of(Acceleration::Emulation));
    let differing: Vec<_> = kvm
        .lines()
        .zip(emulated.lines())
        .filter(|(kvm, emulated)| kvm != emulated)
        .filter(|(kvm, _)| !kvm.contains("definition="))
        .map(|(kvm, _)| kvm.trim())
        .collect();
    assert_eq!(
        differing,
        [
            "<domain type=\"kvm\">",
            "<cmdline>console=ttyS0 quiet net.ifnames=0</cmdline>",
            "<cpu mode=\"host-passthrough\"/>"
        ]
    );
}

#[test]
fn domain_with_a_share_and_a_machine_of_its_own() {
    let mut topology = topology(LAB);
    let db = &mut topology.domains[0];
    let split = db.split.as_mut().unwrap();
    split.pins = vec!["2".parse().unwrap(), "3".parse().unwrap()];
    split.emulator = Some("0".parse().unwrap());
    split.io_threads = 1;
    split.node = Some(0);
    let DomainKind::Vm(guest) = &mut db.kind else {
        panic!("db is a virtual machine");
    };
    guest.machine = Machine {
        firmware: Firmware::Uefi,
        tpm: true,
        xml: Some("<domain><devices><sound model='ac97'/></devices></domain>".to_owned()),
        ..Machine::default()
    };
    insta::assert_snapshot!(xml_of(&desired_of(&topology), "db"));
}

#[test]
fn isolated_network() {
    insta::assert_snapshot!(desired(LAB).networks[0].xml);
}

#[test]
fn nat_network() {
    insta::assert_snapshot!(desired(LAB).networks[1].xml);
}

/// What a guest finds on its seed disk, with the keys blotted out.
#[test]
fn seed() {
    let desired = desired_of(&topology(LAB));
    let seed = &desired
        .domains
        .iter()
        .find(|d| d.name.as_str() == "web1")
        .unwrap()
        .seed
        .1;
    let packed = seed.pack();
    let mut text = format!("{} bytes\n", packed.len());
    let mut archive = tar::Archive::new(packed.as_slice());
    for entry in archive.entries().unwrap() {
        let mut entry = entry.unwrap();
        let mut content = String::new();
        std::io::Read::read_to_string(&mut entry, &mut content).unwrap();
        let (header, path) = (entry.header(), entry.path().unwrap().into_owned());
        text += &format!(
            "\n== {} {:04o} {}:{} {}\n",
            path.display(),
            header.mode().unwrap(),
            header.uid().unwrap(),
            header.gid().unwrap(),
            header.mtime().unwrap()
        );
        text += &content;
    }
    insta::with_settings!({filters => vec![
        (r"(?s)(-----BEGIN OPENSSH PRIVATE KEY-----\n).*(-----END)", "${1}[key]\n${2}"),
        (r"AAAA[A-Za-z0-9+/=]+", "[key]"),
        (r"\b[0-9a-f]{64}\b", "[digest]"),
    ]}, { insta::assert_snapshot!(text) });
}

#[test]
fn plan_of_the_quickstart() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("topologies/quickstart.yaml");
    let Ok(loaded) = input::load_topology(&file, &Options::default()) else {
        panic!("the quickstart has errors")
    };
    let scope = Scope::new(&loaded.value);
    let files = |domain: &Domain| -> Result<GuestFiles, TemplateError> {
        let context = scope.context(Some(domain), &[]);
        let render = |file: &labrig::model::GuestFile| {
            let templates = &loaded.templates;
            let text = templates.render_with(&file.template, &file.vars, &context)?;
            Ok((file.to.clone(), file.mode, text.into_bytes()))
        };
        domain.files.iter().map(render).collect()
    };
    let secret = LabSecret::new([7; 32]);
    let desired = Desired::of(
        &loaded.value,
        &paths(),
        &platform(Acceleration::Emulation),
        &secret,
        files,
    );
    let plan = plan(&desired.unwrap(), &Observed::default());
    insta::assert_snapshot!(serde_json::to_string_pretty(&plan).unwrap());
}
