//! Sums over blocks of rows.

pub(crate) mod accumulate;
mod completed;
mod dense_products;
mod dense_sums;
mod factors;
mod known_sums;
mod members;
mod merge;
pub(crate) mod moments;
mod moved;
pub(crate) mod outer;
pub(crate) mod products;
pub(crate) mod scatter;
mod sparse;
mod sparse_sums;

/// All ways of adding up rows against the naive sums.
#[cfg(test)]
mod tests {
    use super::accumulate::About;
    use super::moments::{Moments, OfKind, SecondMoments};
    use super::outer::Pairs;
    use crate::base::cached::Cached;
    use crate::base::float::Float;
    use crate::base::rng::Rng;
    use crate::costs::observed::Observed;
    use crate::costs::whitened::Shared;
    use crate::costs::whitening::Whitening;
    use crate::costs::{Cost, Scaled, Whitened};
    use crate::data::{Data, Dense, Sketch};
    use crate::kernels::sparse::Known;
    use crate::kernels::stride;
    use crate::model::block::Block;
    use crate::model::posterior::{self, LogJoint};
    use crate::model::search::{self, Exact};
    use crate::rows::{Centres, Rows};
    use ndarray::{Array1, Array2, Axis, Slice};

    /// Rows, their shares, and centres at the first of them.
    struct Case<F: Float> {
        rows: Rows<F>,
        block: Block<F>,
        centres: Centres<F>,
    }

    /// This many rows have shares over eighty powers of ten, and the smaller the farther out.
    const POWERS: usize = 200;

    impl<F: Float> Case<F> {
        /// `n` rows of `d` coordinates, all or `q` of them known, with supports of `width` out of `k` components.
        fn new(n: usize, d: usize, q: usize, k: usize, width: usize) -> Self {
            let mut rng = Rng::from_seed(d as u64);
            let powers = n == POWERS;
            let power =
                Array1::from_shape_fn(n, |_| if powers { 20.0 * rng.uniform() } else { 0.0 });
            let x = Array2::from_shape_fn((n, d), |(i, j)| {
                F::from_f64(((i % 3 * j) as f64 + rng.normal()) * 10f64.powf(power[i]))
            });
            let w = Array1::from_shape_fn(n, |i| if powers { 1.0 } else { (i % 4) as f64 });
            let data: Box<dyn Data<F>> = match q {
                0 => Box::new(Dense::weighted(x.view(), w.view()).unwrap()),
                q => Box::new(
                    Sketch::of_dense(&Dense::weighted(x.view(), w.view()).unwrap(), q, 7).unwrap(),
                ),
            };
            let frame = data.frame();
            let mut rows = Rows::default();
            data.load(0..n, &frame, &mut rows).unwrap();
            let centres = Centres::enter(x.slice_axis(Axis(0), Slice::from(..k)), &frame);
            let supports = (0..n * width).map(|i| ((i / width + i % width * 2) % k) as u32);
            let supports: Vec<u32> = supports.filter(|_| width < k).collect();
            let mut block = Block::new(k, width);
            block.reset(n, &supports);
            let block = block.with_shares(|i, place| {
                if powers {
                    10f64.powf(-2.0 * power[i] - 40.0 * rng.uniform())
                } else {
                    ((i * width + place) % 4) as f64 / 8.0
                }
            });
            Self {
                rows,
                block,
                centres,
            }
        }
    }

    /// Mass, mass of each coordinate, first moments, and second moments of all pairs.
    struct Naive {
        mass: f64,
        observed: Vec<f64>,
        first: Vec<f64>,
        pairs: Vec<f64>,
    }

    impl Naive {
        fn variances(&self) -> Vec<f64> {
            let diagonal = self.pairs.iter().step_by(self.first.len() + 1);
            diagonal.copied().collect()
        }

        /// The kind of the second moments.
        fn size(&self) -> f64 {
            self.variances().iter().sum()
        }
    }

    /// Holds sums against the naive ones, up to rounding.
    fn close(got: &[f64], naive: &[f64], rounding: f64) {
        for (place, (got, naive)) in got.iter().zip(naive).enumerate() {
            let off = (got - naive).abs();
            assert!(off <= rounding, "{place}: {got} {naive}");
        }
    }

    /// The lower half of a matrix, and zeros.
    fn lower(pairs: &[f64], d: usize) -> Vec<f64> {
        let pairs = pairs.iter().enumerate();
        let lower = pairs.map(|(place, x)| if place % d <= place / d { *x } else { 0.0 });
        lower.collect()
    }

    impl<F: Float> Case<F> {
        fn mean(&self, c: usize) -> Vec<f64> {
            let coordinates = &self.centres.row(c)[..self.centres.dim()];
            coordinates.iter().map(|z| z.to_f64()).collect()
        }

        fn moments(&self, kind: SecondMoments) -> Moments {
            Moments::zeros(self.centres.len(), self.centres.dim(), kind)
        }

        fn naive(&self, c: usize, about: &[f64]) -> Naive {
            let d = about.len();
            let rows = &self.rows;
            let columns = (0..).take(about.len());
            let columns: Vec<u32> = columns.collect();
            let mut naive = Naive {
                mass: 0.0,
                observed: vec![0.0; d],
                first: vec![0.0; d],
                pairs: vec![0.0; d * d],
            };
            for i in 0..rows.len() {
                let members = self
                    .block
                    .members(i)
                    .filter(|member| member.0 as usize == c);
                let share = rows.weight(i) * members.map(|member| member.1).sum::<f64>();
                naive.mass += share;
                let Known { ids, values } = match rows.entries() {
                    Some(known) => known.row(i),
                    None => Known {
                        ids: &columns,
                        values: rows.row(i),
                    },
                };
                let differences = ids.iter().map(|j| *j as usize).zip(values);
                let differences = differences.map(|(j, z)| (j, z.to_f64() - about[j]));
                for (j, t) in differences.clone() {
                    naive.observed[j] += share;
                    naive.first[j] += share * t;
                    for (l, u) in differences.clone() {
                        naive.pairs[j * d + l] += share * t * u;
                    }
                }
            }
            naive
        }

        /// Holds sums about the means against the naive ones, `within` a share of what is summed up.
        fn check(&self, sums: &Moments, within: f64) {
            for c in 0..self.centres.len() {
                let naive = self.naive(c, &self.mean(c));
                let d = naive.first.len();
                let mass = within * naive.mass;
                let size = within * naive.size();
                let observed: Vec<f64> = (0..d).map(|j| sums.observed(c, j)).collect();
                close(&[sums.mass(c)], &[naive.mass], mass);
                close(&observed, &naive.observed, mass);
                // By the inequality of Cauchy and Schwarz.
                close(sums.first(c), &naive.first, (mass * size).sqrt());
                match sums.kind {
                    SecondMoments::PerComponent => {
                        close(&sums.second()[c..=c], &[naive.size()], size)
                    }
                    SecondMoments::PerCoordinate => {
                        close(&sums.second()[c * stride(d)..], &naive.variances(), size);
                    }
                    SecondMoments::PerPair => {
                        close(&lower(sums.pairs_of(c), d), &lower(&naive.pairs, d), size);
                    }
                    _ => (),
                }
            }
        }
    }

    /// Short rows, rows of one vector, and rows of some, all coordinates known and some; supports of one component, of several
    /// and of all; few and many components; shares so small that they are lost in every sum.
    #[test]
    fn moments_are_the_naive_sums() {
        for (n, d, q, k, width) in [
            (70, 1, 0, 9, 1),
            (70, 2, 0, 9, 1),
            (70, 3, 0, 9, 2),
            (70, 7, 0, 9, 1),
            (70, 8, 0, 9, 3),
            (70, 9, 0, 9, 1),
            (70, 80, 0, 9, 2),
            (70, 2, 0, 3, 1),
            (70, 4, 0, 4, 1),
            (70, 6, 0, 2, 1),
            (70, 8, 0, 4, 1),
            (POWERS, 5, 0, 3, 3),
            (40, 13, 5, 3, 3),
            (3, 13, 2, 3, 3),
            (60, 13, 13, 4, 4),
            (40, 13, 5, 7, 7),
            (90, 13, 6, 33, 33),
            (40, 13, 5, 7, 2),
            (40, 13, 5, 3, 1),
        ] {
            let case = Case::<f64>::new(n, d, q, k, width);
            for kind in [
                SecondMoments::Total,
                SecondMoments::PerComponent,
                SecondMoments::PerCoordinate,
            ] {
                let mut sums = case.moments(kind);
                sums.add(&case.rows, &case.block, &case.centres);
                case.check(&sums, 1e-13);
            }
        }
    }

    /// About components of this variance; also moved, joined, and of all components together.
    fn pairs_are_the_naive_sums<F: Float>(n: usize, d: usize, variance: f64, within: f64) {
        let case = Case::<F>::new(n, d, 0, 3, 2);
        let component = |c| Whitening::spherical(case.mean(c), variance);
        let components = [0, 1, 2].map(component);
        let points: Vec<f64> = (0..3).flat_map(|c| case.mean(c)).collect();
        let origin = vec![0.1; d];
        let [mut sums, mut shared] =
            [SecondMoments::PerPair, SecondMoments::Pairs].map(|kind| case.moments(kind));
        for sums in [&mut sums, &mut shared] {
            let pairs = Pairs {
                anchors: components.iter().map(Some).collect(),
                origin: origin.clone(),
                ..Pairs::about(&points)
            };
            sums.add_about(&case.rows, &case.block, &About::Pairs(pairs));
        }
        case.check(&sums, within);
        let of_all = |about: &[f64]| [0, 1, 2].map(|c| case.naive(c, about));
        let equal = |got: &[f64], parts: &[Naive]| {
            let total = |place: usize| parts.iter().map(|part| part.pairs[place]).sum();
            let naive: Vec<f64> = (0..d * d).map(total).collect();
            let size: f64 = parts.iter().map(|part| part.size() + part.mass).sum();
            close(&lower(got, d), &lower(&naive, d), within * size);
        };
        equal(shared.second(), &of_all(&origin));
        let step = |to: &[f64]| -> Vec<f64> {
            let pairs = to.iter().zip(case.mean(0));
            pairs.map(|(to, mean)| to - mean).collect()
        };
        equal(&sums.about(0, &step(&origin), &[]), &of_all(&origin)[..1]);
        let mut joined = sums.pair(0, 1);
        joined.join(0, 1, &step(&case.mean(1)));
        assert_eq!(joined.zero_mass(), 1);
        let [a, b, _] = of_all(&case.mean(0));
        let first = a.first[0] + b.first[0];
        close(&joined.first(0)[..1], &[first], within * 1e3);
        equal(joined.pairs_of(0), &[a, b]);
        let mut parts = vec![sums.clone(), sums.clone()];
        let both = Moments::merge(parts.iter_mut());
        assert_eq!(both.pairs_of(1)[0], 2.0 * sums.pairs_of(1)[0]);
        assert_eq!(parts, vec![case.moments(SecondMoments::PerPair); 2]);
    }

    #[test]
    fn sums_of_pairs_are_the_naive_ones() {
        for (n, d) in [(4, 1), (40, 3), (300, 17), (150, 40)] {
            pairs_are_the_naive_sums::<f64>(n, d, 0.5, 1e-13);
            pairs_are_the_naive_sums::<f32>(n, d, 0.5, 1e-5);
            // Rows much farther away than the covariance says are summed in `f64` whatever they are.
            pairs_are_the_naive_sums::<f32>(n, d, 1e-9, 1e-13);
        }
    }

    /// Costs and responsibilities of all components, as a search finds them.
    fn searched<F: Float>(case: &mut Case<F>, cost: Cost<'_, F>) {
        let n = case.rows.len();
        let k = case.centres.len();
        let mut block = Block::new(k, k);
        block.reset(n, &[]);
        let alpha = 0.0;
        let gamma = 0.0;
        let beta = 0.5;
        search::all(
            cost,
            beta,
            &case.rows,
            &mut block,
            &mut Exact::default(),
            &mut |_| {},
        );
        posterior::normalise(&case.rows, &mut block, LogJoint { alpha, gamma, beta });
        case.block = block;
    }

    /// Rows that one transform whitens: their costs, masses and first moments, and second moments about one point.
    fn whitened_sums_are_the_naive_ones<F: Float>(d: usize, variance: f64, within: f64) {
        const K: usize = 20;
        let mut case = Case::<F>::new(300, d, 0, K, K);
        let entry = |place: usize| {
            if place.is_multiple_of(d + 1) {
                variance
            } else {
                0.4 * variance
            }
        };
        let covariance: Vec<f64> = (0..d * d).map(entry).collect();
        let component = |mean| Whitening::new(mean, &covariance, vec![0.0; d], None);
        let components: Vec<_> = (0..K)
            .map(|c| component(case.mean(c)).unwrap().unwrap())
            .collect();
        let means: Vec<f64> = (0..K).flat_map(|c| case.mean(c)).collect();
        let added: Vec<f64> = (0..K).map(|c| c as f64 / 8.0).collect();
        let shared = Shared::new(&components[0], &means, &added);
        let observed = Observed {
            ridge: &[],
            transforms: &components,
            precisions: &[Cached::default()],
            means: Some(&means),
            penalties: &added,
            unit: 1.0,
        };
        searched(
            &mut case,
            Cost::Whitened(Whitened::shared(&shared, observed)),
        );
        let mut difference = Vec::new();
        for i in 0..case.rows.len() {
            for (c, cost) in case.block.costs(i).iter().enumerate() {
                let naive = components[c].form(case.rows.row(i), &mut difference) + added[c];
                let off = (cost.to_f64() - naive).abs();
                assert!(
                    off <= within * (naive + d as f64),
                    "{i} {c}: {cost} {naive}"
                );
            }
        }
        let origin = vec![0.1; d];
        let back = components[0].inverse(None).unwrap();
        for (known, seen, stay) in [
            (false, true, false),
            (false, false, true),
            (true, true, true),
        ] {
            if !seen {
                case.block.seen.weights.clear();
            }
            let mut sums = case.moments(SecondMoments::Pairs);
            sums.know_scatter(known);
            let pairs = Pairs {
                origin: origin.clone(),
                shared: Some(&shared),
                stay,
                ..Pairs::about(&means)
            };
            sums.add_about(&case.rows, &case.block, &About::Pairs(pairs));
            let mut pairs = vec![0.0; d * d];
            let mut total = 0.0;
            for c in 0..K {
                let naive = case.naive(c, &case.mean(c));
                let rows = back.chunks_exact(d);
                let first = rows.map(|row| row.iter().zip(sums.first(c)).map(|(x, f)| x * f).sum());
                let first: Vec<f64> = first.collect();
                close(&[sums.mass(c)], &[naive.mass], within * naive.mass);
                close(
                    &first,
                    &naive.first,
                    within * (naive.mass * naive.size()).sqrt(),
                );
                let about = case.naive(c, &origin);
                pairs
                    .iter_mut()
                    .zip(&about.pairs)
                    .for_each(|(sum, x)| *sum += x);
                total += about.size();
            }
            // Shares sum to 1 up to rounding.
            let of_weights = total * (16.0 * F::EPSILON).max(1e-13);
            let rounding = if stay { of_weights } else { 1e-13 * total };
            if known {
                assert!(sums.second().iter().all(|x| *x == 0.0))
            } else {
                close(&lower(sums.second(), d), &lower(&pairs, d), rounding)
            }
            let mass: f64 = sums.mass.iter().sum();
            let twice = pairs.iter().map(|x| 2.0 * x).collect();
            sums.keep_scatter(&mut Some((twice, 2.0 * mass)));
            // Near the origin, so that nothing is rounding.
            let near: Vec<f64> = (0..K * d).map(|i| 0.1 + 1e-6 * i as f64).collect();
            for (c, mean) in near.chunks_exact(d).enumerate() {
                for (place, sum) in pairs.iter_mut().enumerate() {
                    let [i, j] = [place / d, place % d].map(|j| mean[j] - origin[j]);
                    *sum -= sums.mass(c) * i * j;
                }
            }
            let within = sums.within(&origin, &near, &vec![0.0; K * d], &[]);
            close(&lower(&within, d), &lower(&pairs, d), of_weights);
        }
    }

    /// Also where most components are so far from each other, for their variance, that products have too few digits.
    #[test]
    fn whitened_sums_are_those_of_rows() {
        for d in [1, 7, 16, 33, 40] {
            whitened_sums_are_the_naive_ones::<f64>(d, 0.05, 1e-11);
            whitened_sums_are_the_naive_ones::<f32>(d, 0.05, 2e-5);
            whitened_sums_are_the_naive_ones::<f32>(d, 1e-9, 2e-6);
        }
    }

    /// Sums of squares in the type of the data where components are near; of those that are far, in `f64`, one by one or all.
    #[test]
    fn sums_of_squares_keep_their_digits() {
        for far in [0, 1, 9] {
            let mut case = Case::<f32>::new(300, 12, 0, 10, 10);
            let factor = |c: usize| if c < far { 1e7 } else { 9.0 };
            let centres = case.centres.clone();
            let scaled = Scaled::by_column(centres, |c, _| (factor(c), 0.0), |_| 0.0);
            searched(&mut case, Cost::Scaled(&scaled));
            let mut sums = case.moments(SecondMoments::PerCoordinate);
            sums.of_kind = OfKind::Narrow(false);
            sums.add(&case.rows, &case.block, &case.centres);
            assert_eq!(sums.of_kind, OfKind::Narrow(far < 2));
            case.check(&sums, if far < 2 { 1e-5 } else { 1e-9 });
            for c in 0..far {
                let naive = case.naive(c, &case.mean(c));
                let second = &sums.second()[c * stride(12)..];
                close(second, &naive.variances(), 1e-9 * naive.size());
            }
        }
    }
}
