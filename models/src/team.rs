//! Work shared out among threads, with results in the order of the work.

/// Does `work` on every item, by so many threads; neighbouring items are done by the same one.
pub(crate) fn share_out<T: Send, R: Send>(workers: usize, mut items: Vec<T>, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    let each = items.len().div_ceil(workers.max(1)).max(1);
    if items.len() <= each {
        return items.into_iter().map(work).collect();
    }
    let work = &work;
    std::thread::scope(|scope| {
        let mut rest = items.split_off(each);
        let mut others = Vec::new();
        while !rest.is_empty() {
            let after = rest.split_off(each.min(rest.len()));
            others.push(scope.spawn(move || rest.into_iter().map(work).collect::<Vec<R>>()));
            rest = after;
        }
        let mut results: Vec<R> = items.into_iter().map(work).collect();
        for other in others {
            match other.join() {
                Ok(more) => results.extend(more),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        results
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_items() {
        for (workers, items) in [(1, 5), (2, 5), (3, 2), (4, 0), (8, 100)] {
            let squares: Vec<u64> = (0..items).map(|item| item * item).collect();
            assert_eq!(share_out(workers, (0..items).collect(), |item| item * item), squares);
        }
    }
}
