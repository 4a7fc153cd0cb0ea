//! Costs of rows that know some of their coordinates, where these depend on one another ([E55](crate::equations#e55)).
//!
//! A component expects values of the others that follow from the known ones, in one way for all rows of a pattern, which is found
//! once for these.

use crate::base::float::Float;
use crate::kernels::sparse::{Entries, Known};
use crate::rows::Rows;

/// Rows of a block that know the same coordinates.
pub(crate) struct Pattern<'a> {
    pub(crate) known: &'a [u32],
    pub(crate) missing: Vec<u32>,
    /// Their numbers in the block.
    pub(crate) rows: Vec<usize>,
}

impl<'a> Pattern<'a> {
    fn new(known: &'a [u32], dim: usize, rows: Vec<usize>) -> Self {
        let mut rest = known.iter().peekable();
        let missing = (0..dim as u32).filter(|j| rest.next_if_eq(&j).is_none());
        Self {
            known,
            missing: missing.collect(),
            rows,
        }
    }

    /// All patterns of a block of rows.
    fn all<F>(entries: &Entries<'a, F>, dim: usize) -> Vec<Self> {
        let ids = |i: usize| &entries.ids[entries.starts[i]..entries.starts[i + 1]];
        let mut order: Vec<usize> = (0..entries.len()).collect();
        order.sort_by(|&a, &b| ids(a).cmp(ids(b)));
        let alike = order.chunk_by(|&a, &b| ids(a) == ids(b));
        let new = |rows: &[usize]| Self::new(ids(rows[0]), dim, rows.to_vec());
        alike.map(new).collect()
    }
}

/// All patterns of a block of rows; one, of which nothing is missing, if they are dense.
pub(crate) fn patterns<F: Float>(rows: &Rows<F>) -> Vec<Pattern<'_>> {
    match rows.entries() {
        Some(entries) => Pattern::all(&entries, rows.dim),
        None => vec![Pattern::new(&[], 0, (0..rows.len()).collect())],
    }
}

/// Scratch: the difference of a completed row from a mean (d), and numbers on the way to it.
pub(crate) type Scratch<'a> = (&'a mut [f64], &'a mut Vec<f64>);

/// Components that expect something of the coordinates that a row lacks.
pub(crate) trait Expects {
    /// All that follows from a pattern under a component.
    type Given;

    /// Numbers of components and of coordinates.
    fn shape(&self) -> (usize, usize);

    fn given(&self, c: usize, pattern: &Pattern<'_>) -> Self::Given;

    /// As above, in the place of that of another component.
    fn next_given<'g>(
        &self,
        c: usize,
        pattern: &Pattern<'_>,
        given: &'g mut Option<Self::Given>,
    ) -> &'g Self::Given {
        given.insert(self.given(c, pattern))
    }

    /// The mean of a component in the coordinates of the frame (d).
    fn mean(&self, c: usize) -> impl Iterator<Item = f64>;

    /// The difference of a row from the mean, of which what is missing is completed.
    fn complete<F: Float>(
        &self,
        c: usize,
        given: (&Pattern<'_>, &Self::Given),
        row: Known<'_, F>,
        scratch: Scratch<'_>,
    );

    /// The squared Mahalanobis distance of what is known, in the unit of costs.
    fn form<F: Float>(
        &self,
        c: usize,
        given: (&Pattern<'_>, &Self::Given),
        row: Known<'_, F>,
        scratch: Scratch<'_>,
    ) -> f64;

    /// The cost of a row with this form.
    fn cost<F: Float>(&self, c: usize, given: (&Pattern<'_>, &Self::Given), form: f64) -> F;

    /// The variance (d) that coordinates are known with (E59); none without a ridge.
    fn ridge(&self) -> &[f64];

    /// Each known coordinate apart from a mean by the deviation of its ridge, and all others at the mean: rows of a pattern whose squares
    /// are what a ridge adds.
    fn noise<'p>(&self, c: usize, pattern: &'p Pattern<'_>) -> impl Iterator<Item = Vec<f64>> + 'p {
        let mean: Vec<f64> = self.mean(c).collect();
        let deviations = self.ridge().iter().map(|r| r.sqrt());
        let apart: Vec<f64> = deviations.zip(&mean).map(|(r, m)| m + r).collect();
        let known = pattern.known.iter().filter(|_| !apart.is_empty());
        let places: Vec<u32> = known.copied().collect();
        places.into_iter().map(move |own| {
            let values = pattern.known.iter().map(|&j| match j == own {
                true => apart[j as usize],
                false => mean[j as usize],
            });
            values.collect()
        })
    }

    /// The addend of a ridge to the form of each row of a pattern: the trace of (E59), in the unit of costs.
    fn form_of_noise(&self, c: usize, given: (&Pattern<'_>, &Self::Given)) -> f64 {
        let (mut u, mut x) = (vec![0.0; self.shape().1], Vec::new());
        let rows = self.noise(c, given.0);
        let forms = rows.map(|values| {
            let row = Known {
                ids: given.0.known,
                values: &values[..],
            };
            self.form(c, given, row, (&mut u, &mut x))
        });
        forms.sum()
    }

    /// The forms of all rows under all components, shown to `see` with the row, the component and what is given.
    fn forms<F: Float>(
        &self,
        entries: Entries<'_, F>,
        mut see: impl FnMut(usize, usize, (&Pattern<'_>, &Self::Given), f64),
    ) {
        let (k, dim) = self.shape();
        let (mut u, mut x) = (vec![0.0; dim], Vec::new());
        for pattern in Pattern::all(&entries, dim) {
            let mut given = None;
            for c in 0..k {
                let given = (&pattern, self.next_given(c, &pattern, &mut given));
                let noise = self.form_of_noise(c, given);
                for &i in &pattern.rows {
                    let form = self.form(c, given, entries.row(i), (&mut u, &mut x));
                    see(i, c, given, form + noise);
                }
            }
        }
    }

    /// The costs of a row under the components `ids`.
    fn some<F: Float>(&self, row: Known<'_, F>, ids: &[u32], out: &mut Vec<F>) {
        let dim = self.shape().1;
        let pattern = Pattern::new(row.ids, dim, Vec::new());
        let (mut u, mut x) = (vec![0.0; dim], Vec::new());
        let mut given = None;
        out.clear();
        out.extend(ids.iter().map(|&c| {
            let c = c as usize;
            let given = (&pattern, self.next_given(c, &pattern, &mut given));
            let form = self.form(c, given, row, (&mut u, &mut x));
            self.cost::<F>(c, given, form + self.form_of_noise(c, given))
        }));
    }

    /// The costs of all rows under all components: (len, k) into `out`, with the bits of [`some`](Self::some).
    fn all<F: Float>(&self, entries: Entries<'_, F>, out: &mut Vec<F>) {
        let (k, _) = self.shape();
        out.clear();
        out.resize(entries.len() * k, F::zero());
        self.forms(entries, |i, c, given, form| {
            out[i * k + c] = self.cost(c, given, form);
        });
    }

    /// A row as it is completed under component `c`, in the coordinates of the frame (d).
    fn completed<F: Float>(&self, row: Known<'_, F>, c: usize) -> Vec<f64> {
        let dim = self.shape().1;
        let pattern = Pattern::new(row.ids, dim, Vec::new());
        let (mut out, given) = (vec![0.0; dim], self.given(c, &pattern));
        self.complete(c, (&pattern, &given), row, (&mut out, &mut Vec::new()));
        out.iter_mut().zip(self.mean(c)).for_each(|(u, m)| *u += m);
        out
    }
}
