//! What sources of rows have in common: a name, a shape, and reads that are checked and whose errors name the file.

/// Makes a [`Source`](coremix::data::Source) of what has the fields `path`, `len` and `dim`, and a method `read_rows` that fills
/// some rows with what it has from the first of them on.
macro_rules! source {
    ($name:ident) => {
        impl<T> std::fmt::Debug for $name<T> {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($name))
                    .field("path", &self.path)
                    .field("len", &self.len)
                    .field("dim", &self.dim)
                    .finish_non_exhaustive()
            }
        }

        impl<T: $crate::Number> coremix::data::Source for $name<T> {
            type Element = T;

            fn len(&self) -> usize {
                self.len
            }

            fn dim(&self) -> usize {
                self.dim
            }

            fn read(&self, first: usize, out: &mut [T]) -> std::io::Result<()> {
                use $crate::fault::{guarded, rows_asked_for, unread};
                let asked = rows_asked_for(first, out.len(), [self.len, self.dim]);
                let read = asked.and_then(|rows| match rows {
                    0 => Ok(()),
                    _ => guarded(|| self.read_rows(first, out)),
                });
                read.map_err(|error| unread(&self.path, &error))
            }
        }
    };
}
pub(crate) use source;
