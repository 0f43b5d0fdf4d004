//! Keys over servers: which of them go where, and how what comes back is put together in the order of the keys.

use crate::array::Array;
use crate::ids::ShardId;
use crate::schema::TableSchema;
use crate::task::{Keys, TaskError};
use crate::values::Values;
use std::ops::Range;

/// The most keys that a task may name of a table without a size: a server lists the keys of a range.
pub(crate) const KEYS_MAX: usize = 1 << 28;

/// What one server gets of the keys of a task.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// The server's shard.
    pub shard: ShardId,
    /// Its keys; of a range the whole range, of which it takes its own.
    pub keys: Keys,
    /// Where its keys lie among all keys of the task.
    pub places: Vec<Range<usize>>,
}

/// Checks that a table has these keys, and that they ascend.
pub(crate) fn check(schema: &TableSchema, keys: &Keys) -> Result<(), TaskError> {
    let table = || schema.name.clone();
    let last = match keys {
        Keys::Range(range) => range.end.checked_sub(1).filter(|_| !range.is_empty()),
        Keys::List(keys) => {
            if let Some(pair) = keys.windows(2).find(|pair| pair[0] >= pair[1]) {
                return Err(TaskError::Unsorted { table: table(), before: pair[0], key: pair[1] });
            }
            keys.last().copied()
        }
    };
    match (last, schema.rows) {
        (Some(key), Some(rows)) if key >= rows => Err(TaskError::NoSuchKey { table: table(), key, rows }),
        (_, None) if keys.len() > KEYS_MAX => Err(TaskError::TooManyKeys { table: table(), keys: keys.len() }),
        _ => Ok(()),
    }
}

/// The keys of every shard that has some, or of all shards if `everyone`.
pub(crate) fn split(schema: &TableSchema, shards: u32, keys: &Keys, everyone: bool) -> Vec<Part> {
    let mut places: Vec<Vec<Range<usize>>> = vec![Vec::new(); shards as usize];
    for (shard, run) in runs(schema, shards, keys) {
        places[shard.index()].push(run);
    }
    let parts = (0..shards).map(ShardId).zip(places).filter(|(_, places)| everyone || !places.is_empty());
    let part = |(shard, places): (ShardId, Vec<Range<usize>>)| {
        let keys = match keys {
            Keys::Range(range) => Keys::Range(range.clone()),
            Keys::List(list) if places.iter().map(Range::len).sum::<usize>() == list.len() => Keys::List(list.clone()),
            Keys::List(list) => {
                let own: Vec<u64> = places.iter().flat_map(|run| &list[run.clone()]).copied().collect();
                Keys::List(own.into())
            }
        };
        Part { shard, keys, places }
    };
    parts.map(part).collect()
}

/// Those keys that are on `shard`.
pub(crate) fn own(schema: &TableSchema, shards: u32, keys: &Keys, shard: ShardId) -> Array<u64> {
    match keys {
        Keys::List(list) => list.clone(),
        Keys::Range(range) => {
            let own = runs(schema, shards, keys).filter(|(owner, _)| *owner == shard);
            own.flat_map(|(_, run)| range.start + run.start as u64..range.start + run.end as u64)
                .collect::<Vec<u64>>()
                .into()
        }
    }
}

/// The stretches of keys that lie on one shard each. A shard is looked up once for a chunk, not once for a key.
fn runs<'a>(
    schema: &'a TableSchema,
    shards: u32,
    keys: &'a Keys,
) -> impl Iterator<Item = (ShardId, Range<usize>)> + 'a {
    let count = keys.len();
    let key = move |place: usize| match keys {
        Keys::Range(range) => range.start + place as u64,
        Keys::List(list) => list[place],
    };
    let unit_keys = if schema.rows.is_some() { schema.chunk_rows() } else { 1 };
    let mut next = 0;
    let mut unit = move || {
        let (start, first) = (next, key(next));
        let end = (first / unit_keys + 1).saturating_mul(unit_keys);
        next = match keys {
            Keys::Range(range) => start + (end.min(range.end) - first) as usize,
            Keys::List(list) => start + list[start..].partition_point(|&key| key < end),
        };
        (schema.shard_of(first, shards), start..next)
    };
    let mut pending: Option<(ShardId, Range<usize>)> = None;
    let mut reached = 0;
    std::iter::from_fn(move || {
        while reached < count {
            let (shard, run) = if shards == 1 { (ShardId(0), 0..count) } else { unit() };
            reached = run.end;
            match &mut pending {
                Some((last, before)) if *last == shard => before.end = run.end,
                _ => {
                    let before = pending.replace((shard, run));
                    if before.is_some() {
                        return before;
                    }
                }
            }
        }
        pending.take()
    })
}

/// The rows at some places of a batch, all of them without copying.
pub(crate) fn cut(values: &Values, places: &[Range<usize>]) -> Values {
    let Values::Dense { width, numbers } = values else { unreachable!("tasks carry dense rows") };
    let row = *width as usize;
    if places.iter().map(Range::len).sum::<usize>() * row == numbers.len() {
        return values.clone();
    }
    let cut = places.iter().flat_map(|run| &numbers[run.start * row..run.end * row]).copied().collect();
    Values::dense(*width, cut)
}

/// Puts the rows of a part where they belong among `out`.
pub(crate) fn paste(out: &mut [f32], width: usize, places: &[Range<usize>], numbers: &[f32]) {
    let mut from = 0;
    for run in places {
        let count = run.len() * width;
        out[run.start * width..run.end * width].copy_from_slice(&numbers[from..from + count]);
        from += count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::RowKind;
    use crate::schema::Placement;

    #[test]
    fn parts_cover_every_key_once_and_what_is_cut_can_be_put_together() {
        let sized = |placement| TableSchema { chunk_rows: Some(7), placement, ..TableSchema::dense("t", 1000, 2) };
        let unsized_table = TableSchema::keyed("u", RowKind::Dense { width: 2 });
        let lists: [Keys; 4] = [
            (3..950).into(),
            (500..500).into(),
            (0..1000).filter(|key| key % 3 == 0).collect::<Vec<_>>().into(),
            vec![999].into(),
        ];
        for schema in [sized(Placement::Range), sized(Placement::Hash), unsized_table] {
            for (keys, shards) in lists.iter().flat_map(|keys| [1, 2, 5].map(|shards| (keys, shards))) {
                let all: Vec<u64> = match keys {
                    Keys::Range(range) => range.clone().collect(),
                    Keys::List(list) => list.to_vec(),
                };
                let values = Values::dense(2, all.iter().flat_map(|&key| [key as f32, 0.5]).collect());
                let mut out = vec![-1.0; all.len() * 2];
                for part in split(&schema, shards, keys, true) {
                    let own = own(&schema, shards, &part.keys, part.shard);
                    assert!(own.iter().all(|&key| schema.shard_of(key, shards) == part.shard));
                    let Values::Dense { numbers, .. } = cut(&values, &part.places) else { unreachable!() };
                    assert_eq!(numbers.iter().step_by(2).map(|&x| x as u64).collect::<Vec<_>>(), own.to_vec());
                    paste(&mut out, 2, &part.places, &numbers);
                }
                assert_eq!(Values::dense(2, out), values);
            }
        }
    }

    #[test]
    fn keys_that_cannot_be_are_refused_with_their_reason() {
        let schema = TableSchema::dense("t", 10, 1);
        let refusal = |keys: Keys| check(&schema, &keys).expect_err("cannot be").to_string();
        assert_eq!(refusal((5..11).into()), "table 't' has 10 rows, so there is no key 10");
        assert_eq!(refusal(vec![10].into()), "table 't' has 10 rows, so there is no key 10");
        assert_eq!(refusal(vec![1, 3, 3].into()), "table 't': the keys of a task must ascend, and key 3 follows key 3");
        let empty = std::ops::Range { start: 20, end: 5 };
        check(&schema, &empty.into()).expect("an empty range");
        let endless = TableSchema::keyed("u", RowKind::Dense { width: 1 });
        let refusal = check(&endless, &(0..1 << 40).into()).expect_err("too many").to_string();
        assert_eq!(refusal, "table 'u': a task may name 268435456 keys at most, not 1099511627776");
    }
}
