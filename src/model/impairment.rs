//! What a link does to the frames that pass it.
//!
//! A vswitch's impairment acts once on every frame that a vnet takes from the vswitch: its bandwidth
//! is that of each vnet's port, not one that all ports share. A vnet's `inbound` (to the domain) acts
//! on top of it, and `outbound` (from the domain) on what the domain sends. Frames that the lab host
//! itself takes from a vswitch meet `outbound` only.

use serde::{Deserialize, Serialize};

use super::{BitRate, Percent, Seconds};

/// What frames of one direction meet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Impairment {
    /// Largest rate; what comes faster waits for up to 50 ms and is dropped then.
    pub bandwidth: Option<BitRate>,
    /// Time each frame takes.
    pub delay: Option<Seconds>,
    /// Largest deviation from `delay`, either way; frames may overtake each other.
    pub jitter: Option<Seconds>,
    /// Part of the frames that is lost, each by its own chance.
    pub loss: Option<Percent>,
    /// Whether what the host's kernel cannot do is left out, instead of the lab refused.
    #[serde(default)]
    pub optional: bool,
}

/// What the two directions of one vnet meet, all settings put together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortImpairment {
    /// Frames to the domain.
    pub inbound: Impairment,
    /// Frames from the domain.
    pub outbound: Impairment,
}

impl Impairment {
    /// Whether frames pass as they are.
    pub const fn is_none(&self) -> bool {
        self.bandwidth.is_none() && !self.needs_netem()
    }

    /// Whether it is more than a bandwidth, which takes another part of the kernel.
    pub const fn needs_netem(&self) -> bool {
        self.delay.is_some() || self.jitter.is_some() || self.loss.is_some()
    }

    /// Both, one after the other: delays add up, the lower bandwidth holds, and a frame has to
    /// survive both losses.
    #[must_use]
    pub fn then(self, next: Self) -> Self {
        let sum = |a: Seconds, b: Seconds| Seconds(a.0.saturating_add(b.0));
        Self {
            bandwidth: both(self.bandwidth, next.bandwidth, Ord::min),
            delay: both(self.delay, next.delay, sum),
            jitter: both(self.jitter, next.jitter, sum),
            loss: both(self.loss, next.loss, Percent::or),
            optional: self.optional && next.optional,
        }
    }

    /// Whether a kernel that shows `seen` does this. Kernels keep rates in bytes, times in ticks
    /// and parts in 2^-32.
    pub fn is_like(&self, seen: &Self) -> bool {
        const RATE: u64 = 8;
        const TIME_NS: u128 = 1_000;
        const PART: u32 = 1;
        let like = |a: Option<u128>, b: Option<u128>, tolerance: u128| match (a, b) {
            (Some(a), Some(b)) => a.abs_diff(b) <= tolerance,
            (a, b) => a.unwrap_or_default() == 0 && b.unwrap_or_default() == 0,
        };
        let rate = |rate: Option<BitRate>| rate.map(|r| u128::from(r.0));
        let time = |time: Option<Seconds>| time.map(|t| t.0.as_nanos());
        let part = |part: Option<Percent>| part.map(|p| u128::from(p.as_millionths()));
        self.bandwidth.is_some() == seen.bandwidth.is_some()
            && like(rate(self.bandwidth), rate(seen.bandwidth), RATE.into())
            && like(time(self.delay), time(seen.delay), TIME_NS)
            && like(time(self.jitter), time(seen.jitter), TIME_NS)
            && like(part(self.loss), part(seen.loss), PART.into())
    }
}

fn both<T>(a: Option<T>, b: Option<T>, join: impl FnOnce(T, T) -> T) -> Option<T> {
    match (a, b) {
        (Some(a), Some(b)) => Some(join(a, b)),
        (a, b) => a.or(b),
    }
}

impl std::fmt::Display for Impairment {
    /// As in `100Mbit/s, delay 2ms, jitter 1ms, loss 0.1%`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let parts = [
            self.bandwidth.map(|rate| rate.to_string()),
            self.delay.map(|delay| format!("delay {delay}")),
            self.jitter.map(|jitter| format!("jitter {jitter}")),
            self.loss.map(|loss| format!("loss {loss}")),
        ];
        let parts: Vec<_> = parts.into_iter().flatten().collect();
        if parts.is_empty() {
            f.pad("nothing")
        } else {
            f.pad(&parts.join(", "))
        }
    }
}

impl std::fmt::Display for PortImpairment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "inbound {}; outbound {}", self.inbound, self.outbound)
    }
}

impl PortImpairment {
    /// Whether frames pass as they are, both ways.
    pub const fn is_none(&self) -> bool {
        self.inbound.is_none() && self.outbound.is_none()
    }

    /// The same with the directions changed.
    #[must_use]
    pub const fn swapped(self) -> Self {
        Self {
            inbound: self.outbound,
            outbound: self.inbound,
        }
    }

    /// Whether a kernel that shows `seen` does this.
    pub fn is_like(&self, seen: &Self) -> bool {
        self.inbound.is_like(&seen.inbound) && self.outbound.is_like(&seen.outbound)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn impairment(rate: Option<u64>, delay_ms: Option<u64>, loss: Option<u32>) -> Impairment {
        Impairment {
            bandwidth: rate.map(BitRate),
            delay: delay_ms.map(|ms| Seconds(Duration::from_millis(ms))),
            jitter: None,
            loss: loss.map(Percent::millionths),
            optional: false,
        }
    }

    #[test]
    fn two_settings_act_one_after_the_other() {
        let both = impairment(Some(10), Some(2), None).then(impairment(Some(8), Some(3), Some(5)));
        assert_eq!(both, impairment(Some(8), Some(5), Some(5)));
        assert_eq!(
            impairment(None, None, None).then(impairment(Some(8), None, None)),
            impairment(Some(8), None, None)
        );
    }

    #[test]
    fn what_a_kernel_rounds_is_alike() {
        let wanted = impairment(Some(1_000_001), Some(2), Some(1_000));
        let mut seen = impairment(Some(1_000_000), Some(2), Some(1_000));
        assert!(wanted.is_like(&seen));
        seen.delay = Some(Seconds(Duration::from_nanos(1_999_968)));
        assert!(wanted.is_like(&seen));
        for other in [
            impairment(Some(1_001_000), Some(2), Some(1_000)),
            impairment(None, Some(2), Some(1_000)),
            impairment(Some(1_000_000), Some(3), Some(1_000)),
            impairment(Some(1_000_000), None, Some(1_000)),
            impairment(Some(1_000_000), Some(2), None),
        ] {
            assert!(!wanted.is_like(&other), "{other}");
        }
        assert!(impairment(None, Some(0), None).is_like(&Impairment::default()));
    }
}
