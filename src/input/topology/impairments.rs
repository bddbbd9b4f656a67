//! Impairments as written.

use std::time::Duration;

use super::super::read::{At, Fields, Written};
use super::super::shape::{Form, Key, Shape, TIME};
use crate::model::{BitRate, Impairment, Percent, Seconds};

/// Bounds of a bandwidth: a frame takes seconds below, and the kernel's queues count in 32 bits.
const BANDWIDTH_LEAST: BitRate = BitRate(8_000);
const BANDWIDTH_MOST: BitRate = BitRate(400_000_000_000);
/// Longest delay: every connection ends before.
const TIME_MOST: Duration = Duration::from_secs(60);

pub(super) const BANDWIDTH: Key = Key::new(
    "bandwidth",
    Form::Syntax("^[0-9]+ ?(bit|kbit|Mbit|Gbit)/s$"),
    "100Mbit/s",
    "Largest rate; what comes faster waits for up to 50 ms and is dropped then.",
);
pub(super) const DELAY: Key = Key::new("delay", TIME, "2ms", "Time each frame takes.");
pub(super) const JITTER: Key = Key::new(
    "jitter",
    TIME,
    "1ms",
    "Largest deviation from the delay, either way; frames may overtake each other.",
);
pub(super) const LOSS: Key = Key::new(
    "loss",
    Form::Syntax("^[0-9]+(\\.[0-9]{1,4})? ?%$"),
    "0.1%",
    "Part of the frames that is lost, each by its own chance.",
);
pub(super) const OPTIONAL: Key = Key::new(
    "optional",
    Form::Truth,
    "true",
    "Whether what the host's kernel cannot do is left out with a warning; otherwise the lab is refused there.",
);

/// What an impairment is.
pub(super) const IMPAIRMENT: Shape = Shape::new(
    "What frames meet on their way.",
    &[BANDWIDTH, DELAY, JITTER, LOSS, OPTIONAL],
);

/// Reads an impairment that is a map of its own.
pub(super) fn impairment_at(at: &At<'_>) -> Impairment {
    at.fields(&IMPAIRMENT)
        .map(|fields| impairment(&fields))
        .unwrap_or_default()
}

/// Reads the impairment among the keys of a map.
pub(super) fn impairment(fields: &Fields<'_>) -> Impairment {
    let time = |key: &str, example: &str| time(&fields.get(key)?, example);
    let delay = time("delay", "2ms");
    let jitter = time("jitter", "1ms");
    if let (Some(at), Some(jitter)) = (fields.get("jitter"), &jitter) {
        match &delay {
            None if fields.get("delay").is_none() => {
                at.error("a jitter needs a delay", "add one, as in delay: 2ms");
            }
            Some(delay) if jitter.value > delay.value => at.error(
                format!(
                    "a jitter of {} is more than the delay of {}",
                    jitter.value, delay.value
                ),
                "a frame cannot arrive before it was sent: at most the delay",
            ),
            _ => {}
        }
    }
    Impairment {
        bandwidth: fields.get("bandwidth").and_then(|at| bandwidth(&at)),
        delay: delay.map(|delay| delay.value),
        jitter: jitter.map(|jitter| jitter.value),
        loss: fields
            .get("loss")
            .and_then(|at| at.parse::<Percent>("0.1%"))
            .map(|loss| loss.value),
        optional: fields
            .get("optional")
            .and_then(|at| at.boolean())
            .unwrap_or_default(),
    }
}

fn bandwidth(at: &At<'_>) -> Option<BitRate> {
    let rate = at.parse::<BitRate>("100Mbit/s")?.value;
    if (BANDWIDTH_LEAST..=BANDWIDTH_MOST).contains(&rate) {
        return Some(rate);
    }
    at.error(
        format!("a bandwidth of {rate} cannot be had"),
        format!("from {BANDWIDTH_LEAST} to {BANDWIDTH_MOST}"),
    );
    None
}

fn time(at: &At<'_>, example: &str) -> Option<Written<Seconds>> {
    let time = at.parse::<Seconds>(example)?;
    if time.value.0 <= TIME_MOST {
        return Some(time);
    }
    at.error(
        format!("{} is too long", time.value),
        format!("at most {}s", TIME_MOST.as_secs()),
    );
    None
}
