//! The full cross of the factors, repeated in randomised complete blocks.

use rand::seq::SliceRandom;
use rand_pcg::Pcg64;

use crate::model::{Digest, Digester, Factor, Level, Name, Playbook, Trial};

/// Every trial of a playbook, in the order they run.
///
/// A block has every cell once, shuffled (randomised complete blocks), so that a drift of the
/// machine over hours falls on all cells alike. The shuffle is Pcg64 of `rand_pcg` 0.10 seeded with
/// the design's seed, one stream a block: the same seed gives the same order on every machine, and
/// more repetitions leave the blocks that were there as they are.
pub fn trials(playbook: &Playbook) -> Vec<Trial> {
    let cells = cells(&playbook.factors);
    let steps = steps_digest(playbook);
    let mut trials = Vec::with_capacity(cells.len() * playbook.design.repetitions as usize);
    for block in 1..=playbook.design.repetitions {
        let mut order = cells.clone();
        order.shuffle(&mut Pcg64::new(
            u128::from(playbook.design.seed),
            u128::from(block),
        ));
        for levels in order {
            let identity = identity(playbook, &levels, block, steps);
            let number = u32::try_from(trials.len() + 1).unwrap_or(u32::MAX);
            trials.push(Trial {
                number,
                block,
                levels,
                identity,
            });
        }
    }
    trials
}

/// Every combination of levels; the last factor varies fastest.
fn cells(factors: &[Factor]) -> Vec<Vec<(Name, Level)>> {
    factors.iter().fold(vec![Vec::new()], |cells, factor| {
        let with = |cell: &Vec<_>, level: &Level| {
            let mut cell = cell.clone();
            cell.push((factor.name.clone(), level.clone()));
            cell
        };
        cells
            .iter()
            .flat_map(|cell| factor.levels.iter().map(move |level| with(cell, level)))
            .collect()
    })
}

fn identity(playbook: &Playbook, levels: &[(Name, Level)], block: u32, steps: Digest) -> Digest {
    let mut digester = Digester::default()
        .field("labrig trial 1")
        .field(playbook.name.as_str());
    for (name, level) in levels {
        let (kind, text) = typed(level);
        digester = digester.field(name.as_str()).field(kind).field(text);
    }
    digester
        .field(block.to_be_bytes())
        .field(steps.bytes())
        .finish()
}

/// A level with its type: `1`, `1.0` and `"1"` differ.
fn typed(level: &Level) -> (&'static str, String) {
    let kind = match level {
        Level::Bool(_) => "bool",
        Level::Int(_) => "int",
        Level::Float(_) => "float",
        Level::Text(_) => "text",
    };
    (kind, level.to_string())
}

/// Digest of what a trial does: the roles and all steps, setup included, since a trial on a
/// machine that was set up otherwise is another trial.
fn steps_digest(playbook: &Playbook) -> Digest {
    #[expect(
        clippy::expect_used,
        reason = "these types have text keys and derived impls only, which never fail"
    )]
    let json = serde_json::to_vec(&(&playbook.roles, &playbook.setup, &playbook.trial))
        .expect("plain data");
    Digest::of(json)
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::*;
    use crate::model::{Design, Order};

    fn playbook(levels: &[Vec<Level>], repetitions: u32, seed: u64) -> Playbook {
        let name = |text: &str| text.parse::<Name>().unwrap();
        let factor = |(i, levels): (usize, &Vec<Level>)| Factor {
            name: name(&format!("f{i}")),
            levels: levels.clone(),
        };
        Playbook {
            name: name("oltp"),
            roles: BTreeMap::new(),
            factors: levels.iter().enumerate().map(factor).collect(),
            design: Design {
                repetitions,
                order: Order::Blocks,
                seed,
            },
            setup: Vec::new(),
            trial: Vec::new(),
            metrics: Vec::new(),
            margin: 0.1,
        }
    }

    fn ints(counts: &[i64]) -> Vec<Vec<Level>> {
        counts
            .iter()
            .map(|n| (0..*n).map(Level::Int).collect())
            .collect()
    }

    proptest! {
        #[test]
        fn every_block_has_every_cell_once(
            counts in prop::collection::vec(1_i64..4, 0..4), repetitions in 1_u32..5, seed: u64,
        ) {
            let made = trials(&playbook(&ints(&counts), repetitions, seed));
            let cells = usize::try_from(counts.iter().product::<i64>()).unwrap();
            prop_assert_eq!(made.len(), cells * repetitions as usize);
            for (block, trials) in (1..).zip(made.chunks(cells)) {
                prop_assert!(trials.iter().all(|trial| trial.block == block));
                prop_assert_eq!(trials.iter().map(Trial::label).collect::<BTreeSet<_>>().len(), cells);
            }
            prop_assert!(made.iter().zip(1..).all(|(trial, number)| trial.number == number));
            prop_assert_eq!(made.iter().map(|trial| trial.identity).collect::<BTreeSet<_>>().len(), made.len());
            prop_assert_eq!(&trials(&playbook(&ints(&counts), repetitions, seed)), &made);
        }

        #[test]
        fn more_repetitions_leave_earlier_blocks_alone(seed: u64, repetitions in 1_u32..4) {
            let few = trials(&playbook(&ints(&[3, 2]), repetitions, seed));
            let more = trials(&playbook(&ints(&[3, 2]), repetitions + 1, seed));
            prop_assert!(more.starts_with(&few));
        }
    }

    #[test]
    fn seeds_and_blocks_put_a_cell_at_different_places() {
        let position = |seed, block: u32| {
            let made = trials(&playbook(&ints(&[6]), 2, seed));
            made.iter()
                .filter(|trial| trial.block == block)
                .position(|trial| trial.label() == "f0=0")
                .unwrap()
        };
        let over_seeds: BTreeSet<_> = (0..60).map(|seed| position(seed, 1)).collect();
        assert_eq!(over_seeds.len(), 6, "a cell comes at every place");
        assert!(
            (0..60).any(|seed| position(seed, 1) != position(seed, 2)),
            "blocks have orders of their own"
        );
    }

    #[test]
    fn the_order_of_a_seed_never_changes() {
        let labels: Vec<_> = trials(&playbook(&ints(&[5]), 2, 7))
            .iter()
            .map(Trial::label)
            .collect();
        assert_eq!(
            labels.join(" "),
            "f0=2 f0=0 f0=4 f0=1 f0=3 f0=3 f0=1 f0=4 f0=0 f0=2"
        );
    }

    #[test]
    fn the_type_of_a_level_is_part_of_the_identity() {
        let identity = |level| trials(&playbook(&[vec![level]], 1, 1))[0].identity;
        let all = [
            Level::Int(1),
            Level::Float(1.0),
            Level::Text("1".to_owned()),
            Level::Text("1.0".to_owned()),
        ];
        assert_eq!(
            all.into_iter().map(identity).collect::<BTreeSet<_>>().len(),
            4
        );
    }

    #[test]
    fn without_factors_there_is_one_cell() {
        let made = trials(&playbook(&[], 3, 1));
        assert_eq!(
            made.iter()
                .map(|trial| (trial.number, trial.block))
                .collect::<Vec<_>>(),
            [(1, 1), (2, 2), (3, 3)]
        );
    }
}
