//! Laying one part of a topology over another: included files, defaults and groups.

use super::tree::{Entry, Kind, Node};

/// Lays `over` on `base`. Maps are joined key by key, null takes a key of `base` away, and everything
/// else stands in the place of what was there.
///
/// A null that finds nothing to take away stays: it may take away what lies deeper, as a domain's own
/// null does with what `defaults` say.
pub(super) fn merge(base: Node, over: Node) -> Node {
    let kind = match (base.kind, over.kind) {
        (Kind::Map(mut joined), Kind::Map(above)) => {
            for entry in above.into_entries() {
                match joined.get_mut(&entry.key) {
                    None => joined.set(entry),
                    Some(_) if entry.value.is_null() => drop(joined.take(&entry.key)),
                    Some(below) => {
                        let kind = std::mem::replace(&mut below.value.kind, Kind::Unknown);
                        let span = below.value.span;
                        *below = Entry {
                            value: merge(Node { span, kind }, entry.value),
                            ..entry
                        };
                    }
                }
            }
            Kind::Map(joined)
        }
        (_, kind) => kind,
    };
    Node {
        span: over.span,
        kind,
    }
}

#[cfg(test)]
mod tests {
    use super::super::tree::parse;
    use super::*;

    fn flow(node: &Node) -> String {
        match &node.kind {
            Kind::Unknown => String::new(),
            Kind::Scalar { text, .. } => text.clone(),
            Kind::List(items) => format!(
                "[{}]",
                items.iter().map(flow).collect::<Vec<_>>().join(", ")
            ),
            Kind::Map(map) => {
                let entries = map.entries().iter();
                let entries = entries.map(|e| format!("{}: {}", e.key, flow(&e.value)));
                format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
            }
        }
    }

    #[test]
    fn maps_are_joined_and_all_else_is_replaced() {
        for (base, over, joined) in [
            ("{a: 1, b: 2}", "{b: 3, c: 4}", "{a: 1, b: 3, c: 4}"),
            ("{a: {x: 1, y: 2}}", "{a: {y: 3}}", "{a: {x: 1, y: 3}}"),
            ("{a: [1, 2]}", "{a: [3]}", "{a: [3]}"),
            ("{a: {x: 1}}", "{a: ~, b: ~}", "{b: ~}"),
            ("{a: {x: 1}}", "{a: 7}", "{a: 7}"),
            ("[1]", "{a: 1}", "{a: 1}"),
        ] {
            let node = |text| parse(text, 0).0.unwrap();
            assert_eq!(
                flow(&merge(node(base), node(over))),
                joined,
                "{base} {over}"
            );
        }
    }
}
