//! Where everything of a picture stands.
//!
//! Vswitches are lanes that go down the middle, each from its label at the top right. Domains are
//! boxes at both sides, and each port is a level line from its box to its lane:
//!
//! ```text
//! lab              ┌──── data: isolated, 10.10.0.0/24
//!                  │ ┌── uplink: nat, 10.10.9.0/24
//! ┌────┐ 10.10.0.1 │ │
//! │ db ├───────────● │ 10.10.9.2 ┌──────┐
//! └────┘           │ ●───────────┤ load │
//! ```

use super::picture::{DrawnDomain, DrawnPort, DrawnVswitch, Picture};
use super::text::Style;

/// Space around all.
const MARGIN: i32 = 24;
/// Boxes start and ports stand at multiples of this; at the right, half of it lower, so that no two
/// lines of different sides meet between the lanes.
const STEP: i32 = 20;
/// From one lane to the next.
const LANE_STEP: i32 = 24;
/// Between the outer lanes and what is beside them.
const LANE_SPACE: i32 = 24;
/// Width of boxes: what is written on them asks for, between these.
const BOX_WIDTHS: (i32, i32) = (200, 340);
/// Inner space of boxes and labels.
const PADDING: i32 = 12;
/// Height of a box's first line.
const HEAD: i32 = 30;
/// From one line of text to the next.
const LINE: i32 = 16;
/// Height of an instance's plate with the space after it.
const PLATE: i32 = 24;
/// Between a box and the texts at its port.
const PORT_SPACE: i32 = 8;
/// Least width of the labels of vswitches, which span the boxes at the right and their ports.
const LABEL_WIDTH: i32 = 320;

/// A rectangle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rect {
    pub x: i32,
    pub y: i32,
    pub width: i32,
    pub height: i32,
}

/// A text on one line.
#[derive(Debug)]
pub(super) struct Text {
    /// Where it starts; its end where `ends`.
    pub x: i32,
    /// Its base line.
    pub y: i32,
    /// Whether `x` is its end.
    pub ends: bool,
    pub style: Style,
    pub text: String,
}

/// A vswitch's label and lane.
#[derive(Debug)]
pub(super) struct Lane {
    pub x: i32,
    /// Where it ends.
    pub bottom: i32,
    pub label: Rect,
    pub texts: Vec<Text>,
}

/// A domain's box.
#[derive(Debug)]
pub(super) struct DomainBox {
    pub rect: Rect,
    pub texts: Vec<Text>,
    /// What instances are written on.
    pub plates: Vec<Rect>,
    /// In the order of the domain's ports.
    pub links: Vec<Link>,
}

/// A line from a box to a lane.
#[derive(Debug)]
pub(super) struct Link {
    pub y: i32,
    /// At the box.
    pub from: i32,
    /// At the lane.
    pub to: i32,
    /// Index into [`Layout::lanes`].
    pub lane: usize,
    pub texts: Vec<Text>,
}

/// The whole.
#[derive(Debug)]
pub(super) struct Layout {
    pub width: i32,
    pub height: i32,
    /// Title and what is under it.
    pub texts: Vec<Text>,
    /// In the order of the picture's vswitches.
    pub lanes: Vec<Lane>,
    /// In the order of the picture's domains.
    pub boxes: Vec<DomainBox>,
}

/// Which side of the lanes a box is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Left,
    Right,
}

/// The columns of a picture.
struct Columns {
    box_width: i32,
    /// The first lane.
    lanes: i32,
    /// Where the labels of vswitches begin.
    labels: i32,
    /// Where the texts of ports at the left begin, and those at the right end.
    ports: (i32, i32),
    /// The right column of boxes.
    right: i32,
    width: i32,
}

impl Columns {
    fn of(picture: &Picture) -> Self {
        let ports = picture.domains.iter().flat_map(|domain| &domain.ports);
        let port_width = ports
            .map(|port| port_width(picture, port))
            .max()
            .unwrap_or_default()
            + 2 * PORT_SPACE;
        let texts = picture.domains.iter().map(text_width).max();
        let (least, most) = BOX_WIDTHS;
        let box_width = (texts.unwrap_or_default() + 2 * PADDING)
            .clamp(least, most)
            .max(LABEL_WIDTH - port_width);
        let left_ports = MARGIN + box_width;
        let lanes = left_ports + port_width + LANE_SPACE;
        let labels = lanes + (length(&picture.vswitches) - 1).max(0) * LANE_STEP + LANE_SPACE;
        let right = labels + port_width;
        Self {
            box_width,
            lanes,
            labels,
            ports: (left_ports, right),
            right,
            width: right + box_width + MARGIN,
        }
    }

    fn lane(&self, index: usize) -> i32 {
        self.lanes + i32::try_from(index).unwrap_or_default() * LANE_STEP
    }
}

impl Layout {
    pub fn of(picture: &Picture) -> Self {
        let columns = Columns::of(picture);
        let texts = vec![
            start(MARGIN, MARGIN + 18, Style::Title, &picture.lab),
            start(MARGIN, MARGIN + 38, Style::Fact, &picture.extent),
        ];
        let mut lanes = Vec::new();
        let mut label_top = MARGIN;
        for (index, vswitch) in picture.vswitches.iter().enumerate() {
            let lane = Lane::of(vswitch, columns.lane(index), label_top, &columns);
            label_top = lane.label.y + lane.label.height + STEP / 2;
            lanes.push(lane);
        }
        let top = next_step(label_top.max(MARGIN + 48) + STEP);

        let heights: Vec<_> = picture
            .domains
            .iter()
            .map(|domain| box_height(domain, columns.box_width))
            .collect();
        let left = left_count(&heights);
        let mut boxes = Vec::new();
        let (mut left_y, mut right_y) = (top, top + STEP / 2);
        for (index, domain) in picture.domains.iter().enumerate() {
            let (side, y) = if index < left {
                (Side::Left, &mut left_y)
            } else {
                (Side::Right, &mut right_y)
            };
            boxes.push(DomainBox::of(
                picture,
                domain,
                side,
                *y,
                heights[index],
                &columns,
            ));
            *y += heights[index] + STEP;
        }
        for link in boxes.iter().flat_map(|domain| &domain.links) {
            let lane = &mut lanes[link.lane];
            lane.bottom = lane.bottom.max(link.y);
        }
        Self {
            width: columns.width,
            height: left_y.max(right_y).max(label_top + STEP) - STEP + MARGIN,
            texts,
            lanes,
            boxes,
        }
    }
}

impl Lane {
    fn of(vswitch: &DrawnVswitch, x: i32, top: i32, columns: &Columns) -> Self {
        let left = columns.labels;
        let width = columns.width - MARGIN - left;
        let room = width - 2 * PADDING;
        let lines = Style::Fact.wrap(&vswitch.facts, room);
        let name = Style::Name.fit(&vswitch.name, room);
        let mut texts = vec![start(left + PADDING, top + 19, Style::Name, &name)];
        let mut y = top + 19;
        for line in &lines {
            y += LINE;
            texts.push(start(left + PADDING, y, Style::Fact, line));
        }
        let label = Rect {
            x: left,
            y: top,
            width,
            height: y - top + 9,
        };
        Self {
            x,
            bottom: label.y + label.height + STEP,
            label,
            texts,
        }
    }
}

impl DomainBox {
    fn of(
        picture: &Picture,
        domain: &DrawnDomain,
        side: Side,
        y: i32,
        height: i32,
        columns: &Columns,
    ) -> Self {
        let rect = Rect {
            x: match side {
                Side::Left => MARGIN,
                Side::Right => columns.right,
            },
            y,
            width: columns.box_width,
            height,
        };
        let (left, right) = (rect.x + PADDING, rect.x + rect.width - PADDING);
        let room = right - left;
        let what = domain.what();
        let name_room = room - Style::Kind.width(&what) - PADDING;
        let mut texts = vec![
            start(
                left,
                y + 20,
                Style::Name,
                &Style::Name.fit(&domain.name, name_room),
            ),
            end(right, y + 20, Style::Kind, &what),
        ];
        let mut line = y + HEAD;
        for facts in Style::Fact.wrap(&domain.facts, room) {
            texts.push(start(left, line + 10, Style::Fact, &facts));
            line += LINE;
        }
        let mut plates = Vec::new();
        for instance in &domain.instances {
            plates.push(Rect {
                x: left,
                y: line + 2,
                width: room,
                height: PLATE - 4,
            });
            let text = Style::Address.fit(instance, room - 2 * PADDING);
            texts.push(start(left + PADDING, line + 16, Style::Address, &text));
            line += PLATE;
        }
        let links = place_ports(domain, &rect)
            .into_iter()
            .zip(&domain.ports)
            .map(|(y, port)| Link::of(picture, port, side, y, columns))
            .collect();
        Self {
            rect,
            texts,
            plates,
            links,
        }
    }
}

impl Link {
    fn of(picture: &Picture, port: &DrawnPort, side: Side, y: i32, columns: &Columns) -> Self {
        let from = match side {
            Side::Left => columns.ports.0,
            Side::Right => columns.ports.1,
        };
        let place = |y, style, text: &str| match side {
            Side::Left => start(from + PORT_SPACE, y, style, text),
            Side::Right => end(from - PORT_SPACE, y, style, text),
        };
        let mut texts = Vec::new();
        for (line, address) in (0..).zip(port.addresses.iter().rev()) {
            texts.push(place(y - 5 - line * 14, Style::Address, address));
        }
        texts.push(place(y + 13, Style::Link, &port.label(picture)));
        Self {
            y,
            from,
            to: columns.lane(port.vswitch),
            lane: port.vswitch,
            texts,
        }
    }
}

impl Text {
    /// The room it takes.
    #[cfg(test)]
    pub fn rect(&self) -> Rect {
        let (size, width) = (self.style.size(), self.style.width(&self.text));
        Rect {
            x: self.x - if self.ends { width } else { 0 },
            y: self.y - size * 4 / 5,
            width,
            height: size,
        }
    }
}

fn start(x: i32, y: i32, style: Style, text: &str) -> Text {
    Text {
        x,
        y,
        ends: false,
        style,
        text: text.to_owned(),
    }
}

fn end(x: i32, y: i32, style: Style, text: &str) -> Text {
    Text {
        ends: true,
        ..start(x, y, style, text)
    }
}

const fn next_step(y: i32) -> i32 {
    (y + STEP - 1) / STEP * STEP
}

fn length<T>(items: &[T]) -> i32 {
    i32::try_from(items.len()).unwrap_or(i32::MAX)
}

/// What a box's texts ask for, each on one line.
fn text_width(domain: &DrawnDomain) -> i32 {
    let head = Style::Name.width(&domain.name) + PADDING + Style::Kind.width(&domain.what());
    let facts = Style::Fact.width(&domain.facts.join(" · "));
    let instances = domain.instances.iter();
    instances
        .map(|text| Style::Address.width(text) + 2 * PADDING)
        .fold(head.max(facts), i32::max)
}

fn port_width(picture: &Picture, port: &DrawnPort) -> i32 {
    let addresses = port.addresses.iter().map(|text| Style::Address.width(text));
    let label = Style::Link.width(&port.label(picture));
    addresses.fold(label, i32::max)
}

/// Room above a port's line, and below it.
fn port_room(port: &DrawnPort) -> (i32, i32) {
    (next_step(14 * length(&port.addresses) + 2), STEP)
}

fn ports_height(domain: &DrawnDomain) -> i32 {
    let rooms = domain.ports.iter().map(port_room);
    rooms.map(|(above, below)| above + below).sum()
}

fn box_height(domain: &DrawnDomain, width: i32) -> i32 {
    let lines = length(&Style::Fact.wrap(&domain.facts, width - 2 * PADDING));
    let content = HEAD + lines * LINE + length(&domain.instances) * PLATE + PADDING / 2;
    next_step(content.max(ports_height(domain)))
}

/// Where a box's ports are: in its middle, each with room for its texts.
fn place_ports(domain: &DrawnDomain, rect: &Rect) -> Vec<i32> {
    let space = (rect.height - ports_height(domain)) / 2 / STEP * STEP;
    let mut y = rect.y + space;
    let ports = domain.ports.iter().map(|port| {
        let (above, below) = port_room(port);
        let line = y + above;
        y = line + below;
        line
    });
    ports.collect()
}

/// How many of the boxes are at the left, for the lowest picture.
fn left_count(heights: &[i32]) -> usize {
    let total: i32 = heights.iter().map(|height| height + STEP).sum();
    let mut left = 0;
    for (index, height) in heights.iter().enumerate() {
        let with = left + height + STEP;
        // The next one is no gain any more when the right side is lower already than the left would be.
        if with.max(total - with) > left.max(total - left) {
            return index;
        }
        left = with;
    }
    heights.len()
}
