//! A lab as a picture: what is on which vswitch, at which address.

mod dot;
mod layout;
mod mermaid;
mod picture;
mod svg;
mod text;

use layout::Layout;
use picture::Picture;

use crate::model::Topology;

/// The forms a picture comes in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GraphFormat {
    /// An image that browsers show.
    Svg,
    /// Text that Markdown viewers draw.
    Mermaid,
    /// Text that Graphviz draws.
    Dot,
}

/// Draws a lab. The same topology always gives the same text.
pub fn graph(topology: &Topology, format: GraphFormat) -> String {
    let picture = Picture::of(topology);
    match format {
        GraphFormat::Svg => svg::write(&picture, &Layout::of(&picture)),
        GraphFormat::Mermaid => mermaid::write(&picture),
        GraphFormat::Dot => dot::write(&picture),
    }
}

#[cfg(test)]
mod tests;
