//! Impairments as commands of iproute2.

use crate::model::{Impairment, Vnet};

/// Longest time a frame waits for its turn at a bandwidth; then it is dropped, as a full port of a
/// switch does.
const WAIT: &str = "50ms";
/// Part of a second whose frames a port sends at once after a pause: the coarsest timer of common
/// kernels.
const BURSTS_PER_SECOND: u64 = 250;
/// Room for Ethernet's header, a VLAN tag, and rounding in the kernel.
const FRAME_OVERHEAD: u64 = 64;
/// Frames that a delay holds at least: netem's own default.
const HELD_LEAST: u64 = 1000;
/// Rate that is thought of where no bandwidth is set, and size of a frame, in bits: so many are on
/// their way while they are delayed.
const HELD_RATE: u64 = 10_000_000_000;
const HELD_FRAME: u64 = 500 * 8;

/// One command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Command {
    pub program: &'static str,
    pub arguments: Vec<String>,
}

impl Command {
    pub fn tc<const N: usize>(arguments: [&str; N]) -> Self {
        Self::of("tc", &arguments)
    }

    pub fn ip<const N: usize>(arguments: [&str; N]) -> Self {
        Self::of("ip", &arguments)
    }

    fn of(program: &'static str, arguments: &[&str]) -> Self {
        let arguments = arguments.iter().map(|&argument| argument.to_owned());
        Self {
            program,
            arguments: arguments.collect(),
        }
    }
}

/// The device at which frames from a vnet wait.
pub(super) fn waiting_device(device: &str) -> String {
    format!(
        "li{}",
        device.strip_prefix(Vnet::DEVICE_PREFIX).unwrap_or(device)
    )
}

/// Commands for frames to the domain.
pub(super) fn inbound(device: &str, impairment: &Impairment, mtu: u64) -> Vec<Command> {
    queueing(device, impairment, mtu)
}

/// Commands for frames from the domain.
pub(super) fn outbound(device: &str, impairment: &Impairment, mtu: u64) -> Vec<Command> {
    if impairment.is_none() {
        return Vec::new();
    }
    let waiting = waiting_device(device);
    let mut commands = vec![
        Command::ip(["link", "add", &waiting, "type", "ifb"]),
        Command::ip(["link", "set", "dev", &waiting, "up"]),
    ];
    // Frames are led there when all is ready for them.
    commands.extend(queueing(&waiting, impairment, mtu));
    commands.push(Command::tc([
        "qdisc", "add", "dev", device, "handle", "ffff:", "ingress",
    ]));
    // `matchall` would say it better, but not every kernel has it.
    commands.push(Command::tc([
        "filter", "add", "dev", device, "parent", "ffff:", "protocol", "all", "prio", "1", "u32",
        "match", "u32", "0", "0", "action", "mirred", "egress", "redirect", "dev", &waiting,
    ]));
    commands
}

/// Delay and loss come first, then what is left takes its turn at the bandwidth.
fn queueing(device: &str, impairment: &Impairment, mtu: u64) -> Vec<Command> {
    let mut commands = Vec::new();
    let mut parent = vec!["root"];
    let mut handle = "1:";
    if impairment.needs_netem() {
        let mut netem = Command::tc([
            "qdisc", "replace", "dev", device, "root", "handle", "1:", "netem",
        ]);
        netem.arguments.extend(netem_arguments(impairment));
        commands.push(netem);
        (parent, handle) = (vec!["parent", "1:1"], "10:");
    }
    if let Some(rate) = impairment.bandwidth {
        let mut tbf = Command::tc(["qdisc", "replace", "dev", device]);
        let more = parent.into_iter().chain(["handle", handle, "tbf"]);
        tbf.arguments.extend(more.map(ToOwned::to_owned));
        let burst = (rate.0 / 8 / BURSTS_PER_SECOND).max(2 * (mtu + FRAME_OVERHEAD));
        let (rate, burst) = (format!("{}bit", rate.0), format!("{burst}b"));
        let more = ["rate", &rate, "burst", &burst, "latency", WAIT];
        tbf.arguments.extend(more.map(ToOwned::to_owned));
        commands.push(tbf);
    }
    commands
}

fn netem_arguments(impairment: &Impairment) -> Vec<String> {
    let nanoseconds =
        |time: Option<crate::model::Seconds>| time.map_or(0, |time| time.0.as_nanos());
    let (delay, jitter) = (
        nanoseconds(impairment.delay),
        nanoseconds(impairment.jitter),
    );
    let mut arguments = vec!["limit".to_owned(), held(impairment).to_string()];
    if delay > 0 || jitter > 0 {
        arguments.extend(["delay".to_owned(), format!("{delay}ns")]);
    }
    if jitter > 0 {
        arguments.push(format!("{jitter}ns"));
    }
    if let Some(loss) = impairment.loss {
        arguments.extend(["loss".to_owned(), loss.to_string()]);
    }
    arguments
}

/// How many frames are on their way at most: netem drops what is above.
fn held(impairment: &Impairment) -> u64 {
    let longest = [impairment.delay, impairment.jitter]
        .into_iter()
        .flatten()
        .map(|time| time.0.as_secs_f64())
        .sum::<f64>();
    let rate = impairment.bandwidth.map_or(HELD_RATE, |rate| rate.0);
    let frames = (longest * rate as f64 / HELD_FRAME as f64).ceil();
    // netem counts in 32 bits.
    HELD_LEAST + (frames as u64).min(u64::from(u32::MAX) / 2)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::model::{BitRate, Percent, Seconds};

    fn text(commands: &[Command]) -> Vec<String> {
        commands
            .iter()
            .map(|command| format!("{} {}", command.program, command.arguments.join(" ")))
            .collect()
    }

    fn impairment(rate: Option<u64>, delay: Option<u64>, jitter: Option<u64>) -> Impairment {
        Impairment {
            bandwidth: rate.map(BitRate),
            delay: delay.map(|ms| Seconds(Duration::from_millis(ms))),
            jitter: jitter.map(|us| Seconds(Duration::from_micros(us))),
            ..Impairment::default()
        }
    }

    #[test]
    fn a_bandwidth_takes_one_command() {
        let slow = impairment(Some(1_000_000), None, None);
        assert_eq!(
            text(&inbound("lp0", &slow, 1500)),
            [
                "tc qdisc replace dev lp0 root handle 1: tbf rate 1000000bit burst 3128b latency 50ms"
            ]
        );
        let fast = impairment(Some(10_000_000_000), None, None);
        assert_eq!(
            text(&inbound("lp0", &fast, 1500)),
            [
                "tc qdisc replace dev lp0 root handle 1: tbf rate 10000000000bit burst 5000000b latency 50ms"
            ]
        );
    }

    #[test]
    fn delay_and_loss_come_before_the_bandwidth() {
        let mut all = impairment(Some(100_000_000), Some(20), Some(500));
        all.loss = Some(Percent::millionths(1_000));
        assert_eq!(
            text(&inbound("lp0", &all, 1500)),
            [
                "tc qdisc replace dev lp0 root handle 1: netem limit 1513 delay 20000000ns 500000ns loss 0.1%",
                "tc qdisc replace dev lp0 parent 1:1 handle 10: tbf rate 100000000bit burst 50000b latency 50ms",
            ]
        );
        let loss = Impairment {
            loss: Some(Percent::millionths(10_000)),
            ..Impairment::default()
        };
        assert_eq!(
            text(&inbound("lp0", &loss, 1500)),
            ["tc qdisc replace dev lp0 root handle 1: netem limit 1000 loss 1%"]
        );
    }

    #[test]
    fn frames_from_a_domain_are_led_to_where_they_wait() {
        let slow = impairment(None, Some(2), None);
        assert_eq!(
            text(&outbound("lp0a", &slow, 1500)),
            [
                "ip link add li0a type ifb",
                "ip link set dev li0a up",
                "tc qdisc replace dev li0a root handle 1: netem limit 6000 delay 2000000ns",
                "tc qdisc add dev lp0a handle ffff: ingress",
                "tc filter add dev lp0a parent ffff: protocol all prio 1 u32 match u32 0 0 action mirred egress redirect dev li0a",
            ]
        );
    }

    #[test]
    fn nothing_takes_nothing() {
        assert_eq!(inbound("lp0", &Impairment::default(), 1500), []);
        assert_eq!(outbound("lp0", &Impairment::default(), 1500), []);
    }
}
