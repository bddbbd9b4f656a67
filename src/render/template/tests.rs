//! Templates that render, and those that must not.

use super::*;

fn directory(files: &[(&str, &str)]) -> (tempfile::TempDir, Templates) {
    let directory = tempfile::tempdir().unwrap();
    for (name, content) in files {
        let path = directory.path().join(name);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(path, content).unwrap();
    }
    let templates = Templates::at(Some(directory.path().to_owned()));
    (directory, templates)
}

fn with_a() -> Context {
    let mut context = Context::new();
    context.insert("a", &serde_json::json!({"b": 1, "text": "<&>"}));
    context
}

#[test]
fn includes_are_loaded_and_nothing_is_escaped() {
    let (_keep, templates) = directory(&[
        ("x/top.html", "{% include \"x/part.tera\" %}{{ a.text }}"),
        ("x/part.tera", "{{ a.b }} {# {% include 'gone' %} #}"),
    ]);
    assert_eq!(templates.render("x/top.html", &with_a()).unwrap(), "1 <&>");
    let names: Vec<_> = templates.files().into_keys().collect();
    assert_eq!(names, ["x/part.tera", "x/top.html"]);
}

#[test]
fn undefined_roots_are_found_even_in_conditions_and_includes() {
    let (_keep, templates) = directory(&[
        ("top", "fine\n{% include 'part' %}"),
        ("part", "line\n  {% if typo %}x{% endif %}"),
    ]);
    let error = templates.render("top", &with_a()).unwrap_err();
    let TemplateError::Undefined {
        names,
        place: Some(place),
        ..
    } = error
    else {
        panic!("{error:?}")
    };
    assert_eq!(
        (names, place.template.as_str()),
        (vec!["typo".to_owned()], "part")
    );
    assert_eq!((place.line, place.column), (2, 9));
}

#[test]
fn fields_that_conditions_ask_for_must_be_there() {
    let (_keep, templates) = directory(&[
        ("top", "{% include 'part' %}"),
        ("part", "\n{% if vars.typo %}x{% endif %}"),
    ]);
    let mut context = with_a();
    context.insert("vars", &serde_json::json!({"type": 1}));
    let error = templates.render("top", &context).unwrap_err();
    let TemplateError::Tera {
        message,
        place: Some(place),
        ..
    } = error
    else {
        panic!("{error:?}")
    };
    assert!(
        message.contains("`typo`") && message.ends_with("type"),
        "{message}"
    );
    assert_eq!(
        (place.template.as_str(), place.line, place.column),
        ("part", 2, 12)
    );
    for (text, good) in [
        ("{% if vars.typo %}x{% endif %}", false),
        ("{% if vars.type %}x{% endif %}", true),
        ("{% if vars.typo is defined %}x{% endif %}", true),
    ] {
        let rendered = templates.render_text("run", text, &context);
        assert_eq!(rendered.is_ok(), good, "{text}");
    }
}

#[test]
fn tera_errors_keep_the_line_and_the_whole_report() {
    let cases = [
        ("x\n{{ a.nope }}", 2, "nope"),
        ("x\ny\n{{ a.b | shout }}", 3, "shout"),
        ("{% include 'gone' %}", 1, "gone"),
        ("x\n{% if %}", 2, "error"),
    ];
    for (content, line, fragment) in cases {
        let (_keep, templates) = directory(&[("t", content)]);
        let error = templates.render("t", &with_a()).unwrap_err();
        let TemplateError::Tera {
            report,
            place: Some(place),
            ..
        } = error
        else {
            panic!("{content}: {error:?}")
        };
        assert_eq!(
            (place.template.as_str(), place.line),
            ("t", line),
            "{content}"
        );
        assert!(report.contains(fragment), "{report}");
    }
}

#[test]
fn names_stay_below_the_directory() {
    let (_keep, templates) = directory(&[("t", "")]);
    for name in ["", "/etc/passwd", "../t", "a/../../t", "./t"] {
        let error = templates.render(name, &with_a()).unwrap_err();
        assert!(
            matches!(error, TemplateError::Outside { .. }),
            "{name}: {error:?}"
        );
    }
    let error = templates.render("gone", &with_a()).unwrap_err();
    assert!(matches!(error, TemplateError::Missing { .. }), "{error:?}");
}

#[test]
fn texts_render_and_call_themselves_by_their_label() {
    let templates = Templates::at(None);
    for n in 0..TEXTS_KEPT + 5 {
        let text = format!("{n} {{{{ a.b }}}}");
        assert_eq!(
            templates.render_text("run", &text, &with_a()).unwrap(),
            format!("{n} 1")
        );
    }
    let error = templates
        .render_text("run", "{{ typo }}", &with_a())
        .unwrap_err();
    assert_eq!(error.to_string(), "undefined in \"run\": typo");
    let error = templates
        .render_text("run", "{{ a.typo }}", &with_a())
        .unwrap_err();
    let TemplateError::Tera {
        place: Some(place), ..
    } = error
    else {
        panic!("{error:?}")
    };
    assert_eq!(place.template, "run");
}

#[test]
fn no_file_time_or_environment_from_templates() {
    let templates = Templates::at(None);
    for text in [
        "{{ get_env(name='HOME') }}",
        "{{ now() }}",
        "{% include '/etc/passwd' %}",
    ] {
        assert!(
            templates.render_text("run", text, &with_a()).is_err(),
            "{text}"
        );
    }
}

#[test]
fn vars_are_templates_at_any_depth() {
    let templates = Templates::at(None);
    let vars = serde_json::json!({"x": ["{{ a.b }}", 2], "y": {"z": "<{{ a.b }}>"}});
    let rendered = templates
        .render_vars(vars.as_object().unwrap(), &with_a())
        .unwrap();
    assert_eq!(
        Value::Object(rendered),
        serde_json::json!({"x": ["1", 2], "y": {"z": "<1>"}})
    );
}

#[test]
fn loops_that_go_on_and_on_are_ended() {
    let texts = Templates::at(None);
    let nested =
        "{% for a in range(end=90000) %}{% for b in range(end=90000) %}x{% endfor %}{% endfor %}";
    let error = texts
        .render_text("text", nested, &Context::new())
        .unwrap_err();
    assert_eq!(error.to_string(), "\"text\" becomes longer than 8 MiB");
    let short = "{% for a in range(end=3) %}x{% endfor %}";
    assert_eq!(
        texts.render_text("text", short, &Context::new()).unwrap(),
        "xxx"
    );
}
