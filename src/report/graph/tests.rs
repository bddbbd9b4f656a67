//! Pictures of whole labs.

use std::fmt::Write as _;
use std::path::Path;

use super::layout::{Layout, Rect};
use super::picture::Picture;
use super::text::Style;
use super::{GraphFormat, dot, graph, mermaid};
use crate::input::{self, Options};
use crate::model::Topology;

fn topology(text: &str) -> Topology {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("topology.yaml");
    std::fs::write(&file, text).unwrap();
    load(&file)
}

fn load(file: &Path) -> Topology {
    input::load_topology(file, &Options::default())
        .unwrap_or_else(|notes| panic!("{notes}"))
        .value
}

/// A database server, web servers that each have a vswitch of their own to their clients, and many
/// loads of all kinds of names.
fn large() -> Topology {
    let mut text =
        "version: 1\nname: large\nimages:\n  micro: {build: {micro: {}}}\nvswitches:\n  \
                    vswitch0: {subnet: 10.0.0.0/24, mtu: 9000}\n"
            .to_owned();
    for i in 1..6 {
        writeln!(
            text,
            "  vswitch{i}: {{mode: nat, subnet: 192.168.{}.0/24}}",
            100 + i
        )
        .unwrap();
    }
    text += "domains:\n";
    let mut domain = |name: &str, count: u32, vnets: &str| {
        writeln!(
            text,
            "  {name}: {{count: {count}, image: micro, split: {{cpus: 2, memory: 64MiB}}, vnets: [{vnets}]}}"
        )
        .unwrap();
    };
    let all: Vec<_> = (0..6)
        .map(|i| {
            format!("{{vswitch: vswitch{i}, ip: 10.0.0.9}}").replace(
                "10.0.0.9",
                &format!(
                    "{}.9",
                    [
                        "10.0.0",
                        "192.168.101",
                        "192.168.102",
                        "192.168.103",
                        "192.168.104",
                        "192.168.105"
                    ][i]
                ),
            )
        })
        .collect();
    domain("primary", 1, &all.join(", "));
    domain(
        "dom",
        5,
        "{vswitch: vswitch0}, {vswitch: \"vswitch{{ index }}\"}",
    );
    domain(
        "a-name-as-long-as-a-name-may-be-mmmmmmm",
        2,
        "{vswitch: vswitch5}",
    );
    domain("load", 12, "{vswitch: vswitch3}, {vswitch: vswitch1}");
    topology(&text)
}

fn meet(a: &Rect, b: &Rect) -> bool {
    a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height
}

fn holds(outer: &Rect, inner: &Rect) -> bool {
    outer.x <= inner.x
        && outer.y <= inner.y
        && inner.x + inner.width <= outer.x + outer.width
        && inner.y + inner.height <= outer.y + outer.height
}

/// Nothing of a picture stands on something else of it.
fn assert_readable(picture: &Picture) {
    let layout = Layout::of(picture);
    // What may hold texts, with those that it holds; no frame for those that stand by themselves.
    let mut texts: Vec<(Option<Rect>, &super::layout::Text)> = Vec::new();
    texts.extend(layout.texts.iter().map(|text| (None, text)));
    for lane in &layout.lanes {
        texts.extend(lane.texts.iter().map(|text| (Some(lane.label), text)));
    }
    for domain in &layout.boxes {
        texts.extend(domain.texts.iter().map(|text| (Some(domain.rect), text)));
        for link in &domain.links {
            texts.extend(link.texts.iter().map(|text| (None, text)));
        }
    }
    let mut frames: Vec<_> = layout.lanes.iter().map(|lane| lane.label).collect();
    frames.extend(layout.boxes.iter().map(|domain| domain.rect));
    let paper = Rect {
        x: 0,
        y: 0,
        width: layout.width,
        height: layout.height,
    };
    for (i, frame) in frames.iter().enumerate() {
        assert!(holds(&paper, frame), "{frame:?} is off the paper");
        for other in &frames[i + 1..] {
            assert!(!meet(frame, other), "{frame:?} meets {other:?}");
        }
    }
    let lanes = layout.lanes.iter().map(|lane| Rect {
        x: lane.x - 3,
        y: lane.label.y,
        width: 6,
        height: lane.bottom - lane.label.y,
    });
    let links: Vec<_> = layout.boxes.iter().flat_map(|d| &d.links).collect();
    let lines = links.iter().map(|link| Rect {
        x: link.from.min(link.to),
        y: link.y - 1,
        width: (link.from - link.to).abs(),
        height: 2,
    });
    let strokes: Vec<_> = lanes.chain(lines).collect();
    for (i, (frame, text)) in texts.iter().enumerate() {
        let rect = text.rect();
        assert!(holds(&paper, &rect), "{text:?} is off the paper");
        match frame {
            Some(frame) => assert!(holds(frame, &rect), "{text:?} is not in {frame:?}"),
            None => {
                for frame in &frames {
                    assert!(!meet(frame, &rect), "{text:?} meets {frame:?}");
                }
            }
        }
        for stroke in &strokes {
            assert!(!meet(stroke, &rect), "{text:?} meets the line {stroke:?}");
        }
        for (_, other) in &texts[i + 1..] {
            assert!(!meet(&rect, &other.rect()), "{text:?} meets {other:?}");
        }
    }
    for (i, link) in links.iter().enumerate() {
        for other in &links[i + 1..] {
            let apart = link.y.abs_diff(other.y) >= 8;
            let side = |l: &super::layout::Link| l.from < l.to;
            assert!(apart || side(link) == side(other), "{link:?} {other:?}");
        }
    }
}

#[test]
fn nothing_stands_on_something_else() {
    let large = large();
    assert_eq!((large.domains.len(), large.vswitches.len()), (20, 6));
    let layout = Layout::of(&Picture::of(&large));
    assert_eq!(layout.boxes.len(), 20, "each domain is drawn");
    assert!(layout.width <= 1200, "{}", layout.width);
    for topology in [
        large,
        load(Path::new("topologies/quickstart.yaml")),
        load(Path::new("tests/input/good/topology.yaml")),
    ] {
        assert_readable(&Picture::of(&topology));
    }
}

#[test]
fn long_texts_stay_in_their_places() {
    let mut picture = Picture::of(&large());
    for vswitch in &mut picture.vswitches {
        vswitch.facts.extend(
            [
                "fd00:1234:5678:9abc::/64",
                "1Gbit/s",
                "delay 2ms",
                "jitter 1ms",
            ]
            .map(str::to_owned),
        );
    }
    for (i, domain) in picture.domains.iter_mut().enumerate() {
        domain
            .facts
            .push("an-image-with-a-name-as-long-as-it-may-be".to_owned());
        domain.instances = vec!["customers-and-all-their-orders mariadb:3306".to_owned(); i % 4];
        for port in &mut domain.ports {
            port.addresses
                .push("fd00:1234:5678:9abc:def0:1234:5678:9abc".to_owned());
            port.facts
                .push("in 100Mbit/s, delay 2ms, loss 0.1%".to_owned());
        }
    }
    assert_readable(&picture);
}

#[test]
fn a_lab_as_svg() {
    let text = graph(
        &load(Path::new("tests/input/good/topology.yaml")),
        GraphFormat::Svg,
    );
    let (head, style) = text.split_once("<style>").unwrap();
    let (_, body) = style.split_once("</style>").unwrap();
    insta::assert_snapshot!("svg", format!("{head}<style/>{body}"));
}

#[test]
fn a_lab_as_mermaid_and_dot() {
    let topology = load(Path::new("tests/input/good/topology.yaml"));
    insta::assert_snapshot!("mermaid", graph(&topology, GraphFormat::Mermaid));
    insta::assert_snapshot!("dot", graph(&topology, GraphFormat::Dot));
}

#[test]
fn svg_is_one_document_that_needs_no_other() {
    let text = graph(&large(), GraphFormat::Svg);
    let document = roxmltree::Document::parse(&text).unwrap();
    let root = document.root_element();
    assert_eq!(root.attribute("role"), Some("img"));
    for id in root.attribute("aria-labelledby").unwrap().split(' ') {
        let named = root.descendants().find(|n| n.attribute("id") == Some(id));
        assert!(!named.unwrap().text().unwrap().is_empty());
    }
    for reference in ["href", "url(", "@import", "http://"] {
        let found = text.replace("http://www.w3.org/2000/svg", "");
        assert!(!found.contains(reference), "{reference}");
    }
    assert!(text.contains("prefers-color-scheme: dark"));
}

#[test]
fn members_of_a_group_are_drawn_as_one_in_a_large_lab() {
    let text = "
version: 1
name: many
images: {micro: {build: {micro: {}}}}
vswitches: {data: {subnet: 10.10.0.0/24}, other: {subnet: 10.11.0.0/24}}
domains:
  db: {image: micro, split: {cpus: 1, memory: 64MiB}, vnets: [{vswitch: data, ip: 10.10.0.9}]}
  load: {count: 40, image: micro, split: {cpus: 1, memory: 64MiB}, vnets: [{vswitch: data}]}
  odd:
    count: 2
    image: micro
    split: {cpus: \"{{ index }}\", memory: 64MiB}
    vnets: [{vswitch: other}]
";
    let topology = topology(text);
    let picture = Picture::of(&topology);
    let drawn: Vec<_> = picture
        .domains
        .iter()
        .map(|domain| (domain.name.as_str(), domain.what()))
        .collect();
    assert_eq!(
        drawn,
        [
            ("db", "vm".to_owned()),
            ("load1 … load40", "40 × vm".to_owned()),
            ("odd1", "vm".to_owned()),
            ("odd2", "vm".to_owned()),
        ]
    );
    assert_readable(&picture);
}

#[test]
fn networks_are_drawn_with_both_families_and_what_they_do_to_frames() {
    let topology = topology(
        "
version: 1
name: wide
images: {micro: {build: {micro: {}}}}
vswitches:
  data: {subnet: 10.10.0.0/24, subnet6: \"fd00:1::/64\", bandwidth: 1Gbit/s, delay: 2ms}
domains:
  a:
    image: micro
    split: {cpus: 1, memory: 64MiB}
    vnets: [{vswitch: data, ip: 10.10.0.9, ip6: \"fd00:1::9\", outbound: {loss: 0.1%}}]
",
    );
    let picture = Picture::of(&topology);
    let [data] = &picture.vswitches[..] else {
        panic!()
    };
    let facts = [
        "isolated",
        "10.10.0.0/24",
        "fd00:1::/64",
        "MTU 1500",
        "1Gbit/s, delay 2ms",
    ];
    assert_eq!(data.facts, facts);
    let port = &picture.domains[0].ports[0];
    assert_eq!(port.addresses, ["10.10.0.9", "fd00:1::9"]);
    assert_eq!(port.label(&picture), "data · out loss 0.1%");
    assert_readable(&picture);
}

#[test]
fn texts_stay_texts() {
    assert_eq!(
        mermaid::escaped("a\"<b>#&;`\n"),
        "a#34;#60;b#62;#35;#38;#59;#96; "
    );
    assert_eq!(dot::escaped("a\"\\n\n"), "a\\\"\\\\n ");
}

#[test]
fn what_does_not_fit_keeps_its_ends() {
    let fit = |text: &str, room| Style::Address.fit(text, room);
    assert_eq!(fit("load12", 100), "load12");
    assert_eq!(fit("a-long-name-of-load12", 87), "a-long…load12");
    assert_eq!(fit("load12", 3), "");
}

#[test]
fn the_picture_of_the_quickstart_is_up_to_date() {
    let text = graph(
        &load(Path::new("topologies/quickstart.yaml")),
        GraphFormat::Svg,
    );
    assert_eq!(
        std::fs::read_to_string("docs/quickstart.svg").unwrap(),
        text,
        "draw it anew: labrig graph topologies/quickstart.yaml -o docs/quickstart.svg"
    );
}
