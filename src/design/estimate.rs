//! How long a playbook should take.

use std::time::Duration;

use crate::model::{Playbook, Seconds, StepAction};

/// How long all loads of a playbook should take together, by what it says it expects of each.
///
/// A lower bound: nobody says how long the other steps take, only when they are given up.
pub fn estimate(playbook: &Playbook) -> Seconds {
    let expected = |action: &StepAction| match action {
        StepAction::Load { expect, .. } => expect.0,
        _ => Duration::ZERO,
    };
    let trial: Duration = playbook
        .trial
        .iter()
        .map(|step| expected(&step.action))
        .sum();
    let cells = playbook
        .factors
        .iter()
        .map(|factor| factor.levels.len())
        .product::<usize>();
    let trials = u32::try_from(cells)
        .unwrap_or(u32::MAX)
        .saturating_mul(playbook.design.repetitions);
    Seconds(trial.checked_mul(trials).unwrap_or(Duration::MAX))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::model::{Design, Factor, Level, Order, Step};

    #[test]
    fn counts_the_loads_of_all_trials() {
        let step = |action| Step {
            name: "s".to_owned(),
            on: Vec::new(),
            action,
            timeout: Seconds(Duration::from_secs(90)),
        };
        let load = StepAction::Load {
            command: "true".to_owned(),
            adapter: "lines".to_owned(),
            expect: Seconds(Duration::from_secs(30)),
        };
        let playbook = Playbook {
            name: "oltp".parse().unwrap(),
            roles: BTreeMap::new(),
            factors: vec![Factor {
                name: "n".parse().unwrap(),
                levels: vec![Level::Int(1), Level::Int(2)],
            }],
            design: Design {
                repetitions: 3,
                order: Order::Blocks,
                seed: 1,
            },
            setup: Vec::new(),
            trial: vec![
                step(StepAction::Run {
                    command: "true".to_owned(),
                }),
                step(load),
            ],
            metrics: Vec::new(),
            margin: 0.1,
        };
        assert_eq!(estimate(&playbook), Seconds(Duration::from_secs(180)));
    }
}
