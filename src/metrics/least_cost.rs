//! The naive assignment problem, for tests.

use ndarray::Array2;

/// The least cost of all ways to give each row a column of its own.
pub(crate) fn least_cost(costs: &Array2<f64>) -> f64 {
    fn from(costs: &Array2<f64>, row: usize, left: &[usize]) -> f64 {
        if row == costs.nrows() {
            return 0.0;
        }
        let costs_of = (0..left.len()).map(|place| {
            let mut others = left.to_vec();
            let column = others.swap_remove(place);
            costs[[row, column]] + from(costs, row + 1, &others)
        });
        costs_of.fold(f64::INFINITY, f64::min)
    }
    from(costs, 0, &(0..costs.ncols()).collect::<Vec<_>>())
}
