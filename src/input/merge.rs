//! Laying one part of a topology over another: included files, defaults and groups.

use super::tree::{Kind, Mapping, Node};

/// Lays `over` on `base`. Maps are joined key by key, null takes a key of `base` away, and everything
/// else stands in the place of what was there.
pub(super) fn merge(base: &Node, over: Node) -> Node {
    let (Kind::Map(below), Kind::Map(above)) = (&base.kind, &over.kind) else {
        return over;
    };
    let mut joined = Mapping::default();
    for entry in below.entries() {
        match above.get(&entry.key) {
            None => joined.set(entry.clone()),
            Some(own) if own.value.is_null() => {}
            Some(own) => {
                let mut own = own.clone();
                own.value = merge(&entry.value, own.value);
                joined.set(own);
            }
        }
    }
    let new = above.entries().iter();
    for entry in new.filter(|entry| below.get(&entry.key).is_none()) {
        joined.set(entry.clone());
    }
    Node {
        span: over.span,
        kind: Kind::Map(joined),
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
                flow(&merge(&node(base), node(over))),
                joined,
                "{base} {over}"
            );
        }
    }
}
