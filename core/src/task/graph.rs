//! A graph of tasks that is built before any of it is issued, so that a task can come after one that is added later.
//! That makes a circle possible, and it is refused here.

use crate::task::{Task, TaskError};

/// A task's place in a graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place(usize);

/// Tasks and what each comes after.
#[derive(Debug, Default)]
pub struct Graph {
    tasks: Vec<(String, Task)>,
    after: Vec<Vec<usize>>,
}

impl Place {
    /// The position in the order of adding, and in the list of handles of a graph that was issued.
    #[must_use]
    pub fn index(self) -> usize {
        self.0
    }
}

impl Graph {
    /// Adds a task under a name, by which a circle is told.
    pub fn add(&mut self, name: &str, task: Task) -> Place {
        self.tasks.push((name.to_owned(), task));
        self.after.push(Vec::new());
        Place(self.tasks.len() - 1)
    }

    /// Lets `later` begin only when `earlier` is done.
    pub fn after(&mut self, later: Place, earlier: Place) {
        self.after[later.0].push(earlier.0);
    }

    /// The tasks in an order in which each follows what it comes after, with their places and those.
    ///
    /// # Errors
    /// If some tasks wait for one another in a circle, which is named.
    pub fn in_order(self) -> Result<Vec<(Place, Task, Vec<Place>)>, TaskError> {
        let order = self.order()?;
        let mut tasks: Vec<Option<Task>> = self.tasks.into_iter().map(|(_, task)| Some(task)).collect();
        let mut after = self.after;
        let entry = |place: usize| {
            let earlier = std::mem::take(&mut after[place]).into_iter().map(Place).collect();
            (Place(place), tasks[place].take().expect("each once"), earlier)
        };
        Ok(order.into_iter().map(entry).collect())
    }

    /// Kahn's algorithm; what it leaves contains a circle.
    fn order(&self) -> Result<Vec<usize>, TaskError> {
        let mut missing: Vec<usize> = self.after.iter().map(Vec::len).collect();
        let mut later: Vec<Vec<usize>> = vec![Vec::new(); self.tasks.len()];
        for (place, earlier) in self.after.iter().enumerate() {
            earlier.iter().for_each(|&earlier| later[earlier].push(place));
        }
        let mut order: Vec<usize> = (0..self.tasks.len()).filter(|&place| missing[place] == 0).collect();
        let mut next = 0;
        while let Some(&place) = order.get(next) {
            next += 1;
            for &later in &later[place] {
                missing[later] -= 1;
                if missing[later] == 0 {
                    order.push(later);
                }
            }
        }
        match missing.iter().position(|&missing| missing > 0) {
            None => Ok(order),
            Some(start) => Err(TaskError::Cycle { tasks: self.circle(start, &missing) }),
        }
    }

    /// Goes from a task that waits to one that it waits for, until one comes again: the names between.
    fn circle(&self, start: usize, missing: &[usize]) -> Vec<String> {
        let mut path = vec![start];
        loop {
            let last = path[path.len() - 1];
            let earlier = self.after[last].iter().copied().find(|&earlier| missing[earlier] > 0);
            let earlier = earlier.expect("what waits for ever waits for something that does");
            if let Some(again) = path.iter().position(|&place| place == earlier) {
                return path[again..].iter().map(|&place| self.tasks[place].0.clone()).collect();
            }
            path.push(earlier);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn graph(tasks: usize, edges: &[(usize, usize)]) -> Graph {
        let mut graph = Graph::default();
        let places: Vec<Place> = (0..tasks).map(|i| graph.add(&format!("t{i}"), Task::end())).collect();
        edges.iter().for_each(|&(later, earlier)| graph.after(places[later], places[earlier]));
        graph
    }

    #[test]
    fn a_circle_is_refused_and_its_tasks_are_named_in_order() {
        let refusal = |tasks, edges: &[_]| graph(tasks, edges).in_order().expect_err("a circle").to_string();
        assert_eq!(
            refusal(5, &[(0, 1), (1, 2), (2, 3), (3, 1), (4, 0)]),
            "the tasks wait for one another in a circle: 't1' after 't2' after 't3' after 't1'"
        );
        assert_eq!(refusal(1, &[(0, 0)]), "the tasks wait for one another in a circle: 't0' after 't0'");
    }

    proptest! {
        #[test]
        fn a_graph_is_put_in_order_or_has_a_circle(edges in proptest::collection::vec((0usize..12, 0usize..12), 0..24)) {
            match graph(12, &edges).in_order() {
                Ok(order) => {
                    let position = |task: usize| order.iter().position(|(place, ..)| place.index() == task);
                    prop_assert_eq!(order.len(), 12);
                    for &(later, earlier) in &edges {
                        prop_assert!(position(earlier) < position(later));
                    }
                }
                Err(TaskError::Cycle { tasks }) => {
                    let number = |name: &String| name[1..].parse::<usize>().expect("a number");
                    for (i, later) in tasks.iter().enumerate() {
                        let earlier = &tasks[(i + 1) % tasks.len()];
                        prop_assert!(edges.contains(&(number(later), number(earlier))));
                    }
                }
                Err(other) => prop_assert!(false, "{other}"),
            }
        }
    }
}
