//! libvirt XML of a person's own, merged into the definition of a domain as the last resort.
//!
//! The overlay is one `<domain>` element. Of each element in it, from the top:
//!
//! - where the definition has one element of that name in the same place, the overlay's takes its
//!   place; if it has elements inside, it is merged into it instead: its attributes are set, and its
//!   elements treated in the same way;
//! - else it is added.
//!
//! Devices are always added, for a domain has many of a kind, except the few that it has at most one
//! of. Namespaces declared on the overlay's `<domain>` are declared on the definition's. What tells
//! whose a domain is, its name, UUID and metadata, cannot be changed.

use quick_xml::events::attributes::Attribute;
use quick_xml::events::{BytesEnd, BytesStart, Event};
use quick_xml::name::QName;
use quick_xml::{Reader, Writer};

/// What a domain is known by.
const FIXED: [&str; 3] = ["name", "uuid", "metadata"];

/// Devices of which a domain has one.
const SINGLE_DEVICES: [&str; 5] = ["emulator", "memballoon", "iommu", "vsock", "panic"];

/// An overlay that can be merged.
#[derive(Debug, Clone)]
pub struct Overlay {
    root: Element,
}

/// Why a text is no overlay.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum OverlayError {
    /// It is not well-formed XML.
    #[error("line {line} of it, column {column}: {message}")]
    Syntax {
        /// Line of the text, from 1.
        line: u32,
        /// Column, from 1.
        column: u32,
        /// What the parser says.
        message: String,
    },
    /// The outermost element is another one.
    #[error("its outermost element is <{0}>")]
    Root(String),
    /// An attribute of the outermost element.
    #[error("the attribute {0:?} of <domain> cannot be set")]
    RootAttribute(String),
    /// A part that labrig knows the domain by.
    #[error("<{0}> cannot be changed: labrig knows the domain by it")]
    Fixed(String),
}

#[derive(Debug, Clone)]
struct Element {
    start: BytesStart<'static>,
    content: Vec<Node>,
}

/// Nodes that an overlay may have: no definition needs as many, and deep nesting would use up the
/// stack of whoever goes through it.
const NODES_MAX: u32 = 1000;

#[derive(Debug, Clone)]
enum Node {
    Element(Element),
    /// Text, a comment or the like.
    Other(Event<'static>),
}

impl Overlay {
    /// Reads an overlay.
    ///
    /// # Errors
    /// When it is no XML, or sets what it may not.
    pub fn parse(text: &str) -> Result<Self, OverlayError> {
        // This parser says where a mistake is, and knows undeclared prefixes.
        let options = roxmltree::ParsingOptions {
            nodes_limit: NODES_MAX,
            ..roxmltree::ParsingOptions::default()
        };
        if let Err(error) = roxmltree::Document::parse_with_options(text, options) {
            let (position, message) = (error.pos(), error.to_string());
            // The position is told apart from the message; it stands at its end as well.
            let message = message.split(" at ").next().unwrap_or_default().to_owned();
            return Err(OverlayError::Syntax {
                line: position.row,
                column: position.col,
                message,
            });
        }
        let Some(root) = Element::read(text) else {
            return Err(OverlayError::Root("nothing".to_owned()));
        };
        if root.name() != "domain" {
            return Err(OverlayError::Root(root.name()));
        }
        let attributes = root.attributes();
        let mut others = attributes
            .iter()
            .filter(|(key, _)| !key.starts_with("xmlns"));
        if let Some((key, _)) = others.next() {
            return Err(OverlayError::RootAttribute(key.clone()));
        }
        let fixed = root
            .elements()
            .map(Element::name)
            .find(|name| FIXED.contains(&name.as_str()));
        match fixed {
            Some(name) => Err(OverlayError::Fixed(name)),
            None => Ok(Self { root }),
        }
    }

    /// The definition with this merged into it.
    pub fn apply(&self, definition: &str) -> String {
        let Some(mut domain) = Element::read(definition) else {
            return definition.to_owned();
        };
        domain.merge(&self.root, false);
        let mut writer = Writer::new_with_indent(Vec::new(), b' ', 2);
        // Writing to memory does not fail, and what was written came from `str`.
        let _ = domain.write(&mut writer);
        String::from_utf8(writer.into_inner()).unwrap_or_default()
    }
}

impl Element {
    /// The outermost element of a document that is well-formed.
    fn read(text: &str) -> Option<Self> {
        let mut reader = Reader::from_str(text);
        let mut open: Vec<Self> = Vec::new();
        loop {
            let closed = match reader.read_event().ok()? {
                Event::Eof => return None,
                Event::Start(start) => {
                    open.push(Self::new(start.into_owned()));
                    None
                }
                Event::Empty(start) => Some(Self::new(start.into_owned())),
                Event::End(_) => open.pop(),
                // The writer indents anew.
                Event::Text(text) if text.trim().is_empty() => None,
                other => {
                    if let Some(parent) = open.last_mut() {
                        parent.content.push(Node::Other(other.into_owned()));
                    }
                    None
                }
            };
            let Some(element) = closed else { continue };
            match open.last_mut() {
                Some(parent) => parent.content.push(Node::Element(element)),
                None => return Some(element),
            }
        }
    }

    fn new(start: BytesStart<'static>) -> Self {
        Self {
            start,
            content: Vec::new(),
        }
    }

    fn name(&self) -> String {
        self.start.name().as_ref().to_owned()
    }

    /// Attributes as written, with their escapes.
    fn attributes(&self) -> Vec<(String, String)> {
        let attributes = self.start.attributes().flatten();
        attributes
            .map(|a| {
                // They are written in double quotes, whatever they were in.
                (a.key.as_ref().to_owned(), a.value.replace('"', "&quot;"))
            })
            .collect()
    }

    fn elements(&self) -> impl Iterator<Item = &Self> {
        self.content.iter().filter_map(|node| match node {
            Node::Element(element) => Some(element),
            Node::Other(_) => None,
        })
    }

    /// The one element of that name inside.
    fn only(&mut self, name: &str) -> Option<&mut Self> {
        let mut found = self.content.iter_mut().filter_map(|node| match node {
            Node::Element(element) if element.name() == name => Some(element),
            _ => None,
        });
        let first = found.next()?;
        found.next().is_none().then_some(first)
    }

    fn merge(&mut self, overlay: &Self, are_devices: bool) {
        self.set_attributes(overlay);
        for element in overlay.elements() {
            let name = element.name();
            let only = match are_devices && !SINGLE_DEVICES.contains(&name.as_str()) {
                true => None,
                false => self.only(&name),
            };
            match only {
                Some(old) if element.elements().next().is_some() => {
                    old.merge(element, name == "devices");
                }
                Some(old) => *old = element.clone(),
                None => self.content.push(Node::Element(element.clone())),
            }
        }
    }

    fn set_attributes(&mut self, overlay: &Self) {
        let new = overlay.attributes();
        if new.is_empty() {
            return;
        }
        let mut all = self.attributes();
        for (key, value) in new {
            match all.iter_mut().find(|(known, _)| *known == key) {
                Some((_, old)) => *old = value,
                None => all.push((key, value)),
            }
        }
        let mut start = BytesStart::new(self.name());
        for (key, value) in &all {
            // As it is: it was never unescaped.
            start.push_attribute(Attribute {
                key: QName(key),
                value: value.into(),
            });
        }
        self.start = start;
    }

    fn write(&self, writer: &mut Writer<Vec<u8>>) -> std::io::Result<()> {
        if self.content.is_empty() {
            return writer.write_event(Event::Empty(self.start.borrow()));
        }
        writer.write_event(Event::Start(self.start.borrow()))?;
        for node in &self.content {
            match node {
                Node::Element(element) => element.write(writer)?,
                Node::Other(event) => writer.write_event(event.borrow())?,
            }
        }
        writer.write_event(Event::End(BytesEnd::new(self.name())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEFINITION: &str = "<domain type=\"kvm\">\n  <name>n</name>\n  <vcpu>2</vcpu>\n  <cpu mode=\"maximum\"/>\n  <features>\n    <acpi/>\n  </features>\n  <devices>\n    <disk a=\"&quot;1\"/>\n    <memballoon model=\"none\"/>\n  </devices>\n</domain>";

    #[test]
    fn an_overlay_is_merged() {
        let cases = [
            // Nothing changes what is there.
            ("<domain/>", DEFINITION, DEFINITION),
            // A single element is replaced.
            (
                "<domain><vcpu current='1'>4</vcpu></domain>",
                "<vcpu>2</vcpu>",
                "<vcpu current='1'>4</vcpu>",
            ),
            // One with elements inside is merged into, attributes and all.
            (
                "<domain><cpu check='none'><feature name='x' policy='require'/></cpu></domain>",
                "<cpu mode=\"maximum\"/>",
                "<cpu mode=\"maximum\" check=\"none\">\n    <feature name='x' policy='require'/>\n  </cpu>",
            ),
            (
                "<domain><cpu b='\"'><c/></cpu></domain>",
                "<cpu mode=\"maximum\"/>",
                "<cpu mode=\"maximum\" b=\"&quot;\">\n    <c/>\n  </cpu>",
            ),
            (
                "<domain><features><hap/></features></domain>",
                "    <acpi/>\n",
                "    <acpi/>\n    <hap/>\n",
            ),
            // Devices are added, and those there is one of replaced.
            (
                "<domain><devices><disk b='2'/></devices></domain>",
                "none\"/>\n",
                "none\"/>\n    <disk b='2'/>\n",
            ),
            (
                "<domain><devices><memballoon model='virtio'/></devices></domain>",
                "<memballoon model=\"none\"/>",
                "<memballoon model='virtio'/>",
            ),
            // QEMU's own arguments need a namespace.
            (
                "<domain xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'><qemu:commandline>\
                 <qemu:arg value='-a&lt;b'/></qemu:commandline></domain>",
                "<domain type=\"kvm\">",
                "<domain type=\"kvm\" xmlns:qemu=\"http://libvirt.org/schemas/domain/qemu/1.0\">",
            ),
        ];
        for (overlay, from, to) in cases {
            let merged = Overlay::parse(overlay).unwrap().apply(DEFINITION);
            let expected = DEFINITION.replace(from, to);
            if overlay.contains("qemu:") {
                assert!(merged.starts_with(to), "{merged}");
                assert!(merged.contains("<qemu:arg value='-a&lt;b'/>"), "{merged}");
            } else {
                assert_eq!(merged, expected, "{overlay}");
            }
            roxmltree::Document::parse(&merged).unwrap();
        }
    }

    #[test]
    fn what_is_no_overlay_is_refused() {
        use OverlayError as E;
        for (text, error) in [
            ("<network/>", E::Root("network".to_owned())),
            ("<domain type='kvm'/>", E::RootAttribute("type".to_owned())),
            (
                "<domain><name>x</name></domain>",
                E::Fixed("name".to_owned()),
            ),
            ("<domain><uuid/></domain>", E::Fixed("uuid".to_owned())),
            (
                "<domain><metadata/></domain>",
                E::Fixed("metadata".to_owned()),
            ),
        ] {
            assert_eq!(Overlay::parse(text).unwrap_err(), error);
        }
        for (text, place) in [
            ("<domain>\n <a></b>\n</domain>", (2, 5)),
            ("<domain><x:a/></domain>", (1, 10)),
            ("", (1, 1)),
            ("<!DOCTYPE d [<!ENTITY a 'b'>]><domain/>", (1, 1)),
        ] {
            let Err(E::Syntax { line, column, .. }) = Overlay::parse(text) else {
                panic!("{text} is taken");
            };
            assert_eq!((line, column), place, "{text}");
        }
    }

    #[test]
    fn an_overlay_that_nests_without_end_is_refused() {
        let (open, close) = ("<a>".repeat(50_000), "</a>".repeat(50_000));
        let error = Overlay::parse(&format!("<domain>{open}{close}</domain>")).unwrap_err();
        assert!(matches!(error, OverlayError::Syntax { .. }), "{error}");
    }
}
