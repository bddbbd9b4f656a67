//! What all libvirt XML of labrig shares: the writer and the tag of ownership.

use std::io::Cursor;

use quick_xml::Writer;
use quick_xml::events::BytesText;

use super::Overlay;
use crate::model::{Digest, Lab};

/// XML namespace of labrig's element in libvirt metadata.
pub const TAG_NAMESPACE: &str = "urn:labrig:1";

pub(super) type Xml = Writer<Cursor<Vec<u8>>>;

/// What labrig writes into the metadata of everything it defines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tag {
    /// The lab's name.
    pub lab: String,
    /// Digest of the definition without the tag.
    pub definition: Digest,
}

/// Renders a document twice: first without the tag, to digest it, then with it.
pub(super) fn tagged(
    lab: &Lab,
    write: impl Fn(&mut Xml, Option<&Tag>) -> std::io::Result<()>,
) -> (String, Digest) {
    tagged_and_merged(lab, None, write)
}

/// The same with an overlay merged into it.
pub(super) fn tagged_and_merged(
    lab: &Lab,
    overlay: Option<&Overlay>,
    write: impl Fn(&mut Xml, Option<&Tag>) -> std::io::Result<()>,
) -> (String, Digest) {
    let render = |tag: Option<&Tag>| {
        let plain = render(|xml| write(xml, tag));
        overlay.map_or(plain.clone(), |overlay| overlay.apply(&plain))
    };
    let definition = Digest::of(render(None));
    let tag = Tag {
        lab: lab.name.to_string(),
        definition,
    };
    (render(Some(&tag)), definition)
}

pub(super) fn render(write: impl Fn(&mut Xml) -> std::io::Result<()>) -> String {
    let mut xml = Writer::new_with_indent(Cursor::new(Vec::new()), b' ', 2);
    // Writing to memory does not fail, and what was written came from `str`.
    let _ = write(&mut xml);
    String::from_utf8(xml.into_inner().into_inner()).unwrap_or_default()
}

impl Tag {
    pub(super) fn write(&self, xml: &mut Xml) -> std::io::Result<()> {
        xml.create_element("metadata").write_inner_content(|xml| {
            xml.create_element("labrig:lab")
                .with_attribute(("xmlns:labrig", TAG_NAMESPACE))
                .with_attribute(("name", self.lab.as_str()))
                .with_attribute(("definition", self.definition.to_string().as_str()))
                .write_empty()
                .map(drop)
        })?;
        Ok(())
    }

    /// Reads the tag from a definition that libvirt gave; none when labrig did not make it.
    pub fn read(document: &roxmltree::Document<'_>) -> Option<Self> {
        let element = document
            .descendants()
            .find(|n| n.has_tag_name((TAG_NAMESPACE, "lab")))?;
        Some(Self {
            lab: element.attribute("name")?.to_owned(),
            definition: element.attribute("definition")?.parse().ok()?,
        })
    }
}

/// `<name>text</name>`
pub(super) fn text(xml: &mut Xml, name: &str, text: impl AsRef<str>) -> std::io::Result<()> {
    xml.create_element(name)
        .write_text_content(BytesText::new(text.as_ref()))
        .map(drop)
}

/// `<name key="value" …/>`
pub(super) fn empty(xml: &mut Xml, name: &str, attributes: &[(&str, &str)]) -> std::io::Result<()> {
    xml.create_element(name)
        .with_attributes(attributes.iter().copied())
        .write_empty()
        .map(drop)
}
