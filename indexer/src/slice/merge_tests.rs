//! The promise: whatever runs hold, a merge shows at each epoch what a plain map of versions shows.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::super::run::RunBuilder;
use super::*;

type Write = (u16, Vec<u8>, Option<Vec<u8>>);
type Model = BTreeMap<(u16, Vec<u8>), BTreeMap<u64, Option<Vec<u8>>>>;

fn runs_and_model(writes: &[Write], per_epoch: usize) -> (Vec<Arc<Run>>, Model) {
    let mut model = Model::new();
    let mut runs = Vec::new();
    for (n, batch) in writes.chunks(per_epoch).enumerate() {
        let epoch = n as u64 + 1;
        let last: BTreeMap<_, _> = batch
            .iter()
            .map(|(slice, entry, state)| ((*slice, entry.clone()), state.clone()))
            .collect();
        let mut builder = RunBuilder::default();
        for ((slice, entry), state) in last {
            builder.push(Version {
                slice: SliceNo(slice),
                entry: &entry,
                include: state.as_deref().unwrap_or(b""),
                epoch: Epoch(epoch),
                tombstone: state.is_none(),
            });
            model.entry((slice, entry)).or_default().insert(epoch, state);
        }
        runs.extend(builder.finish().map(Arc::new));
    }
    (runs, model)
}

fn shown(
    model: &Model,
    slices: &[u16],
    range: &KeyRange,
    epoch: u64,
) -> Vec<(Vec<u8>, u16, Vec<u8>)> {
    let mut rows: Vec<_> = model
        .iter()
        .filter(|((slice, entry), _)| slices.contains(slice) && range.contains(entry))
        .filter_map(|((slice, entry), versions)| {
            let (_, state) = versions.range(..=epoch).next_back()?;
            Some((entry.clone(), *slice, state.clone()?))
        })
        .collect();
    rows.sort();
    rows
}

fn merged(
    runs: &[Arc<Run>],
    slices: &[u16],
    range: &KeyRange,
    epoch: u64,
    reverse: bool,
) -> Vec<(Vec<u8>, Vec<u8>)> {
    let slices: Vec<_> = slices.iter().copied().map(SliceNo).collect();
    let mut merge = Merge::new(runs, &slices, range, Epoch(epoch), reverse);
    let mut rows = Vec::new();
    while let Some(found) = merge.next_visible() {
        rows.push((merge.entry(found).to_vec(), merge.include(found).to_vec()));
    }
    rows
}

fn writes() -> impl Strategy<Value = Vec<Write>> {
    let entry = prop::collection::vec(0u8..3, 0..10);
    let state = prop::option::of(prop::collection::vec(any::<u8>(), 0..3));
    prop::collection::vec((0u16..3, entry, state), 0..120)
}

proptest! {
    #[test]
    fn a_merge_shows_what_the_model_shows(
        writes in writes(), per_epoch in 1usize..30, low in prop::collection::vec(0u8..3, 0..4),
        high in prop::option::of(prop::collection::vec(0u8..3, 0..4)), two: bool,
        merge_from in 0usize..8, merge_to in 0usize..8, horizon in 0u64..12,
    ) {
        let (mut runs, model) = runs_and_model(&writes, per_epoch);
        let epochs = runs.len() as u64 + 1;
        let from = merge_from.min(runs.len());
        let to = merge_to.clamp(from, runs.len());
        let compacted = compact(&runs[from..to], Epoch(horizon), from == 0);
        runs.splice(from..to, compacted.map(Arc::new));
        let range = KeyRange { low: low.into(), high: high.map(Into::into) };
        let slices: &[u16] = if two { &[0, 2] } else { &[1] };
        for epoch in horizon..=epochs {
            let expected: Vec<_> = shown(&model, slices, &range, epoch)
                .into_iter().map(|(entry, _, include)| (entry, include)).collect();
            let mut reversed = merged(&runs, slices, &range, epoch, true);
            reversed.reverse();
            prop_assert_eq!(&merged(&runs, slices, &range, epoch, false), &expected);
            prop_assert_eq!(&reversed, &expected);
        }
    }
}
