"""Writes the text files of `tests/files/text.rs`, as pandas, polars, DuckDB, pyarrow and NumPy write them.

    python3 -m venv target/venv && target/venv/bin/pip install pandas polars duckdb pyarrow numpy
    target/venv/bin/python files/tests/text/make.py

The files of R and Excel are written by hand, byte for byte as these programs write them.
"""

import gzip
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv

HERE = Path(__file__).parent
ROWS = np.array([[1.5, 2.0, -3.25], [4.0, 5.5, 6.0], [0.125, 8.0, 1e-3]])
NAMES = ["Müller", "Möller", "O'Neil, \"Tip\""]


def at(name):
    path = HERE / name
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


named = pd.DataFrame(ROWS, columns=["x", "y", "z"])
keyed = named.assign(id=NAMES)
# pandas
keyed.to_csv(at("pandas.csv"), index=False)
named.to_csv(at("pandas-index.csv"))
pd.DataFrame(ROWS).to_csv(at("pandas-array.csv"), index=False)
pd.DataFrame(ROWS).to_csv(at("pandas-array-index.csv"))
pd.DataFrame(ROWS).to_csv(at("pandas-rows.csv"), index=False, header=False)
pd.read_csv(at("pandas-index.csv")).to_csv(at("pandas-twice.csv"), index=False)
pd.Series([1.5, None, 3.0], name="x").to_csv(at("pandas-series.csv"), index=False)
named.mask(named == 5.5).to_csv(at("pandas-missing.csv"), index=False)
keyed.to_csv(at("pandas-latin1.csv"), index=False, encoding="latin-1")
keyed.to_csv(at("pandas-utf16.csv"), index=False, encoding="utf-16")
keyed.to_csv(at("pandas-excel.csv"), index=False, encoding="utf-8-sig", sep=";", decimal=",")
at("pandas.csv.gz").write_bytes(gzip.compress(at("pandas.csv").read_bytes(), mtime=0))
# polars
table = pl.from_pandas(keyed)
table.write_csv(at("polars.csv"))
table.write_csv(at("polars.tsv"), separator="\t")
table.with_columns(y=pl.when(pl.col("y") == 5.5).then(None).otherwise(pl.col("y"))).write_csv(at("polars-null.csv"))
# DuckDB
duckdb.sql(f"copy (select * from keyed) to '{at('duckdb.csv')}' (format csv, header)")
duckdb.sql(f"copy (select * from keyed) to '{at('duckdb-pipe.csv')}' (format csv, header, delimiter '|')")
hive = keyed.assign(year=[2023, 2024, 2024])
duckdb.sql(f"copy (select * from hive) to '{at('duckdb-hive')}' (format csv, partition_by (year), overwrite)")
# pyarrow
pyarrow.csv.write_csv(pa.Table.from_pandas(keyed, preserve_index=False), at("pyarrow.csv"))
# NumPy
np.savetxt(at("numpy.txt"), ROWS)
np.savetxt(at("numpy-comment.csv"), ROWS, delimiter=",", header="three points")

# R 4: write.csv, write.csv2, write.table
R = ["1.5", "2", "-3.25"], ["4", "5.5", "6"], ["0.125", "8", "0.001"]
at("r-write-csv.csv").write_text(
    '"","x","y","z"\n' + "".join(f'"{i + 1}",{",".join(row)}\n' for i, row in enumerate(R))
)
at("r-write-csv2.csv").write_text(
    '"";"x";"y";"z"\n' + "".join(f'"{i + 1}";{";".join(row)}\n' for i, row in enumerate(R)).replace(".", ",")
)
at("r-write-table.txt").write_text(
    '"x" "y" "z"\n' + "".join(f'"{i + 1}" {" ".join(row)}\n' for i, row in enumerate(R))
)
at("r-missing.txt").write_text('"V1" "V2"\n"a" 1.5 NA\n"b" 2 3\n"c" NaN 4\n')
# Excel: CSV (Windows, German), Unicode text, CSV UTF-8, CSV (Macintosh)
at("excel-german.csv").write_bytes("Name;Wert;Betrag\r\nMüller;1,5;1.234,5\r\nMöller;2;-20.000\r\n".encode("cp1252"))
at("excel-unicode.txt").write_bytes("\ufeffName\tx\r\nMüller\t1.5\r\nMöller\t2\r\n".encode("utf-16-le"))
at("excel-utf8.csv").write_bytes("\ufeffid,x,\r\na,1.5,\r\nb,2,\r\n".encode())
at("excel-mac.csv").write_bytes(b"id,x\ra,1.5\rb,2\r")
