//! A picture as SVG: one file without references to others, light or dark as its viewer likes.

use std::io::Cursor;

use quick_xml::Writer;
use quick_xml::events::{BytesText, Event};

use super::layout::{DomainBox, Lane, Layout, Link, Rect, Text};
use super::picture::{DrawnDomain, DrawnPort, Picture};
use super::text::Style;

type Xml = Writer<Cursor<Vec<u8>>>;

const STYLE: &str = include_str!("style.css");
/// Colours that vswitches have, one after the other.
const COLOURS: usize = 8;
/// Radius of the bend of a lane.
const BEND: i32 = 10;
/// How far behind a box stands the one that says there are several.
const BEHIND: i32 = 5;

pub(super) fn write(picture: &Picture, layout: &Layout) -> String {
    let mut xml = Writer::new_with_indent(Cursor::new(Vec::new()), b' ', 1);
    // Writing to memory does not fail, and what was written came from `str`.
    let _ = draw(picture, layout, &mut xml);
    let mut text = String::from_utf8(xml.into_inner().into_inner()).unwrap_or_default();
    text.push('\n');
    text
}

fn draw(picture: &Picture, layout: &Layout, xml: &mut Xml) -> std::io::Result<()> {
    let (width, height) = (layout.width.to_string(), layout.height.to_string());
    let view = format!("0 0 {width} {height}");
    // Several pictures may be put into one page.
    let (title, description) = (
        format!("labrig-{}-title", picture.lab),
        format!("labrig-{}-desc", picture.lab),
    );
    let labelled = format!("{title} {description}");
    xml.create_element("svg")
        .with_attributes([
            ("xmlns", "http://www.w3.org/2000/svg"),
            ("width", width.as_str()),
            ("height", height.as_str()),
            ("viewBox", view.as_str()),
            ("role", "img"),
            ("aria-labelledby", labelled.as_str()),
        ])
        .write_inner_content(|xml| {
            xml.create_element("title")
                .with_attribute(("id", title.as_str()))
                .write_text_content(BytesText::new(&format!("Lab {}", picture.lab)))?;
            xml.create_element("desc")
                .with_attribute(("id", description.as_str()))
                .write_text_content(BytesText::new(&describe(picture)))?;
            xml.create_element("style").write_inner_content(|xml| {
                xml.write_event(Event::Text(BytesText::from_escaped(format!("\n{STYLE}"))))
            })?;
            let paper = Rect {
                x: 0,
                y: 0,
                width: layout.width,
                height: layout.height,
            };
            draw_rect(xml, &paper, "paper", 0)?;
            texts(xml, &layout.texts, None)?;
            for (index, lane) in layout.lanes.iter().enumerate() {
                draw_lane(xml, index, lane)?;
            }
            for (domain, drawn) in picture.domains.iter().zip(&layout.boxes) {
                draw_domain(xml, picture, domain, drawn)?;
            }
            Ok(())
        })
        .map(drop)
}

fn draw_lane(xml: &mut Xml, index: usize, lane: &Lane) -> std::io::Result<()> {
    let colour = format!("s{}", index % COLOURS);
    let y = lane.label.y + lane.label.height / 2;
    let path = format!(
        "M{} {y}H{}Q{x} {y} {x} {}V{}",
        lane.label.x,
        lane.x + BEND,
        y + BEND,
        lane.bottom,
        x = lane.x,
    );
    xml.create_element("g")
        .write_inner_content(|xml| {
            xml.create_element("path")
                .with_attribute(("class", format!("lane {colour}").as_str()))
                .with_attribute(("d", path.as_str()))
                .write_empty()?;
            draw_rect(xml, &lane.label, &format!("label {colour}"), 6)?;
            texts(xml, &lane.texts, None)
        })
        .map(drop)
}

fn draw_domain(
    xml: &mut Xml,
    picture: &Picture,
    domain: &DrawnDomain,
    drawn: &DomainBox,
) -> std::io::Result<()> {
    xml.create_element("g")
        .write_inner_content(|xml| {
            title(xml, &describe_domain(picture, domain))?;
            let class = format!("box {}", domain.kind);
            if domain.count > 1 {
                let behind = Rect {
                    x: drawn.rect.x + BEHIND,
                    y: drawn.rect.y + BEHIND,
                    ..drawn.rect
                };
                draw_rect(xml, &behind, &class, 6)?;
            }
            for (port, link) in domain.ports.iter().zip(&drawn.links) {
                draw_link(xml, picture, domain, port, link)?;
            }
            draw_rect(xml, &drawn.rect, &class, 6)?;
            for plate in &drawn.plates {
                draw_rect(xml, plate, "plate", 4)?;
            }
            texts(xml, &drawn.texts, None)
        })
        .map(drop)
}

fn draw_link(
    xml: &mut Xml,
    picture: &Picture,
    domain: &DrawnDomain,
    port: &DrawnPort,
    link: &Link,
) -> std::io::Result<()> {
    let colour = link.lane % COLOURS;
    let path = format!("M{} {}H{}", link.from, link.y, link.to);
    xml.create_element("g")
        .write_inner_content(|xml| {
            let what = format!("{} on {}", domain.name, describe_port(picture, port));
            title(xml, &what)?;
            // A line goes over the lanes before its own.
            for class in ["under".to_owned(), format!("link s{colour}")] {
                xml.create_element("path")
                    .with_attribute(("class", class.as_str()))
                    .with_attribute(("d", path.as_str()))
                    .write_empty()?;
            }
            xml.create_element("circle")
                .with_attribute(("class", format!("joint f{colour}").as_str()))
                .with_attribute(("cx", link.to.to_string().as_str()))
                .with_attribute(("cy", link.y.to_string().as_str()))
                .with_attribute(("r", "4"))
                .write_empty()?;
            texts(xml, &link.texts, Some(link.lane))
        })
        .map(drop)
}

fn draw_rect(xml: &mut Xml, rect: &Rect, class: &str, radius: i32) -> std::io::Result<()> {
    let element = xml.create_element("rect").with_attribute(("class", class));
    let element = [
        ("x", rect.x),
        ("y", rect.y),
        ("width", rect.width),
        ("height", rect.height),
        ("rx", radius),
    ]
    .iter()
    .fold(element, |element, (name, value)| {
        element.with_attribute((*name, value.to_string().as_str()))
    });
    element.write_empty().map(drop)
}

/// Names of vswitches at ports have the colour of their lane.
fn texts(xml: &mut Xml, texts: &[Text], lane: Option<usize>) -> std::io::Result<()> {
    for text in texts {
        let class = match (text.style, lane) {
            (Style::Link, Some(lane)) => format!("{} f{}", text.style.class(), lane % COLOURS),
            _ => text.style.class().to_owned(),
        };
        let (x, y) = (text.x.to_string(), text.y.to_string());
        let mut element = xml.create_element("text").with_attributes([
            ("class", class.as_str()),
            ("x", x.as_str()),
            ("y", y.as_str()),
        ]);
        if text.ends {
            element = element.with_attribute(("text-anchor", "end"));
        }
        element.write_text_content(BytesText::new(&text.text))?;
    }
    Ok(())
}

fn title(xml: &mut Xml, text: &str) -> std::io::Result<()> {
    xml.create_element("title")
        .write_text_content(BytesText::new(text))
        .map(drop)
}

/// The whole picture in words.
fn describe(picture: &Picture) -> String {
    let mut sentences = vec![format!("{}.", picture.extent)];
    for vswitch in &picture.vswitches {
        let facts = vswitch.facts.join(", ");
        sentences.push(format!("vswitch {}: {facts}.", vswitch.name));
    }
    for domain in &picture.domains {
        sentences.push(format!("{}.", describe_domain(picture, domain)));
    }
    sentences.join(" ")
}

fn describe_domain(picture: &Picture, domain: &DrawnDomain) -> String {
    let mut facts = vec![domain.what()];
    facts.extend(domain.facts.iter().chain(&domain.instances).cloned());
    let ports = domain.ports.iter();
    facts.extend(ports.map(|port| format!("on {}", describe_port(picture, port))));
    format!("{}: {}", domain.name, facts.join(", "))
}

fn describe_port(picture: &Picture, port: &DrawnPort) -> String {
    let name = &picture.vswitches[port.vswitch].name;
    let facts: Vec<_> = port.addresses.iter().chain(&port.facts).cloned().collect();
    if facts.is_empty() {
        name.clone()
    } else {
        format!("{name} ({})", facts.join(", "))
    }
}
