//! Real outputs under `tests/adapters/`, with the right reading of each.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::super::{ReadError, Verdict, read};

/// What a correct adapter reports about one output.
#[derive(Deserialize)]
struct Case {
    verdict: String,
    metrics: BTreeMap<String, Value>,
    #[serde(default)]
    forbidden: Vec<String>,
}

#[derive(Deserialize)]
struct Value {
    value: f64,
    unit: String,
}

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/adapters")
}

fn output(case: &str) -> (Vec<u8>, Vec<u8>, i32) {
    let part = |kind: &str| fs::read(corpus().join(format!("{case}.{kind}"))).unwrap();
    (
        part("out"),
        part("err"),
        String::from_utf8(part("rc"))
            .unwrap()
            .trim()
            .parse()
            .unwrap(),
    )
}

#[test]
fn reads_real_outputs_right() {
    #[derive(Deserialize)]
    struct Expected {
        cases: BTreeMap<String, Case>,
    }
    let expected: Expected =
        serde_json::from_slice(&fs::read(corpus().join("expected.json")).unwrap()).unwrap();
    let outputs = fs::read_dir(corpus().join("sysbench")).unwrap();
    let outputs = outputs.filter(|entry| {
        entry
            .as_ref()
            .unwrap()
            .path()
            .extension()
            .is_some_and(|e| e == "out")
    });
    assert_eq!(
        expected.cases.len(),
        outputs.count(),
        "every output has its expectation"
    );

    for (name, case) in &expected.cases {
        let (stdout, stderr, exit) = output(name);
        let (verdict, metrics) = match read("sysbench", &stdout, &stderr, exit) {
            Ok(reading) if reading.verdict == Verdict::Ok => ("ok", reading.metrics),
            Ok(reading) => ("partial", reading.metrics),
            Err(ReadError::NothingDone { metrics, .. }) => ("error", metrics),
            Err(_) => ("error", Vec::new()),
        };
        assert_eq!(verdict, case.verdict, "{name}");
        for (metric, want) in &case.metrics {
            let got = metrics
                .iter()
                .find(|m| m.name == *metric)
                .unwrap_or_else(|| panic!("{name}: no {metric}"));
            assert_eq!(got.unit, want.unit, "{name}: {metric}");
            let close = (got.value - want.value).abs() <= 1e-6 * want.value.abs();
            assert!(
                close,
                "{name}: {metric} is {} instead of {}",
                got.value, want.value
            );
        }
        for forbidden in &case.forbidden {
            assert!(
                metrics.iter().all(|m| m.name != *forbidden),
                "{name}: {forbidden} was never measured"
            );
        }
    }
}

#[test]
fn a_cut_report_gives_whole_lines_only_and_never_all() {
    let (whole, stderr, _) = output("sysbench/oltp-rw-report1");
    let all = read("sysbench", &whole, &stderr, 0).unwrap();
    // The last line may be empty: what counts is the one before.
    let end = whole.trim_ascii_end().len() + 1;
    for length in 0..end {
        match read("sysbench", &whole[..length], &stderr, 0) {
            Ok(reading) => {
                assert!(
                    matches!(reading.verdict, Verdict::Partial(_)),
                    "cut at {length}"
                );
                assert!(all.metrics.starts_with(&reading.metrics), "cut at {length}");
            }
            Err(error) => assert!(
                matches!(error, ReadError::Missing { .. }),
                "cut at {length}: {error}"
            ),
        }
    }
    assert_eq!(read("sysbench", &whole[..end], &stderr, 0).unwrap(), all);
}

#[test]
fn exit_status_and_fatal_lines_count_beside_a_whole_report() {
    let (whole, stderr, _) = output("sysbench/oltp-rw-report1");
    let ended = read("sysbench", &whole, &stderr, 143).unwrap();
    assert!(matches!(ended.verdict, Verdict::Partial(why) if why.contains("143")));

    let fatal = b"FATAL: mysql_stmt_execute() returned error 1205\n";
    let mixed = [fatal, whole.as_slice()].concat();
    assert!(
        matches!(read("sysbench", &mixed, &stderr, 0), Err(ReadError::Tool { line, .. }) if line.contains("1205"))
    );
    assert!(matches!(
        read("sysbench", &whole, fatal, 0),
        Err(ReadError::Tool { .. })
    ));
}

#[test]
fn refuses_two_reports_and_broken_numbers() {
    let (whole, stderr, _) = output("sysbench/oltp-rw-report1");
    let twice = [whole.as_slice(), whole.as_slice()].concat();
    assert!(
        matches!(read("sysbench", &twice, &stderr, 0), Err(ReadError::Line { reason, .. }) if reason.contains("second"))
    );

    let comma = String::from_utf8(whole.clone())
        .unwrap()
        .replace("(902.19 per sec.)", "(902,19 per sec.)");
    let error = read("sysbench", comma.as_bytes(), &stderr, 0).unwrap_err();
    assert!(error.to_string().contains("902,19"), "{error}");

    let crlf = String::from_utf8(whole).unwrap().replace('\n', "\r\n");
    assert_eq!(
        read("sysbench", crlf.as_bytes(), &stderr, 0)
            .unwrap()
            .verdict,
        Verdict::Ok
    );
}
