//! Texts of a picture: how wide they are, and how they are made to fit.

/// How a text looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// The lab's name.
    Title,
    /// Names of domains and vswitches.
    Name,
    /// What is known of them.
    Fact,
    /// The kind of a domain.
    Kind,
    /// Addresses and ports, in letters of one width.
    Address,
    /// What a line leads to.
    Link,
}

impl Style {
    /// Its class in the style sheet.
    pub const fn class(self) -> &'static str {
        match self {
            Self::Title => "title",
            Self::Name => "name",
            Self::Fact => "fact",
            Self::Kind => "kind",
            Self::Address => "address",
            Self::Link => "link-text",
        }
    }

    /// Size of the font in pixels.
    pub const fn size(self) -> i32 {
        match self {
            Self::Title => 20,
            Self::Name => 14,
            Self::Fact => 12,
            Self::Kind | Self::Address | Self::Link => 11,
        }
    }

    /// The width of a text in pixels, at least. Which font a viewer has is not known: the widths are
    /// those of DejaVu Sans, which is wider than most.
    pub fn width(self, text: &str) -> i32 {
        let thousandths: i32 = match self {
            Self::Address => text.chars().map(|_| 605).sum(),
            Self::Title | Self::Name => text.chars().map(|c| thousandths_of(c) * 11 / 10).sum(),
            Self::Fact | Self::Kind | Self::Link => text.chars().map(thousandths_of).sum(),
        };
        (thousandths * self.size() + 999) / 1000
    }

    /// The text, with as much of its middle left out as it takes to be no wider than `room`: names
    /// of one kind often differ in their ends.
    pub fn fit(self, text: &str, room: i32) -> String {
        if self.width(text) <= room {
            return text.to_owned();
        }
        let all: Vec<_> = text.chars().collect();
        let shortened = |kept: usize| -> String {
            let (head, tail) = (kept.div_ceil(2), kept / 2);
            let ends = [&all[..head], &['…'], &all[all.len() - tail..]];
            ends.into_iter().flatten().collect()
        };
        let mut lengths = (0..all.len()).rev().map(shortened);
        lengths
            .find(|text| self.width(text) <= room)
            .unwrap_or_default()
    }

    /// Facts in as many lines as they take, each at most as wide as `room`.
    pub fn wrap(self, facts: &[String], room: i32) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        for fact in facts {
            let joined = lines.last().map(|line| format!("{line} · {fact}"));
            match (lines.last_mut(), joined) {
                (Some(line), Some(joined)) if self.width(&joined) <= room => *line = joined,
                _ => lines.push(self.fit(fact, room)),
            }
        }
        lines
    }
}

/// Width of a character in DejaVu Sans in thousandths of its size, or somewhat more.
const fn thousandths_of(c: char) -> i32 {
    match c {
        'i' | 'l' | 'j' | ' ' | '.' | ',' | ':' | '/' | '·' | '-' => 360,
        'f' | 't' | 'r' | '(' | ')' => 420,
        'm' | 'w' | 'M' | 'W' | '%' | '…' => 1000,
        'a'..='z' | '0'..='9' => 640,
        'A'..='Z' => 800,
        _ => 1000,
    }
}
