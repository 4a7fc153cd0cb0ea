"""Figures in pages of the documentation."""


def fill(page, name, text):
    """Puts the text between `<!-- NAME -->` and `<!-- end of NAME -->`."""
    begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    before, found, rest = page.read_text().partition(begin)
    _, also, after = rest.partition(end)
    if not found or not also:
        raise SystemExit(f"{page}: needs {begin} and {end}")
    page.write_text(f"{before}{begin}\n\n{text}\n\n{end}{after}")
