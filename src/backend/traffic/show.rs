//! What `tc -j` shows, as impairments.

use std::time::Duration;

use serde::Deserialize;

use super::parse;
use crate::model::{BitRate, Impairment, Percent, Seconds};
use crate::ports::PortError;

/// What `tc -j qdisc show` printed.
pub(super) struct Shown(Vec<Qdisc>);

#[derive(Deserialize)]
struct Qdisc {
    kind: String,
    #[serde(default)]
    dev: String,
    #[serde(default)]
    root: bool,
    #[serde(default)]
    options: Options,
}

/// Options of the two kinds that labrig sets. Others have theirs, some of other types.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Options {
    /// Bytes a second; netem has an object of this name.
    rate: serde_json::Value,
    delay: Option<Delay>,
    #[serde(rename = "loss-random")]
    loss: Option<Loss>,
}

/// In seconds.
#[derive(Deserialize)]
struct Delay {
    #[serde(default)]
    delay: f64,
    #[serde(default)]
    jitter: f64,
}

/// A part of 1.
#[derive(Deserialize)]
struct Loss {
    loss: f64,
}

impl Shown {
    pub fn read(printed: &[u8]) -> Result<Self, PortError> {
        // Options are objects of every kind's own making: only those that are ours are looked at.
        let entries: Vec<serde_json::Value> = parse(printed, "tc")?;
        let qdisc = |mut entry: serde_json::Value| {
            let is_ours = matches!(entry["kind"].as_str(), Some("tbf" | "netem"));
            if !is_ours && let Some(entry) = entry.as_object_mut() {
                entry.remove("options");
            }
            serde_json::from_value(entry)
                .map_err(|error| PortError::fatal("understand what tc shows", error))
        };
        entries
            .into_iter()
            .map(qdisc)
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// Whether a device has a root that labrig may have set.
    pub fn has_own_root(&self, device: &str) -> bool {
        self.of(device).any(|qdisc| qdisc.root && qdisc.is_own())
    }

    /// Whether frames that come in at a device are looked at.
    pub fn has_ingress(&self, device: &str) -> bool {
        self.of(device).any(|qdisc| qdisc.kind == "ingress")
    }

    /// What frames that leave at a device meet.
    pub fn impairment(&self, device: &str) -> Impairment {
        self.of(device).fold(Impairment::default(), |all, qdisc| {
            all.then(qdisc.impairment())
        })
    }

    fn of(&self, device: &str) -> impl Iterator<Item = &Qdisc> {
        self.0.iter().filter(move |qdisc| qdisc.dev == device)
    }
}

impl Qdisc {
    /// Whether it is of a kind that labrig sets.
    fn is_own(&self) -> bool {
        matches!(self.kind.as_str(), "tbf" | "netem")
    }

    fn impairment(&self) -> Impairment {
        let mut impairment = Impairment::default();
        match self.kind.as_str() {
            "tbf" => {
                let rate = self.options.rate.as_u64();
                impairment.bandwidth = rate.map(|bytes| BitRate(bytes.saturating_mul(8)));
            }
            "netem" => {
                let time = |seconds: f64| {
                    let time = Duration::try_from_secs_f64(seconds).ok();
                    time.filter(|time| !time.is_zero()).map(Seconds)
                };
                let delay = self.options.delay.as_ref();
                impairment.delay = delay.and_then(|delay| time(delay.delay));
                impairment.jitter = delay.and_then(|delay| time(delay.jitter));
                // A part of 1 in 2^-32, so that it fits.
                let loss = self.options.loss.as_ref();
                impairment.loss =
                    loss.map(|loss| Percent::millionths((loss.loss * 1e6).round() as u32));
            }
            _ => {}
        }
        impairment
    }
}

/// Whether what `tc -j filter show` printed leads all frames to a device.
pub(super) fn redirects_to(printed: &[u8], device: &str) -> Result<bool, PortError> {
    let filters: Vec<serde_json::Value> = parse(printed, "tc")?;
    Ok(filters.iter().any(|filter| {
        let options = &filter["options"];
        let takes_all = options["match"]["mask"] == "0";
        let actions = options["actions"].as_array();
        let leads = |action: &serde_json::Value| {
            action["kind"] == "mirred"
                && action["mirred_action"] == "redirect"
                && action["to_dev"] == device
        };
        takes_all && actions.is_some_and(|actions| actions.iter().any(leads))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Printed by iproute2 6.1; netem's part as its source prints it.
    const SHOWN: &str = r#"[
{"kind":"noqueue","handle":"0:","dev":"lo","root":true,"refcnt":2,"options":{}},
{"kind":"htb","handle":"8367:","dev":"eth0","root":true,"refcnt":2,"options":{"r2q":10,"default":"0x1","direct_packets_stat":0,"direct_qlen":1000}},
{"kind":"tbf","handle":"8366:","dev":"lpa","root":true,"refcnt":2,"options":{"rate":1250000,"burst":4095,"lat":50000}},
{"kind":"netem","handle":"1:","dev":"lpb","root":true,"refcnt":2,"options":{"limit":1513,"delay":{"delay":0.02,"jitter":0.0005,"correlation":0},"loss-random":{"loss":0.00099999993,"correlation":0},"ecn":false,"gap":0}},
{"kind":"tbf","handle":"10:","dev":"lpb","parent":"1:1","options":{"rate":12500000,"burst":49995,"lat":50000}},
{"kind":"pfifo_fast","handle":"0:","dev":"lpc","root":true,"refcnt":2,"options":{"bands":3,"priomap":[1,2,2,2,1,2,0,0,1,1,1,1,1,1,1,1],"multiqueue":false}},
{"kind":"ingress","handle":"ffff:","dev":"lpc","parent":"ffff:fff1","options":{}},
{"kind":"netem","handle":"1:","dev":"lic","root":true,"refcnt":2,"options":{"limit":1000,"rate":{"rate":1250000,"packetoverhead":0,"cellsize":0,"celloverhead":0},"ecn":false,"gap":0}}
]"#;

    #[test]
    fn reads_rates_times_and_parts() {
        let shown = Shown::read(SHOWN.as_bytes()).unwrap();
        for (device, expected) in [
            ("lo", "nothing"),
            ("eth0", "nothing"),
            ("lpa", "10Mbit/s"),
            ("lpb", "100Mbit/s, delay 20ms, jitter 500µs, loss 0.1%"),
            ("lpc", "nothing"),
            // Not as labrig sets it: what it sets instead is not there.
            ("lic", "nothing"),
            ("none", "nothing"),
        ] {
            assert_eq!(shown.impairment(device).to_string(), expected, "{device}");
        }
        assert!(shown.has_own_root("lpa") && !shown.has_own_root("lpc"));
        assert!(!shown.has_own_root("eth0"));
        assert!(shown.has_ingress("lpc") && !shown.has_ingress("lpa"));
    }

    #[test]
    fn an_empty_answer_is_no_device_and_nonsense_is_an_error() {
        assert!(!Shown::read(b"\n").unwrap().has_own_root("lo"));
        assert!(!Shown::read(b"[ ]").unwrap().has_own_root("lo"));
        assert!(Shown::read(b"{").is_err());
        assert!(Shown::read(br#"[{"handle":"1:"}]"#).is_err());
    }

    #[test]
    fn only_a_filter_for_all_frames_leads_them_away() {
        let filter = r#"[{"protocol":"all","pref":1,"kind":"u32","chain":0},
{"protocol":"all","pref":1,"kind":"u32","chain":0,"options":{"fh":"800:","ht_divisor":1}},
{"protocol":"all","pref":1,"kind":"u32","chain":0,"options":{"fh":"800::800","order":2048,"key_ht":"800","bkt":"0","not_in_hw":true,"match":{"value":"0","mask":"0","offmask":"","off":0},"actions":[{"order":1,"kind":"mirred","mirred_action":"redirect","direction":"egress","to_dev":"ifb0","control_action":{"type":"stolen"},"index":1,"ref":1,"bind":1}]}}]"#;
        let part = filter.replace(r#""mask":"0""#, r#""mask":"ff000000""#);
        for (printed, device, expected) in [
            (filter, "ifb0", true),
            (filter, "ifb1", false),
            (part.as_str(), "ifb0", false),
            ("[]", "ifb0", false),
        ] {
            assert_eq!(redirects_to(printed.as_bytes(), device).unwrap(), expected);
        }
    }
}
