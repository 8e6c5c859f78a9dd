"""`python -m chart`: write the files copied from deploy/base, and the values table."""

from __future__ import annotations

from chart.shared import contents

if __name__ == "__main__":
    for path, text in contents().items():
        path.write_text(text)
