//! The best one-to-one matching of few things to as many or more.

use ndarray::ArrayView2;

/// The column of each row of `costs` (m, n), m <= n, no column twice, so that the sum of their costs is least.
///
/// Shortest augmenting paths with prices (Jonker and Volgenant 1987, in the form of Crouse, *On implementing 2D
/// rectangular assignment algorithms*, IEEE Transactions on Aerospace and Electronic Systems 2016): `O(m^2 n)` time, `O(n)`
/// memory besides the costs. Costs must be finite, and so must their sums. Nothing is left to chance: equal costs go to
/// columns that are free, then to the first. Integers below 2^53 and their sums are exact.
pub(crate) fn matching(costs: ArrayView2<'_, f64>) -> Vec<usize> {
    const NONE: usize = usize::MAX;
    let (m, n) = costs.dim();
    assert!(m <= n, "a column for each row");
    // Prices: costs less those of row and column are not negative, and 0 where matched.
    let mut of_rows = vec![0.0; m];
    let mut of_columns = vec![0.0; n];
    let mut column_of = vec![NONE; m];
    let mut row_of = vec![NONE; n];
    // Per column: the length of the shortest path from the new row, and the row before it.
    let mut lengths = vec![0.0; n];
    let mut before = vec![NONE; n];
    let mut open: Vec<usize> = Vec::with_capacity(n);
    let mut closed: Vec<usize> = Vec::with_capacity(n);
    for new in 0..m {
        lengths.fill(f64::INFINITY);
        open.clear();
        open.extend(0..n);
        closed.clear();
        let mut row = new;
        let mut length = 0.0;
        let end = loop {
            let costs = costs.row(row);
            let price = of_rows[row];
            let mut next = 0;
            for (place, &column) in open.iter().enumerate() {
                let through: f64 = length + (costs[column] - price - of_columns[column]);
                if through < lengths[column] {
                    (lengths[column], before[column]) = (through, row);
                }
                // Free columns first among equals, then the lowest number: the list is in no order.
                let key = |c: usize| (row_of[c] != NONE, c);
                let shortest = lengths[open[next]];
                let length_here = lengths[column];
                if length_here < shortest
                    || (length_here == shortest && key(column) < key(open[next]))
                {
                    next = place;
                }
            }
            let column = open.swap_remove(next);
            length = lengths[column];
            if row_of[column] == NONE {
                break column;
            }
            closed.push(column);
            row = row_of[column];
        };
        of_rows[new] += length;
        for &column in &closed {
            let change = length - lengths[column];
            of_rows[row_of[column]] += change;
            of_columns[column] -= change;
        }
        // Along the path, each row gives its column to the one before.
        let mut column = end;
        loop {
            let row = before[column];
            row_of[column] = row;
            std::mem::swap(&mut column_of[row], &mut column);
            if row == new {
                break;
            }
        }
    }
    column_of
}

#[cfg(test)]
mod tests {
    use super::super::least_cost::least_cost;
    use super::*;
    use crate::base::rng::Rng;
    use approx::assert_relative_eq;
    use ndarray::Array2;

    #[test]
    fn it_is_the_best_of_all_permutations() {
        let mut rng = Rng::from_seed(1);
        // Costs of one size, many equal ones with exact sums, of very different sizes, and at both ends of the type.
        let costs: [fn(&mut Rng) -> f64; 5] = [
            |rng| rng.normal(),
            |rng| rng.below(3) as f64 - 1.0,
            |rng| 10f64.powi(rng.below(30) as i32 - 15),
            |rng| 1e300 * rng.uniform(),
            |rng| 1e-310 * rng.uniform(),
        ];
        for shape in [(1, 1), (1, 4), (3, 3), (4, 6), (6, 6), (3, 7)] {
            for cost in costs.iter().cycle().take(40 * costs.len()) {
                let costs = Array2::from_shape_simple_fn(shape, || cost(&mut rng));
                let columns = matching(costs.view());
                let different: std::collections::BTreeSet<_> = columns.iter().collect();
                assert_eq!(different.len(), costs.nrows(), "no column twice");
                let total: f64 = columns
                    .iter()
                    .enumerate()
                    .map(|(i, &j)| costs[[i, j]])
                    .sum();
                assert_relative_eq!(total, least_cost(&costs), max_relative = 1e-12);
                assert_eq!(columns, matching(costs.view()));
            }
        }
        assert!(matching(Array2::zeros((0, 3)).view()).is_empty());
    }

    /// Equal costs go to the first free columns. Where costs are smaller, the further rows and columns are apart, every new row
    /// takes the columns of those before it.
    #[test]
    fn first_columns_are_taken_and_long_paths_are_followed() {
        for cost in [0.0, -1.0, 1e300] {
            let costs = Array2::from_elem((5, 8), cost);
            assert_eq!(matching(costs.view()), [0, 1, 2, 3, 4]);
        }
        let costs = Array2::from_shape_fn((200, 200), |(i, j)| ((i + 1) * (j + 1)) as f64);
        assert!(matching(costs.view()).into_iter().eq((0..200).rev()));
    }
}
