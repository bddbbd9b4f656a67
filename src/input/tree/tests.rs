//! Trees of texts, and texts that are refused.

use super::*;

#[test]
fn every_node_knows_its_bytes() {
    let text = "ä: [1, \"ü\"]\nb:\n  c: d e\n";
    let (root, flaws) = parse(text, 0);
    assert!(flaws.is_empty());
    let Kind::Map(map) = &root.as_ref().unwrap().kind else {
        panic!()
    };
    let Kind::List(items) = &map.get("ä").unwrap().value.kind else {
        panic!()
    };
    assert_eq!(&text[items[1].span.start..items[1].span.end], "\"ü\"");
    assert_eq!((items[1].span.line, items[1].span.column), (1, 8));
    let Kind::Map(inner) = &map.get("b").unwrap().value.kind else {
        panic!()
    };
    let span = inner.get("c").unwrap().value.span;
    assert_eq!(
        (&text[span.start..span.end], span.line, span.column),
        ("d e", 3, 6)
    );
}

#[test]
fn small_and_large_maps_find_their_keys() {
    for count in [INDEXED - 1, INDEXED, 3 * INDEXED] {
        let text: String = (0..count).map(|i| format!("k{i}: {i}\n")).collect();
        let Some(Node {
            kind: Kind::Map(mut map),
            ..
        }) = parse(&text, 0).0
        else {
            panic!()
        };
        assert!(map.take("k3").is_some() && map.take("k3").is_none());
        for i in (0..count).filter(|i| *i != 3) {
            let Kind::Scalar { text, .. } = &map.get(&format!("k{i}")).unwrap().value.kind else {
                panic!()
            };
            assert_eq!(*text, i.to_string());
        }
        assert!(map.get("k3").is_none() && map.get("gone").is_none());
    }
}

#[test]
fn refuses_what_readers_disagree_on() {
    let cases = [
        ("a: &x 1\nb: *x", "anchors", 1),
        ("a: &x {c: 1}\nb: {<<: *x}", "merge keys", 2),
        ("a: !!str 1", "tags", 1),
        ("a: 1\n---\nb: 1", "second document", 2),
        ("a: 1\nb: 2\na: 3", "twice", 3),
        ("? [a]\n: 1", "plain text", 1),
        ("a:\n\tb: 1", "not valid YAML", 2),
    ];
    for (text, fragment, line) in cases {
        let (_, flaws) = parse(text, 0);
        let found = flaws
            .iter()
            .any(|f| f.message.contains(fragment) && f.span.line == line);
        assert!(found, "{text:?}: {flaws:?}");
    }
}

#[test]
fn a_deep_or_exploding_text_is_refused_quickly() {
    for text in ["[".repeat(5000), "a: ".repeat(5000), "- ".repeat(5000)] {
        let (root, flaws) = parse(&text, 0);
        assert!(root.is_none() && !flaws.is_empty());
    }
}
