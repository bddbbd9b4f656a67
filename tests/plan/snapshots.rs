//! Whole files as they are written today; a change of one shows in a review.

use std::path::Path;

use base64ct::{Base64, Encoding};
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

/// Disks of every kind, on a cloud image.
const DISKS: &str = "\
version: 1
name: lab
images:
  cloud: {url: https://a.example/debian.qcow2, sha256: \"ad7facb2586fc6e966c004d7d1d16b024f5805ff7cb47c7a85dabd8b48892ca7\", cloud_init: true}
vswitches:
  data: {subnet: 10.0.0.0/24}
  front: {mode: nat, subnet: 10.0.1.0/24, mtu: 1400}
domains:
  db:
    image: cloud
    split: {cpus: 1, memory: 512MiB}
    vnets: [{vswitch: data, ip: 10.0.0.10, mac: \"52:54:00:00:00:01\"}, {vswitch: front, ip: 10.0.1.10}]
    disks:
      - {name: root, size: 4GiB, on: ram, cache: unsafe}
      - {name: log, size: 1GiB, format: raw, cache: none, filesystem: xfs, mount: /data/log, mount_options: [noatime, nodiratime]}
      - {name: data, on: lvm, path: /dev/vg0/db, filesystem: ext4, mount: /data, io: {read_iops: 500, write_iops: 400, read_bandwidth: 100MiB/s, write_bandwidth: 1MB/s}}
      - {name: old, on: file, path: /srv/old.qcow2, format: qcow2, cache: directsync}
";

#[test]
fn domain_of_a_cloud_image_with_disks_of_every_kind() {
    insta::assert_snapshot!(xml_of(&desired(DISKS), "db"));
}

/// What cloud-init finds, with the keys blotted out.
#[test]
fn seed_for_cloud_init() {
    let desired = desired(DISKS);
    let seed = &desired.domains[0].seed.1;
    let packed = seed.pack();
    assert_eq!(packed, seed.pack());
    let volume = std::io::Cursor::new(packed);
    let volume = fatfs::FileSystem::new(volume, fatfs::FsOptions::new()).unwrap();
    let mut text = format!("label {}\n", volume.volume_label());
    for name in ["meta-data", "network-config", "user-data"] {
        let mut content = String::new();
        let mut file = volume.root_dir().open_file(name).unwrap();
        std::io::Read::read_to_string(&mut file, &mut content).unwrap();
        let json = content.trim_start_matches("#cloud-config\n");
        let head = &content[..content.len() - json.len()];
        let mut value: serde_json::Value = serde_json::from_str(json).unwrap();
        let files = value.get_mut("write_files").and_then(|v| v.as_array_mut());
        for file in files.into_iter().flatten() {
            let decoded = Base64::decode_vec(file["content"].as_str().unwrap()).unwrap();
            file["content"] = String::from_utf8(decoded).unwrap().into();
        }
        let value = serde_json::to_string_pretty(&value).unwrap();
        text += &format!("\n== {name}\n{head}{value}\n");
    }
    insta::with_settings!({filters => vec![
        (r"-----BEGIN OPENSSH PRIVATE KEY-----\\n.*-----END", "-----BEGIN OPENSSH PRIVATE KEY-----\\n[key]-----END"),
        (r"AAAA[A-Za-z0-9+/=]+", "[key]"),
        (r"\b[0-9a-f]{32}\b", "[digest]"),
    ]}, { insta::assert_snapshot!(text) });
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

/// Vswitches of every other kind.
const KINDS: &str = "\
version: 1
name: lab
images: {deb: {build: {suite: bookworm}}}
vswitches:
  a-both: {mode: nat, subnet: 10.0.0.0/24, subnet6: \"fd00:1::/64\", addressing: dhcp}
  b-routed: {mode: routed, subnet6: \"fd00:2::/64\"}
  c-bridge: {mode: bridge, bridge: br0, subnet: 10.0.3.0/24, gateway: 10.0.3.1}
  d-macvtap: {mode: macvtap, port: eth1}
  e-ovs: {mode: openvswitch, bridge: ovs0, vlan: 42, subnet6: \"fd00:5::/64\"}
domains:
  web:
    image: deb
    split: {cpus: 2, memory: 160MiB}
    vnets:
      - {vswitch: a-both, queues: 2}
      - {vswitch: b-routed, ip6: \"fd00:2::9\", model: vmxnet3}
      - {vswitch: c-bridge, ip: 10.0.3.9}
      - {vswitch: d-macvtap}
      - {vswitch: e-ovs, inbound: {bandwidth: 1Mbit/s}}
";

#[test]
fn networks_of_every_kind() {
    let networks = desired(KINDS).networks;
    let all: Vec<_> = networks
        .iter()
        .map(|network| network.xml.as_str())
        .collect();
    insta::assert_snapshot!(all.join("\n"));
}

#[test]
fn vnets_of_every_kind() {
    let xml = xml_of(&desired(KINDS), "web");
    let (begin, end) = ("<interface", "</interface>");
    let from = xml.find(begin).unwrap();
    let to = xml.rfind(end).unwrap() + end.len();
    insta::assert_snapshot!(&xml[from..to]);
}

#[test]
fn a_guest_s_network_of_every_kind() {
    let packed = seed_text(&desired(KINDS), "web");
    let from = packed.find("== etc/labrig/vnets").unwrap();
    let to = packed.find("== etc/made.conf").unwrap();
    insta::assert_snapshot!(&packed[from..to]);
}

/// What a guest finds on its seed disk, with the keys blotted out.
#[test]
fn seed() {
    let text = seed_text(&desired(LAB), "web1");
    insta::with_settings!({filters => vec![
        (r"(?s)(-----BEGIN OPENSSH PRIVATE KEY-----\n).*(-----END)", "${1}[key]\n${2}"),
        (r"AAAA[A-Za-z0-9+/=]+", "[key]"),
        (r"\b[0-9a-f]{64}\b", "[digest]"),
    ]}, { insta::assert_snapshot!(text) });
}

/// All files of a domain's seed disk.
fn seed_text(desired: &Desired, domain: &str) -> String {
    let mut domains = desired.domains.iter();
    let seed = &domains.find(|d| d.name.as_str() == domain).unwrap().seed.1;
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
    text
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
