//! What a phase with bounds keeps, in a checkpoint and back: rows by component, sums, neighbour lists.

use super::assignment::{Assignment, Member};
use super::lists::NeighbourLists;
use super::sums::Sums;
use crate::base::float::Float;
use crate::data::Centres;
use crate::io::{FileFault, Sections, Stream};

type Read<T> = std::result::Result<T, FileFault>;

impl<F: Float> Assignment<F> {
    /// The rows by component, with their bounds.
    pub(crate) fn write(&self, out: &mut Stream<'_>) {
        let (starts, members) = (self.starts(), self.stretch(0..self.len()));
        let n = members.len();
        let starts = starts.iter().map(|start| *start as u64);
        out.section("starts", self.components() + 1, starts);
        out.section("members", n, members.iter().map(|m| m.row));
        out.section("seconds", n, members.iter().map(|m| m.second));
        out.section("uppers", n, members.iter().map(|m| m.upper));
        out.section("lowers", n, members.iter().map(|m| m.lower));
    }

    /// The same of `n` rows and `k` components.
    pub(crate) fn read(file: &mut Sections<'_>, n: usize, k: usize) -> Read<Self> {
        let starts = file.numbers::<u64>("starts", &[k + 1])?;
        let starts: Vec<usize> = starts.into_iter().map(|start| start as usize).collect();
        if starts[0] != 0 || starts[k] != n || !starts.is_sorted() {
            return Err(FileFault::content("starts", "must rise from 0 to n"));
        }
        let rows = file.permutation("members", n)?;
        let seconds = file.below("seconds", &[n], k)?;
        let (uppers, lowers) = (bounds(file, "uppers", n)?, bounds(file, "lowers", n)?);
        let member = |place: usize| Member {
            row: rows[place],
            second: seconds[place],
            upper: uppers[place],
            lower: lowers[place],
        };
        let members = (0..n).map(member).collect();
        Ok(Self::from_parts(starts, members))
    }
}

/// Bounds are numbers or infinite.
fn bounds<F: Float>(file: &mut Sections<'_>, name: &str, n: usize) -> Read<Vec<F>> {
    let bounds = file.numbers::<F>(name, &[n])?;
    match bounds.iter().any(|bound| bound.to_f64().is_nan()) {
        true => Err(FileFault::content(name, "must be no NaN")),
        false => Ok(bounds),
    }
}

impl<F: Float> Sums<F> {
    /// The sums with their anchors.
    pub(crate) fn write(&self, out: &mut Stream<'_>) {
        let (anchors, sums, largest) = self.parts();
        anchors.write("anchors", out);
        out.numbers("sums", sums);
        out.numbers("largest sums", largest.as_flattened());
    }

    /// The same of `k` components in `dim` coordinates.
    pub(crate) fn read(file: &mut Sections<'_>, k: usize, dim: usize) -> Read<Self> {
        let anchors = Centres::read("anchors", file, k, dim)?;
        let line = anchors.row(0).len() + 2;
        let sums = file.finite("sums", &[k, line])?;
        let largest = file.finite("largest sums", &[k, 2])?;
        let largest = largest.as_chunks().0.to_vec();
        Ok(Self::from_parts(anchors, sums, largest))
    }
}

impl<F: Float> NeighbourLists<F> {
    /// The lists, and how far they reach. What the last move means for bounds is found again after the next one.
    pub(crate) fn write(&self, out: &mut Stream<'_>) {
        let (lists, reach) = self.parts();
        out.numbers("neighbours", lists);
        out.numbers("reaches", reach);
    }

    /// The same of `k` components, where there are any.
    pub(crate) fn read(file: &mut Sections<'_>, k: usize) -> Read<Option<Self>> {
        if !file.has("neighbours") {
            return Ok(None);
        }
        let lists = file.all::<u32>("neighbours")?;
        let reach = file.numbers::<f64>("reaches", &[k])?;
        let size = lists.len() / k;
        let sound = |(c, list): (usize, &[u32])| {
            list[0] as usize == c && list.iter().all(|other| (*other as usize) < k)
        };
        let whole = size > 0 && lists.len() == k * size;
        if !whole || !lists.chunks_exact(size).enumerate().all(sound) {
            let rule = "must be lists of components, each with its own first";
            return Err(FileFault::content("neighbours", rule));
        }
        if reach.iter().any(|reach| reach.is_nan()) {
            return Err(FileFault::content("reaches", "must be no NaN"));
        }
        Ok(Some(Self::from_parts(lists, reach)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::rng::Rng;
    use crate::data::{Data, Dense, View};
    use crate::io::{CHECKPOINT, read_file, write};
    use ndarray::{Array2, Axis};

    /// Everything comes back, also what only matters once sums collapse.
    #[test]
    fn what_is_kept_comes_back() {
        let mut rng = Rng::from_seed(3);
        let x = Array2::from_shape_fn((300, 5), |_| rng.normal() as f32);
        let data = Dense::new(x.view()).unwrap();
        let (frame, k) = (data.frame(), 40);
        let view = View::new(&data, &frame);
        let centres = Centres::enter(x.view().split_at(Axis(0), k).0, &frame);
        let (assignment, _) = Assignment::exhaustive(view, &centres).unwrap();
        let sums = Sums::of(view, &centres, &assignment).unwrap();
        let (lists, _) = NeighbourLists::new(&centres, 6);
        let name = format!("coremix-kept-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let fill = |out: &mut Stream<'_>| {
            assignment.write(out);
            sums.write(out);
            lists.write(out);
        };
        write(&CHECKPOINT, &path, "", &fill).unwrap();
        let bytes = read_file(&CHECKPOINT, &path).unwrap();
        std::fs::remove_file(path).unwrap();
        let (_, _, mut file) = Sections::of_file(&CHECKPOINT, bytes.into()).unwrap();
        let rows = Assignment::<f32>::read(&mut file, 300, k).unwrap();
        assert_eq!(rows.starts(), assignment.starts());
        let bounds = |rows: &Assignment<f32>| -> Vec<(u32, u32, f32, f32)> {
            let members = rows.stretch(0..300).iter();
            members
                .map(|m| (m.row, m.second, m.upper, m.lower))
                .collect()
        };
        assert_eq!(bounds(&rows), bounds(&assignment));
        let found = Sums::<f32>::read(&mut file, k, 5).unwrap();
        assert_eq!(found.parts(), sums.parts());
        let found = NeighbourLists::<f32>::read(&mut file, k).unwrap().unwrap();
        assert_eq!(found.parts(), lists.parts());
        file.end().unwrap();
    }
}
